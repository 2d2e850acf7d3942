"""A table of the functions that are being tuned, updated trial by trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.parsing.parser import parse
from ..log.choice import ScheduleChoice, choose
from ..log.disturbance import busy_text
from ..log.labels import labels
from ..log.record import Record, Trial, Workload
from ..log.setting import Setting
from ..log.summary import UNNAMED
from ..sizes import SizeValues, usual_sizes
from .bound import Limit, MachineBound


@dataclass
class ProgressRow:
    """One function in one setting: its trials so far, and the choice among them.

    places: in a model; None: unknown. setting: None before the first trial. limit: the time that
    the machine needs at least for the best trial, None where that is not known. last: when a trial
    was added. usual: the sizes of a model's latency, where calls decide any.
    """

    name: str
    places: int | None = None
    bound: MachineBound | None = None
    setting: Setting | None = None
    limit: Limit | None = None
    choice: ScheduleChoice = field(default_factory=lambda: choose(()))
    last: float = 0.0
    usual: SizeValues = ()
    _trials: list[Trial] = field(default_factory=list, repr=False)

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self._trials)

    @property
    def each(self) -> tuple[Trial, ...]:
        """The trials."""
        return tuple(self._trials)

    @property
    def failed(self) -> int:
        """The number of trials that failed."""
        return sum(trial.outcome != "ok" for trial in self._trials)

    @property
    def share(self) -> float | None:
        """The time of the limit over that of the best trial."""
        best = self.choice.seconds
        return None if self.limit is None or best is None else self.limit.seconds / best

    def admits(self, setting: Setting) -> bool:
        """Whether times of a setting may be compared with those of this row."""
        if self.setting is None:
            return True
        cache = self.setting.cache or setting.cache
        return replace(self.setting, cache=cache) == replace(setting, cache=setting.cache or cache)

    def add(self, trial: Trial, setting: Setting) -> bool:
        """Add a trial; whether it is the new best one."""
        self._trials.append(trial)
        self.last = time.monotonic()
        if self.setting is None or not self.setting.cache:
            self.setting = setting
        if not self._may_change_best(trial):
            return False
        before, self.choice = self.choice, choose(self._trials)
        best = self.choice.best
        if best is not None and self.bound is not None:
            self.limit = self.bound.limit(best)
        return best is trial or (self.choice.state == "confirmed" != before.state)

    def _may_change_best(self, trial: Trial) -> bool:
        """Whether to choose the best again. A slower candidate of the search changes nothing, so
        adding n trials does not take n**2 steps; but after a session that left nothing to decide,
        it may be what the next one has to.
        """
        default = self.choice.default
        is_after = default is not None and default.method.session and not self.choice.awaiting
        if trial.method.session or trial.is_default or is_after:
            return True
        best = self.choice.seconds
        return trial.seconds is not None and (best is None or trial.seconds < best)


Latency = Callable[[Mapping[str, float]], float | None]


@dataclass
class ProgressTable:
    """Rows by the keys of their functions: one for each setting.

    latency: of the model, from the seconds of functions by their keys; None: unknown. now: trials
    that were added, without those of a resumed log. tried: of a resumed log, those that count
    toward the budget.
    """

    rows: dict[str, list[ProgressRow]] = field(default_factory=dict)
    latency: Latency = field(default=lambda seconds: None)
    now: int = 0
    tried: int = 0
    began: float = field(default_factory=time.monotonic)
    _workloads: dict[str, Workload] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        functions: Mapping[str, tuple[PrimFunc, int]], latency: Latency | None = None
    ) -> ProgressTable:
        """A table of functions by their keys, each with the number of its places."""
        names = labels(Workload.of(func) for func, _ in functions.values())
        rows = {
            key: [ProgressRow(names[key], places, MachineBound.of(func), usual=usual_sizes(func))]
            for key, (func, places) in functions.items()
        }
        return ProgressTable(rows) if latency is None else ProgressTable(rows, latency)

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
        cache = record.method.cache if timed else ""
        setting = Setting.of(record.conditions, cache, record.timed_at)
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
    def begun(self) -> int:
        """The number of functions with a time."""
        return sum(any(row.choice.best for row in rows) for rows in self.rows.values())

    @property
    def predicted(self) -> float | None:
        """The latency of the model with what was found so far; None where it is unknown."""
        best = {
            key: seconds
            for key, rows in self.rows.items()
            for row in rows
            if (seconds := row.choice.seconds_at(row.usual)) is not None
        }
        return self.latency(best) if best else None

    @property
    def busy(self) -> str:
        """How many trials were disturbed, as a sentence; empty where none was."""
        return busy_text([trial for row in self.all_rows for trial in row.each])

    @property
    def seconds(self) -> float:
        """Seconds since the table was made."""
        return time.monotonic() - self.began

    def _row(self, key: str, setting: Setting) -> ProgressRow:
        rows = self.rows.setdefault(key, [ProgressRow(UNNAMED)])
        for row in rows:
            if row.admits(setting):
                return row
        rows.append(ProgressRow(rows[0].name, rows[0].places, rows[0].bound, usual=rows[0].usual))
        return rows[-1]

    def _name(self, workload: Workload) -> None:
        if workload.key in self.rows and self.rows[workload.key][0].places is not None:
            return  # the table was made with it
        self._workloads[workload.key] = workload
        rows = self.rows.setdefault(workload.key, [ProgressRow(workload.name)])
        try:
            bound = rows[0].bound or MachineBound.of(parse(workload.text))
        except TilewrightError:  # the text of another version: the bound stays unknown
            bound = None
        for row in rows:
            row.bound = bound
        for key, label in labels(self._workloads.values()).items():
            for row in self.rows[key]:
                row.name = label
