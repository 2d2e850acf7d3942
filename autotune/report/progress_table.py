"""A board of the functions that are being tuned, kept up to date trial by trial."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.parsing.parser import parse
from ..log.record import Record, Trial, Workload
from ..log.setting import Setting
from ..log.summary import UNNAMED
from .bound import Bound


@dataclass
class Row:
    """One function in one setting: what came of its trials so far.

    places: in a model; None: not known. setting: None before the first trial. default, best:
    seconds of the rule's schedule and of the fastest one, both timed alone, or, behind the search,
    in turns. session: in which; empty where alone. share: of what the machine could do at best, by
    the fastest one.
    """

    name: str
    places: int | None = None
    bound: Bound | None = None
    setting: Setting | None = None
    trials: int = 0
    failed: int = 0
    default: float | None = None
    best: float | None = None
    session: str = ""
    share: float | None = None
    last: float = 0.0

    @property
    def gain(self) -> float | None:
        """The default's time over the best one."""
        return None if self.default is None or self.best is None else self.default / self.best

    def admits(self, setting: Setting) -> bool:
        """Whether times of a setting may be compared with those of this row."""
        if self.setting is None:
            return True
        cache = self.setting.cache or setting.cache
        return replace(self.setting, cache=cache) == replace(setting, cache=setting.cache or cache)

    def add(self, trial: Trial, setting: Setting) -> bool:
        """Take a trial in; whether it is the fastest that the search has found so far."""
        self.trials += 1
        self.last = time.monotonic()
        if self.setting is None or not self.setting.cache:
            self.setting = setting
        seconds, session = trial.seconds, trial.method.session
        if seconds is None:
            self.failed += 1
            return False
        if session and session != self.session:
            self.session, self.default, self.best = session, None, None
        if trial.is_default:
            self.default = seconds
        if self.best is not None and seconds >= self.best:
            return False
        self.best = seconds
        self.share = None if self.bound is None else self.bound.share(trial)
        return not session


@dataclass
class Board:
    """Rows by the keys of their functions: one for each setting.

    now: trials that were added since it was made, without those that were known before.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    now: int = 0
    began: float = field(default_factory=time.monotonic)

    @staticmethod
    def of(functions: Mapping[str, tuple[PrimFunc, int]], known: Iterable[Trial] = ()) -> Board:
        """A board of functions by their keys, each with its places; known: earlier trials."""
        board = Board({k: [Row(f.name, n, Bound.of(f))] for k, (f, n) in functions.items()})
        for trial in known:
            if trial.workload in board.rows:
                board.add(trial)
        board.now = 0
        return board

    def add(self, record: Record) -> Row | None:
        """Take a record in; the row of a trial that is the fastest of its function so far."""
        if isinstance(record, Workload):
            self._name(record)
            return None
        self.now += 1
        timed = record.seconds is not None
        setting = Setting.of(record.conditions, record.method.cache if timed else "")
        row = self._row(record.workload, setting)
        return row if row.add(record, setting) else None

    @property
    def all_rows(self) -> list[Row]:
        """The rows, that of the last trial first."""
        rows = [row for found in self.rows.values() for row in found]
        return sorted(rows, key=lambda row: -row.last)

    @property
    def trials(self) -> int:
        """Of all functions."""
        return sum(row.trials for row in self.all_rows)

    @property
    def seconds(self) -> float:
        """Since the board was made."""
        return time.monotonic() - self.began

    def _row(self, key: str, setting: Setting) -> Row:
        rows = self.rows.setdefault(key, [Row(UNNAMED)])
        for row in rows:
            if row.admits(setting):
                return row
        rows.append(Row(rows[0].name, rows[0].places, rows[0].bound))
        return rows[-1]

    def _name(self, workload: Workload) -> None:
        rows = self.rows.setdefault(workload.key, [Row(workload.name)])
        try:
            bound = rows[0].bound or Bound.of(parse(workload.text))
        except TilewrightError:  # a text of another version: no bound is told
            bound = None
        for row in rows:
            row.name, row.bound = workload.name, bound
