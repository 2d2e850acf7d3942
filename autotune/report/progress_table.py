"""A table of the functions that are being tuned, updated trial by trial."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.parsing.parser import parse
from ..log.choice import best_trial
from ..log.record import Record, Trial, Workload
from ..log.setting import Setting
from ..log.summary import UNNAMED, default_seconds
from .bound import Limit, MachineBound


@dataclass
class ProgressRow:
    """One function in one setting: its trials so far, and the best of them by log/choice.py.

    places: in a model; None: unknown. setting: None before the first trial. limit: the time that
    the machine needs at least for the best trial, None where that is not known. last: when a trial
    was added.
    """

    name: str
    places: int | None = None
    bound: MachineBound | None = None
    setting: Setting | None = None
    limit: Limit | None = None
    last: float = 0.0
    _trials: list[Trial] = field(default_factory=list, repr=False)
    _best: Trial | None = None

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self._trials)

    @property
    def failed(self) -> int:
        """The number of trials that failed."""
        return sum(trial.outcome != "ok" for trial in self._trials)

    @property
    def best(self) -> float | None:
        """Seconds of the best trial."""
        return None if self._best is None else self._best.seconds

    @property
    def default(self) -> float | None:
        """Seconds of the default schedule, in the session of the best trial where it took part."""
        return default_seconds(self._trials, self._best)

    @property
    def gain(self) -> float | None:
        """The time of the default over that of the best trial."""
        default, best = self.default, self.best
        return None if default is None or best is None else default / best

    @property
    def share(self) -> float | None:
        """The time of the limit over that of the best trial."""
        return None if self.limit is None or self.best is None else self.limit.seconds / self.best

    def admits(self, setting: Setting) -> bool:
        """Whether times of a setting may be compared with those of this row."""
        if self.setting is None:
            return True
        cache = self.setting.cache or setting.cache
        return replace(self.setting, cache=cache) == replace(setting, cache=setting.cache or cache)

    def add(self, trial: Trial, setting: Setting) -> bool:
        """Add a trial; whether it is the new best of the search, before any confirmation."""
        self._trials.append(trial)
        self.last = time.monotonic()
        if self.setting is None or not self.setting.cache:
            self.setting = setting
        if not self._may_change_best(trial):
            return False
        self._best = best_trial(self._trials)
        if self._best is not None and self.bound is not None:
            self.limit = self.bound.limit(self._best)
        return self._best is trial and not trial.method.session

    def _may_change_best(self, trial: Trial) -> bool:
        """Whether to choose the best again. A slower candidate of the search changes nothing, so
        adding n trials does not take n**2 steps.
        """
        if trial.seconds is None:
            return False
        best, confirmed = self.best, bool(trial.method.session)
        return best is None or confirmed or trial.is_default or trial.seconds < best


@dataclass
class ProgressTable:
    """Rows by the keys of their functions: one for each setting.

    now: trials that were added, without those of a resumed log. tried: of a resumed log, those that
    count toward the budget.
    """

    rows: dict[str, list[ProgressRow]] = field(default_factory=dict)
    now: int = 0
    tried: int = 0
    began: float = field(default_factory=time.monotonic)

    @staticmethod
    def of(functions: Mapping[str, tuple[PrimFunc, int]]) -> ProgressTable:
        """A table of functions by their keys, each with the number of its places."""
        return ProgressTable(
            {
                key: [ProgressRow(func.name, places, MachineBound.of(func))]
                for key, (func, places) in functions.items()
            }
        )

    def resume(self, trials: Iterable[Trial], tried: int) -> None:
        """Add the trials of a resumed log. tried: how many of them count toward the budget."""
        now = self.now
        for trial in trials:
            self.add(trial)
        self.now, self.tried = now, tried

    def add(self, record: Record) -> ProgressRow | None:
        """Add a record; the row of a trial that is the new best of its function."""
        if isinstance(record, Workload):
            self._name(record)
            return None
        self.now += 1
        timed = record.seconds is not None
        setting = Setting.of(record.conditions, record.method.cache if timed else "")
        row = self._row(record.workload, setting)
        return row if row.add(record, setting) else None

    @property
    def all_rows(self) -> list[ProgressRow]:
        """The rows, that of the last trial first."""
        rows = [row for settings in self.rows.values() for row in settings]
        return sorted(rows, key=lambda row: -row.last)

    @property
    def trials(self) -> int:
        """The number of trials of all functions."""
        return sum(row.trials for row in self.all_rows)

    @property
    def seconds(self) -> float:
        """Seconds since the table was made."""
        return time.monotonic() - self.began

    def _row(self, key: str, setting: Setting) -> ProgressRow:
        rows = self.rows.setdefault(key, [ProgressRow(UNNAMED)])
        for row in rows:
            if row.admits(setting):
                return row
        rows.append(ProgressRow(rows[0].name, rows[0].places, rows[0].bound))
        return rows[-1]

    def _name(self, workload: Workload) -> None:
        rows = self.rows.setdefault(workload.key, [ProgressRow(workload.name)])
        try:
            bound = rows[0].bound or MachineBound.of(parse(workload.text))
        except TilewrightError:  # the text of another version: the bound stays unknown
            bound = None
        for row in rows:
            row.name, row.bound = workload.name, bound
