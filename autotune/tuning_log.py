"""TuningLog: a log as the schedules and times that a build asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..runtime.host import host
from ..schedule.errors import ScheduleError
from ..schedule.schedule import Schedule
from ..tir.canonical import workload_key
from ..tir.func import PrimFunc
from ..tir.json_reader import Json
from ..tir.target import Target
from .choice import chosen
from .log import Contents, read_log
from .record import Trial

TUNED, SIMILAR = "tuned", "similar"


class TuningLog:
    """What a log knows of functions: give it to `tw.build` or `tw.compile` as `schedules`.

    A schedule that was tuned on this CPU model for the same target is "tuned"; one from another
    machine with the same instructions, or for another number of threads, is "similar": it is taken,
    its times are not.
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
        for origin in (TUNED, SIMILAR):
            trial = chosen(self._known(func, target, origin))
            if trial is None:
                continue
            try:
                return Schedule.replay(func, trial.trace, target, origin)
            except ScheduleError:  # the primitives have changed since
                continue
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        """What the recommended schedule took here, its constants from memory; None: not known."""
        trial = chosen(self._known(func, target, TUNED))
        if trial is None or (func.constants and trial.method.cache != "cold"):
            return None
        return trial.seconds

    def __len__(self) -> int:
        return len(self.contents.trials)

    def __repr__(self) -> str:
        told = f"{len(self._trials)} workloads, {len(self)} trials"
        problems = len(self.contents.problems)
        beside = f", {problems} lines that are no records" if problems else ""
        return f"TuningLog('{self.path}': {told}{beside})"

    def _known(self, func: PrimFunc, target: Target, origin: str) -> list[Trial]:
        known = self._trials.get(workload_key(func), ())
        wanted = target.to_json()
        if origin == TUNED:
            return [
                trial
                for trial in known
                if trial.conditions.target == wanted and trial.conditions.cpu == host().model
            ]
        groups: dict[str, list[Trial]] = {}
        for trial in known:
            if _instructions(trial.conditions.target) == _instructions(wanted):
                groups.setdefault(str(trial.conditions), []).append(trial)
        return max(groups.values(), key=len, default=[])  # times of two machines are not compared


def _instructions(target: Mapping[str, Json]) -> tuple[Json, ...]:
    return tuple(target.get(name) for name in ("kind", "isa", "features"))
