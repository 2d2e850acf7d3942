"""tw.tune: search the schedules of functions, and keep every trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from ..driver.build import check_buildable, resolve_target
from ..runtime.timing import seconds_text
from ..tir.func import PrimFunc
from ..tir.target import Target
from .choice import chosen
from .errors import TuneError
from .jobs import Reply
from .log import LogWriter, read_log
from .machine import Machine, conditions
from .places import Here, Place
from .record import Trial
from .space import RuleFunction, TuningSpace
from .task import Batch, LastRounds, Task, open_log

DEFAULT_TRIALS = 64  # of each function
BATCH = 4  # candidates of a function that take turns: its data is made once for them


@dataclass(frozen=True, slots=True)
class TunedFunction:
    """What a search found for one function.

    best: the trial whose schedule is to be used: the default's, unless another one is faster beyond
    the noise of paired rounds; None where nothing ran. count: how often a model runs the function.
    history: every trial, those of a log that was resumed first.
    """

    func: PrimFunc
    count: int
    best: Trial | None
    history: tuple[Trial, ...] = field(repr=False)

    @property
    def default_time(self) -> float | None:
        """Seconds of the rule's own schedule, in the rounds of the best one where it was there."""
        found = [trial for trial in self.history if trial.is_default and trial.seconds]
        session = None if self.best is None else self.best.method.session
        paired = [trial for trial in found if trial.method.session == session]
        return (paired or found)[-1].seconds if found else None

    def __str__(self) -> str:
        best = None if self.best is None else self.best.seconds
        told = "nothing ran" if best is None else f"best {seconds_text(best)}"
        if best is not None and self.default_time is not None:
            told += f", default {seconds_text(self.default_time)}"
        failed = sum(trial.outcome != "ok" for trial in self.history)
        return f"{self.func.name}: {told}; {len(self.history)} trials, {failed} failed"


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What a search found. stopped_because: in words."""

    functions: tuple[TunedFunction, ...]
    stopped_because: str

    @property
    def best(self) -> Trial | None:
        """The best trial of a search for one function."""
        return self.functions[0].best if len(self.functions) == 1 else None

    @property
    def history(self) -> tuple[Trial, ...]:
        """Every trial."""
        return tuple(trial for function in self.functions for trial in function.history)

    @property
    def default_time(self) -> float | None:
        """Seconds of the rule's schedules, each as often as it counts; None without one."""
        return _total([(f.count, f.default_time) for f in self.functions])

    @property
    def best_time(self) -> float | None:
        """Seconds of the best schedules, each as often as it counts; None without one."""
        return _total([(f.count, f.best.seconds if f.best else None) for f in self.functions])

    def __str__(self) -> str:
        return "\n".join([*map(str, self.functions), f"ended: {self.stopped_because}"])


def _total(parts: Sequence[tuple[int, float | None]]) -> float | None:
    known = [count * seconds for count, seconds in parts if seconds is not None]
    return sum(known) if len(known) == len(parts) else None


def tune(
    what: PrimFunc | Sequence[tuple[PrimFunc, int]],
    target: Target | str | None = None,
    *,
    rule: RuleFunction | None = None,
    trials: int | None = None,
    seconds: float | None = None,
    log: str | os.PathLike[str] | None = None,
    resume: bool = True,
    seed: int = 0,
    callback: Callable[[Trial], None] | None = None,
) -> TuneResult:
    """Search the schedules of a function, or of several that share the time, on this machine.

    what: a function, or pairs of one and how often it counts, as `graph.tasks` gives them. rule: a
    function of a Schedule that asks with sch.sample_*; by default the rule that fits.
    trials, seconds: what ends the search, the first that is reached; 64 trials for each function
    where neither is given. log: where every trial is added as it ends; what stands there for these
    functions, this target and machine counts as done, unless `resume` is false. callback: told
    every trial.
    Ctrl-C ends the search; the result so far is returned.
    Raises: TuneError, BuildError, TargetError, LogError, CompilerNotFound.
    """
    resolved = resolve_target(target)
    pairs = [(what, 1)] if isinstance(what, PrimFunc) else list(what)
    for func, _ in pairs:
        check_tunable(func, resolved)
    writer: LogWriter | None = None

    def keep(trial: Trial) -> None:
        if writer is not None:
            writer.append(trial)
        if callback is not None:
            callback(trial)

    tasks = [Task(TuningSpace(func, resolved, rule), count, seed, keep) for func, count in pairs]
    with ExitStack() as stack:
        if log is not None:
            path = Path(log)
            known = read_log(path) if path.exists() else None
            if known is not None and resume:
                for task in tasks:
                    task.resume(known, conditions(resolved))
            writer = stack.enter_context(LogWriter(log))
            open_log(writer, tasks, () if known is None else known.workloads)
        place = stack.enter_context(closing(Here(Machine())))
        reason = _Run(tasks, place, trials, seconds).searched()
    found = (
        TunedFunction(task.space.func, task.count, chosen(task.history), tuple(task.history))
        for task in tasks
    )
    return TuneResult(tuple(found), reason)


