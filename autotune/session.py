"""A search with its search spaces, its log and the place that measures."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Event

from ..driver.backends.table import tuner_of
from ..driver.build import check_buildable
from ..driver.check.clock import Clock
from ..driver.check.collector import fewer_collections
from ..driver.resolve_target import resolve_target
from ..driver.tuning.errors import TuneError
from ..tir.func import PrimFunc
from ..tir.target.target import Target
from .events import EventStream
from .log.choice import choose
from .log.file import Contents, LogWriter, read_log
from .log.record import Trial
from .measure.machine import Machine
from .options import TuneOptions
from .places.cluster import cluster
from .places.executors import Elsewhere
from .places.places import Here, Place
from .result import TunedFunction, TuneResult
from .run import Run
from .sizes import sizes_to_time
from .space.space import TuningSpace
from .task import Task, open_log

OnResume = Callable[[Sequence[Trial], int], None]


class Session:
    """A search that is ready to run. The arguments are those of `tune`."""

    def __init__(
        self,
        what: PrimFunc | Sequence[tuple[PrimFunc, int]],
        target: Target | str | None,
        options: TuneOptions,
        began: float | None = None,
    ) -> None:
        """began: when the budget began to be spent, by `perf_counter`; default: with the search."""
        self.target = resolve_target(target)
        pairs = [(what, 1)] if isinstance(what, PrimFunc) else list(what)
        for func, _ in pairs:
            check_tunable(func, self.target)
        if options.executor is None:
            tuner_of(self.target).check_here(self.target)
        self._options = options
        self._began = began
        self._stop = options.stop or Event()
        self._events = None if options.events is None else EventStream(options.events)
        self._writer: LogWriter | None = None
        self._unreported = deque[Trial]()
        self._clock = Clock()
        sizes = sizes_to_time([func for func, _ in pairs], options.sizes)
        spaces = [TuningSpace(func, self.target, options.rule) for func, _ in pairs]
        how = (options.seed, self._keep, self._report, options.strategy)
        self._tasks = [
            Task(space, count, *how, sizes=values)
            for space, (_, count), values in zip(spaces, pairs, sizes, strict=True)
        ]

    def search(self, on_resume: OnResume | None = None) -> TuneResult:
        """Search until the budget is spent, the stop event is set, or Ctrl-C.

        on_resume: called once where a log is resumed, with its trials of these functions and with
        how many of them count toward the budget.
        """
        options = self._options
        if self._events is not None:
            self._events.began([(task.workload, task.count) for task in self._tasks])
        with ExitStack() as stack:
            stack.enter_context(fewer_collections())
            place = stack.enter_context(closing(_place(options.executor, self._note)))
            if options.log is not None:
                path = Path(options.log)
                known = read_log(path) if path.exists() else None
                if known is not None and options.resume:
                    self._resume(known, place, on_resume)
                self._writer = stack.enter_context(LogWriter(options.log))
                open_log(self._writer, self._tasks, () if known is None else known.workloads)
            self._clock = place.clock
            reason = Run(self._tasks, place, options, self._stop, self._began).search()
            while self._unreported:  # where it was interrupted between two reports
                with suppress(KeyboardInterrupt):
                    self._report()
        result = self.result(reason)
        if self._events is not None:
            self._events.ended(result)
        return result

    def stop(self) -> None:
        """End the search after the trials that are being measured."""
        self._stop.set()

    def result(self, reason: str) -> TuneResult:
        """The result so far. reason: why the search ended, or that it is running."""
        histories = [(task, tuple(task.history)) for task in self._tasks]
        return TuneResult(
            tuple(
                TunedFunction(task.space.func, task.count, choose(history), history)
                for task, history in histories
            ),
            reason,
            None if self._options.log is None else Path(self._options.log),
            self._clock.laps,
        )

    def _resume(self, known: Contents, place: Place, on_resume: OnResume | None) -> None:
        """Count the trials of a log that were measured under the same conditions as done."""
        here = place.conditions(self.target)
        for task in self._tasks:
            task.resume(known, here)
        if self._events is not None:
            self._events.resumed([trial for task in self._tasks for trial in task.history])
        if on_resume is not None:
            trials = [trial for task in self._tasks for trial in task.history]
            tried = sum(task.tried for task in self._tasks)
            on_resume(sorted(trials, key=lambda trial: trial.time), tried)

    def _keep(self, trials: Sequence[Trial]) -> None:
        """Write trials to the log, all of them or none."""
        if self._writer is not None:
            self._writer.append(*trials)
        self._unreported.extend(trials)

    def _report(self) -> None:
        """Report the trials that were kept."""
        while self._unreported:
            trial = self._unreported.popleft()
            if self._events is not None:
                self._events.trial(trial)
            if self._options.callback is not None:
                self._options.callback(trial)

    def _note(self, text: str) -> None:
        """Report what the search waits for."""
        if self._options.progress is not None:
            self._options.progress(text)
        if self._events is not None:
            self._events.waiting(text)


def _place(executor: Executor | str | None, progress: Callable[[str], None] | None) -> Place:
    """The place that measures. Raises: TuneError."""
    if executor is None:
        return Here(Machine(tell=progress))
    return cluster(executor) if isinstance(executor, str) else Elsewhere(executor)


def check_tunable(func: PrimFunc, target: Target) -> None:
    """Refuse a function that cannot be timed. Raises: TuneError, BuildError."""
    check_buildable(func, "tune")
    tuner = tuner_of(target)
    if func.dims and tuner.device == "GPU":
        raise TuneError(
            f"tune: calls decide the sizes of '{func.name}'; expected numbers for '{target}': "
            "candidates are timed at several sizes on a CPU alone.",
            code="tune-gpu-sizes",
            hints=("tune the function of the sizes that matter most.",),
        )
