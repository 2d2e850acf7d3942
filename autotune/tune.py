"""tw.tune: search the schedules of functions, and keep every trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from threading import Event
from typing import Literal, overload

from ..tir.func import PrimFunc
from ..tir.target import Target
from .background import Tuning
from .log.record import Trial
from .result import TuneResult
from .search.strategies import DEFAULT
from .session import Session
from .space.space import RuleFunction


@overload
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
    strategy: str = DEFAULT,
    executor: Executor | str | None = None,
    callback: Callable[[Trial], None] | None = None,
    progress: Callable[[str], None] | None = None,
    stop: Event | None = None,
    background: Literal[False] = False,
) -> TuneResult: ...


@overload
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
    strategy: str = DEFAULT,
    executor: Executor | str | None = None,
    callback: Callable[[Trial], None] | None = None,
    progress: Callable[[str], None] | None = None,
    stop: Event | None = None,
    background: Literal[True],
) -> Tuning: ...


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
    strategy: str = DEFAULT,
    executor: Executor | str | None = None,
    callback: Callable[[Trial], None] | None = None,
    progress: Callable[[str], None] | None = None,
    stop: Event | None = None,
    background: bool = False,
) -> TuneResult | Tuning:
    """Search the schedules of a function, or of several that share the time, on this machine: its
    CPU, or its GPU for target "cuda".

    what: a function, or pairs of one and how often it counts, as `graph.tasks` gives them. rule: a
    function of a Schedule that asks with sch.sample_*; by default the rule that fits.
    trials, seconds: what ends the search, the first that is reached; 64 trials for each function
    where neither is given. log: where every trial is added as it ends; what stands there for these
    functions, this target and machine counts as done, unless `resume` is false. strategy:
    "evolutionary", "evolutionary-xgboost" (the extra `cost`) or "random". executor: whose
    workers measure, in place of this machine: any of concurrent.futures, or "dask://HOST:PORT", a
    scheduler of Dask; the schedules are made here, for `target`. callback: told every trial;
    progress: told in words what the search waits for. background: search in a thread, and return
    its handle at once.
    Ctrl-C and `stop`, once it is set, end the search; the result so far is returned.
    Raises: TuneError, BuildError, TargetError, LogError, CompilerNotFound; for a GPU NoDevice,
    NvrtcNotFound, ToolNotFound.
    """
    session = Session(
        what,
        target,
        rule=rule,
        trials=trials,
        seconds=seconds,
        log=log,
        resume=resume,
        seed=seed,
        strategy=strategy,
        executor=executor,
        callback=callback,
        progress=progress,
        stop=stop,
    )
    return Tuning(session) if background else session.search()
