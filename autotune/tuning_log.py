"""TuningLog: a tuning log as a source of schedules and times for builds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..schedule.errors import ScheduleError
from ..schedule.schedule import Schedule
from ..tir.func import PrimFunc
from ..tir.target.target import Target
from ..tir.text.canonical import workload_key
from ..tir.text.html import plain
from .log.choice import State, choose
from .log.conditions import conditions
from .log.file import Contents, contents, read_log
from .log.record import Trial
from .log.setting import Setting, by_setting, differences
from .report.html import log_html
from .sizes import SizeValues, sizes_text, usual_sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TUNED, SIMILAR, DEFAULT = "tuned", "similar", "rule"  # values of Schedule.origin
UNCONFIRMED = "a candidate that is not confirmed yet"


@dataclass(frozen=True, slots=True)
class Advice:
    """What a log recommends for a function on a target.

    schedule: the recommended one; None: the rule's own. origin: "tuned", "similar", or "rule" where
    there is none. trial: its source. why: how the setting of the trial differs from this one, or
    why there is no schedule.
    """

    schedule: Schedule | None
    origin: str
    trial: Trial | None
    why: str = ""

    def __str__(self) -> str:
        steps = 0 if self.schedule is None else len(self.schedule.trace.steps)
        shown = self.origin if self.schedule is None else f"{self.origin}, {steps} steps"
        return f"{shown}: {self.trial or self.why}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class _SettingTrials:
    """The trials of one setting. state: of the best one; why: it is not confirmed. is_here: whether
    it is this machine and target; differences: of the setting from that of this machine, in words.
    """

    setting: Setting
    best: Trial
    state: State
    why: str
    trials: int
    is_here: bool
    differences: tuple[str, ...]


class TuningLog:
    """A tuning log as the `schedules` of `tw.build` or `tw.compile`.

    A schedule that was tuned on this CPU model for the same target is "tuned"; one from another
    machine with the same instructions, or for another number of threads, is "similar": it is taken,
    its times are not. Times of two settings (see log/setting.py) are never compared.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the log. Raises: LogError."""
        self.path = Path(path)
        self.contents: Contents = read_log(self.path)
        self._trials: dict[str, list[Trial]] = {}
        for trial in self.contents.trials:
            self._trials.setdefault(trial.workload, []).append(trial)

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        """The recommended schedule; None where there is none that can be replayed."""
        return self.advice(func, target).schedule

    def reason(self, func: PrimFunc, target: Target) -> str:
        """Why there is no schedule, or how its setting differs; "" where it was tuned here."""
        return self.advice(func, target).why

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        """Seconds of the recommended schedule here, with cold constants, at the usual sizes where
        calls decide any; None: unknown.
        """
        for group in self._groups(func, target):
            if group.is_here and (group.setting.cache == "cold" or not func.constants):
                return group.best.seconds_at(usual_sizes(func))
        return None

    def advice(self, func: PrimFunc, target: Target) -> Advice:
        """The recommendation of the log, with its origin and the reason."""
        reason = self._reason_for_none(func)
        for group in self._groups(func, target):
            origin = TUNED if group.is_here else SIMILAR
            try:
                schedule = Schedule.replay(func, group.best.trace, target, origin, group.state)
            except ScheduleError as error:  # the primitives have changed since
                reason = f"its schedule can no longer be replayed: {error.message}"
                continue
            why = "; ".join(filter(None, (*group.differences, group.why, _elsewhere(group, func))))
            return Advice(schedule, origin, group.best, why)
        return Advice(None, DEFAULT, None, reason)

    def figure(self, func: PrimFunc | None = None) -> Figure:
        """Plot the log with matplotlib: the search, the fit of the cost model, the importance of
        the questions, the roofline. func: plot only its trials.

        Raises: TuneError where nothing ran, or matplotlib is missing.
        """
        from .report.pictures import draw  # builds do not need it

        known = self.contents
        if func is not None:
            key = workload_key(func)
            workloads = tuple(one for one in known.workloads if one.key == key)
            known = contents((*workloads, *self._trials.get(key, ())))
        return draw(known)

    def __len__(self) -> int:
        return len(self.contents.trials)

    def __repr__(self) -> str:
        counts = f"{len(self._trials)} workloads, {len(self)} trials"
        problems = len(self.contents.problems)
        invalid = f", {problems} lines that are no records" if problems else ""
        return f"TuningLog('{self.path}': {counts}{invalid})"

    def _repr_html_(self) -> str:
        return plain(repr(self)) + log_html(self.contents)

    def _reason_for_none(self, func: PrimFunc) -> str:
        """Why the log has no schedule for a function, where it has none."""
        known = self._trials.get(workload_key(func), ())
        if not known:
            tuned = (one.name for one in self.contents.workloads if one.key in self._trials)
            if func.name in tuned:
                return "the log has it in other shapes or types alone"
            return "the log has no trial of it"
        if not any(trial.seconds for trial in known):
            return f"all of its {len(known)} trials failed"
        return "it was tuned for other instructions"

    def _groups(self, func: PrimFunc, target: Target) -> list[_SettingTrials]:
        """The trials of a function for the target's instructions, the nearest setting first."""
        known = self._trials.get(workload_key(func))
        if not known:
            return []
        here, usual = Setting.of(conditions(target), "cold"), usual_sizes(func)
        groups = _usable(known, here)
        return sorted(groups, key=lambda group: _nearness(group, here, usual), reverse=True)


def _usable(known: list[Trial], here: Setting) -> Iterator[_SettingTrials]:
    for setting, trials in by_setting(known).items():
        choice = choose(trials)
        best = choice.best
        if best is not None and setting.instructions == here.instructions:
            different = differences(replace(setting, cache=here.cache), here)
            is_here = setting.place == here.place
            why = UNCONFIRMED if choice.state == "candidate" else choice.why
            yield _SettingTrials(setting, best, choice.state, why, len(trials), is_here, different)


def _elsewhere(group: _SettingTrials, func: PrimFunc) -> str:
    """That a schedule was not timed at the usual sizes; "" where it was, or calls decide none."""
    usual, timed = usual_sizes(func), group.setting.sizes
    if not usual or usual in timed:
        return ""
    return f"timed at {sizes_text(timed)}, not at the usual {sizes_text([usual])}"


def _nearness(group: _SettingTrials, here: Setting, usual: SizeValues) -> tuple[object, ...]:
    setting = group.setting
    return (
        group.is_here,
        usual in setting.sizes,
        setting.generator == here.generator,
        setting.cache == here.cache,
        setting.cpu == here.cpu,
        setting.threads == here.threads,
        group.trials,
        group.best.time,
    )
