"""TuningLog: a log as the schedules and times that a build asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..schedule.errors import ScheduleError
from ..schedule.schedule import Schedule
from ..tir.func import PrimFunc
from ..tir.target import Target
from ..tir.text.canonical import workload_key
from ..tir.text.html import plain
from .log.choice import best_trial
from .log.conditions import conditions
from .log.file import Contents, contents, read_log
from .log.record import Trial
from .log.setting import Setting, by_setting, differences
from .log.summary import summarise
from .report.html import TableRow, functions_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TUNED, SIMILAR, DEFAULT = "tuned", "similar", "rule"  # as Schedule.origin has them


@dataclass(frozen=True, slots=True)
class Advice:
    """What a log says of a function on a target.

    schedule: what to use; None: the rule's own. origin: "tuned", "similar", or "rule" where there
    is none. trial: which one gave it. why: what else is to be known of it, or why there is none.
    """

    schedule: Schedule | None
    origin: str
    trial: Trial | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Group:
    """Trials of one setting, the one to be used among them, and in what it differs from here."""

    setting: Setting
    best: Trial
    trials: int
    is_here: bool
    unlike: tuple[str, ...]


class TuningLog:
    """What a log knows of functions: give it to `tw.build` or `tw.compile` as `schedules`.

    A schedule that was tuned on this CPU model for the same target is "tuned"; one from another
    machine with the same instructions, or for another number of threads, is "similar": it is taken,
    its times are not. Times of two settings (see comparable.py) are never compared.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the log. Raises: LogError."""
        self.path = Path(path)
        self.contents: Contents = read_log(self.path)
        self._trials: dict[str, list[Trial]] = {}
        for trial in self.contents.trials:
            self._trials.setdefault(trial.workload, []).append(trial)

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        """The schedule that the log recommends; None where it knows none that can be replayed."""
        return self.advice(func, target).schedule

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        """What the recommended schedule took here, its constants from memory; None: not known."""
        for group in self._groups(func, target):
            if group.is_here and (group.setting.cache == "cold" or not func.constants):
                return group.best.seconds
        return None

    def advice(self, func: PrimFunc, target: Target) -> Advice:
        """What the log recommends, from where, and why not something better."""
        reason = self._silence(func)
        for group in self._groups(func, target):
            origin = TUNED if group.is_here else SIMILAR
            try:
                found = Schedule.replay(func, group.best.trace, target, origin)
            except ScheduleError as error:  # the primitives have changed since
                reason = f"its schedule can no longer be replayed: {error.message}"
                continue
            return Advice(found, origin, group.best, "; ".join(group.unlike))
        return Advice(None, DEFAULT, None, reason)

    def figure(self, func: PrimFunc | None = None) -> Figure:
        """Pictures of the log, by matplotlib: the search, the fit of the cost model, which
        decisions matter, the roofline. func: of its trials alone.

        Raises: TuneError where nothing ran, or matplotlib is missing.
        """
        from .report.pictures import draw  # a build needs no pictures

        known = self.contents
        if func is not None:
            key = workload_key(func)
            workloads = tuple(one for one in known.workloads if one.key == key)
            known = contents((*workloads, *self._trials.get(key, ())))
        return draw(known)

    def __len__(self) -> int:
        return len(self.contents.trials)

    def __repr__(self) -> str:
        told = f"{len(self._trials)} workloads, {len(self)} trials"
        problems = len(self.contents.problems)
        beside = f", {problems} lines that are no records" if problems else ""
        return f"TuningLog('{self.path}': {told}{beside})"

    def _repr_html_(self) -> str:
        found = summarise(self.contents)
        settings = dict.fromkeys(one.setting for one in found)
        tables = [
            functions_html(
                (
                    TableRow(one.name, None, one.trials, one.default_seconds, one.seconds)
                    for one in found
                    if one.setting == setting
                ),
                str(setting),
            )
            for setting in settings
        ]
        return "".join((plain(repr(self)), *tables))

    def _silence(self, func: PrimFunc) -> str:
        """Why the log has nothing to use where it has nothing."""
        known = self._trials.get(workload_key(func), ())
        if not known:
            return "the log has no trial of it"
        if not any(trial.seconds for trial in known):
            return f"all of its {len(known)} trials failed"
        return "it was tuned for other instructions"

    def _groups(self, func: PrimFunc, target: Target) -> list[_Group]:
        """What is known of a function for the target's instructions, the nearest setting first."""
        known = self._trials.get(workload_key(func))
        if not known:
            return []
        here = Setting.of(conditions(target), "cold")
        return sorted(_usable(known, here), key=lambda group: _nearness(group, here), reverse=True)


def _usable(known: list[Trial], here: Setting) -> Iterator[_Group]:
    for setting, trials in by_setting(known).items():
        best = best_trial(trials)
        if best is not None and setting.instructions == here.instructions:
            unlike = differences(replace(setting, cache=here.cache), here)
            yield _Group(setting, best, len(trials), setting.place == here.place, unlike)


def _nearness(group: _Group, here: Setting) -> tuple[object, ...]:
    setting = group.setting
    return (
        group.is_here,
        setting.generator == here.generator,
        setting.cache == here.cache,
        setting.cpu == here.cpu,
        setting.threads == here.threads,
        group.trials,
        group.best.time,
    )
