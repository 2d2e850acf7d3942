"""A search with all that it needs: spaces, a log, a place that measures."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

from ..driver.backends.table import tuner_of
from ..driver.build import check_buildable
from ..driver.check.clock import Clock
from ..driver.check.collector import fewer_collections
from ..driver.resolve_target import resolve_target
from ..driver.tuning.errors import TuneError
from ..tir.func import PrimFunc
from ..tir.target import Target
from .log.choice import chosen
from .log.file import LogWriter, read_log
from .log.record import Trial
from .measure.machine import Machine
from .places.cluster import cluster
from .places.executors import Elsewhere
from .places.places import Here, Place
from .result import TunedFunction, TuneResult
from .run import Run
from .search.strategies import DEFAULT
from .space.space import RuleFunction, TuningSpace
from .task import Task, open_log


class Session:
    """A search that is ready to run: see `tune`, whose arguments it takes."""

    def __init__(
        self,
        what: PrimFunc | Sequence[tuple[PrimFunc, int]],
        target: Target | str | None = None,
        *,
        rule: RuleFunction | None = None,
        trials: int | None = None,
        seconds: float | None = None,
        log: str | os.PathLike[str] | None = None,
        resume: bool = True,
        seed: int = 0,
        strategy: str = DEFAULT,
        executor: Executor | str | None = None,
        callback: Callable[[Trial], None] | None = None,
        progress: Callable[[str], None] | None = None,
        stop: Event | None = None,
    ) -> None:
        self.target = resolve_target(target)
        pairs = [(what, 1)] if isinstance(what, PrimFunc) else list(what)
        for func, _ in pairs:
            check_tunable(func, self.target)
        if executor is None:
            tuner_of(self.target).check_here(self.target)
        self.stop = stop or Event()
        self._budget = trials, seconds
        self._log, self._resume = log, resume
        self._executor, self._progress = executor, progress
        self._writer: LogWriter | None = None
        self._clock = Clock()
        self._callback = callback
        spaces = [(TuningSpace(func, self.target, rule), count) for func, count in pairs]
        self._tasks = [Task(space, count, seed, self._keep, strategy) for space, count in spaces]

    def search(self) -> TuneResult:
        """Search until the budget is spent, or `stop` is set, or Ctrl-C."""
        with ExitStack() as stack:
            stack.enter_context(fewer_collections())
            place = stack.enter_context(closing(_place(self._executor, self._progress)))
            if self._log is not None:
                path = Path(self._log)
                known = read_log(path) if path.exists() else None
                if known is not None and self._resume:
                    for task in self._tasks:
                        task.resume(known, place.conditions(self.target))
                self._writer = stack.enter_context(LogWriter(self._log))
                open_log(self._writer, self._tasks, () if known is None else known.workloads)
            self._clock = place.clock
            reason = Run(self._tasks, place, *self._budget, self.stop).searched()
        return self.found(reason)

    def found(self, reason: str) -> TuneResult:
        """What was found so far."""
        histories = [(task, tuple(task.history)) for task in self._tasks]
        return TuneResult(
            tuple(
                TunedFunction(task.space.func, task.count, chosen(history), history)
                for task, history in histories
            ),
            reason,
            None if self._log is None else Path(self._log),
            self._clock.laps,
        )

    def _keep(self, trial: Trial) -> None:
        if self._writer is not None:
            self._writer.append(trial)
        if self._callback is not None:
            self._callback(trial)


def _place(executor: Executor | str | None, progress: Callable[[str], None] | None) -> Place:
    """Where candidates are measured. Raises: TuneError."""
    if executor is None:
        return Here(Machine(tell=progress))
    return cluster(executor) if isinstance(executor, str) else Elsewhere(executor)


def check_tunable(func: PrimFunc, target: Target) -> None:
    """Refuse what cannot be timed. Raises: TuneError, BuildError."""
    check_buildable(func, "tune")
    tuner_of(target)
    if func.dims:
        names = ", ".join(f"'{dim.name}'" for dim in func.dims)
        raise TuneError(
            f"tune: the sizes {names} of '{func.name}' are decided by a call; expected numbers.",
            code="tune-sizes",
            hints=("tune the function of the sizes that matter most.",),
        )