def check_tunable(func: PrimFunc, target: Target) -> None:
    """Refuse what cannot be timed. Raises: TuneError, BuildError."""
    check_buildable(func, "tune")
    if target.kind != "c":
        raise TuneError(
            f"tune: target '{target}' runs nothing that can be timed; expected 'c'.",
            code="tune-target",
        )
    if func.dims:
        names = ", ".join(f"'{dim.name}'" for dim in func.dims)
        raise TuneError(
            f"tune: the sizes {names} of '{func.name}' are decided by a call; expected numbers.",
            code="tune-sizes",
            hints=("tune the function of the sizes that matter most.",),
        )


class _Run:
    """A search for several functions at one place, until a budget is spent."""

    def __init__(
        self, tasks: Sequence[Task], place: Place, trials: int | None, seconds: float | None
    ) -> None:
        self._tasks = tasks
        self._place = place
        self._limit = trials
        if trials is None and seconds is None:
            self._limit = DEFAULT_TRIALS * len(tasks)
        self._seconds = seconds
        self._deadline = float("inf") if seconds is None else perf_counter() + seconds
        self._flying: dict[Future[Reply], Batch | LastRounds] = {}

    def searched(self) -> str:
        """Search all functions, that first which promises most; why the search ended."""
        try:
            while (reason := self._why_not()) is None or self._flying:
                while reason is None and len(self._flying) < self._place.slots:
                    if not self._started():
                        break
                    reason = self._why_not()
                self._wait()
            self._finals()
            return reason
        except KeyboardInterrupt:
            return "it was interrupted"

    def _why_not(self) -> str | None:
        """Why no more is tried; None where more is."""
        if self._limit is not None and self._left() <= 0:
            return f"{self._limit} trials are done"
        if perf_counter() > self._deadline:
            return f"{self._seconds:g} seconds are over"
        if all(task.outlook.is_over for task in self._tasks):
            return str(max((task.outlook for task in self._tasks), key=lambda one: one.chance))
        return None

    def _left(self) -> int:
        assert self._limit is not None
        return self._limit - sum(task.tried for task in self._tasks)

    def _started(self) -> bool:
        """Send one more batch, of the function that promises most; False where none has one now."""
        ready = [task for task in self._tasks if not task.outlook.is_over]
        for task in sorted(ready, key=lambda task: -task.expected_gain):
            most = BATCH if self._limit is None else min(BATCH, self._left())
            batch = task.next_batch(most, self._place)
            if batch is not None:
                self._send(batch)
                return True
        return False

    def _send(self, part: Batch | LastRounds) -> None:
        self._flying[self._place.submit(part.job)] = part

    def _wait(self) -> list[Batch | LastRounds]:
        """Take in at least one reply, where one is to come; whose they are."""
        finished, _ = wait(self._flying, return_when=FIRST_COMPLETED)
        parts = []
        for future in finished:
            parts.append(self._flying.pop(future))
            parts[-1].take(future.result())
        return parts

    def _finals(self) -> None:
        """Time the best candidates of each function and its default in turns."""
        found = [last for task in self._tasks if (last := task.finals()) is not None]
        while found or self._flying:
            while found and len(self._flying) < self._place.slots:
                self._send(found.pop(0))
            lasts = (part for part in self._wait() if isinstance(part, LastRounds))
            found.extend(last for last in lasts if not last.finals.is_over)
