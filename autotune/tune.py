"""tw.tune: search the schedules of functions, and keep every trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack, overload

from ..driver.tuning.errors import TuneError, TuneTypeError
from ..tir.errors import known_names
from ..tir.func import PrimFunc
from ..tir.target.target import Target
from .background import Tuning
from .options import TuneArguments, TuneOptions
from .result import TuneResult
from .session import Session


@overload
def tune(
    what: PrimFunc | Sequence[tuple[PrimFunc, int]],
    target: Target | str | None = None,
    *,
    background: Literal[False] = False,
    **options: Unpack[TuneArguments],
) -> TuneResult: ...


@overload
def tune(
    what: PrimFunc | Sequence[tuple[PrimFunc, int]],
    target: Target | str | None = None,
    *,
    background: Literal[True],
    **options: Unpack[TuneArguments],
) -> Tuning: ...


def tune(
    what: PrimFunc | Sequence[tuple[PrimFunc, int]],
    target: Target | str | None = None,
    *,
    background: bool = False,
    **options: Unpack[TuneArguments],
) -> TuneResult | Tuning:
    """Search the schedules of a function, or of several that share the budget, and measure them on
    this machine: on its CPU, or on its GPU for target "cuda".

    what: a function, or pairs of a function and how often it counts, as `graph.tasks` gives them.
    background: search in a thread, and return its handle at once.

    The options, all of them optional:
    rule: a function of a Schedule that asks with sch.sample_*; by default the rule that fits.
    trials, seconds: the budget; the first limit that is reached ends the search. Where neither is
    given: 64 trials for each function.
    log: a tuning log, to which every trial is appended as it ends. resume: count its trials of
    these functions, on this target and machine, as done (the default); False tries them again.
    seed: of everything that is drawn at random.
    strategy: "evolutionary" (the default), "evolutionary-xgboost" (the extra `cost`) or "random".
    executor: whose workers measure instead of this machine: any executor of concurrent.futures, or
    "dask://HOST:PORT", a Dask scheduler. Schedules are still made here, for `target`.
    sizes: numbers for the sizes that calls decide, [{"n": 1}, {"n": 64}], by the names of te.dim or
    of a model's ranges: each candidate is checked and timed at all of them, and its time is the
    geometric mean. Default: the least, the usual and the largest ones.
    callback: called with every trial. events: called with every event, a dictionary as
    autotune/events.schema.json has it. progress: called with a text that says what the search waits
    for. stop: ends the search once it is set, as Ctrl-C does; the result so far is returned.

    Raises: TuneError, BuildError, TargetError, LogError, CompilerNotFound; for a GPU NoDevice,
    NvrtcNotFound, ToolNotFound.
    """
    _check_options(options)
    session = Session(what, target, TuneOptions(**options))
    return Tuning(session) if background else session.search()


def _check_options(options: TuneArguments) -> None:
    """The options exist, and no budget is negative. Raises: TuneTypeError, TuneError."""
    names = TuneArguments.__annotations__
    unknown = next((name for name in options if name not in names), None)
    if unknown is not None:
        raise TuneTypeError(
            f"tune: there is no option '{unknown}'; expected {known_names(unknown, names)}.",
            code="tune-option",
            hints=("tw.tune(func, trials=64, seconds=60, log=path)",),
        )
    for name, budget in (("trials", options.get("trials")), ("seconds", options.get("seconds"))):
        if budget is not None and budget < 0:
            raise TuneError(
                f"tune: {name} is {budget!r}; expected 0 or more.",
                code="tune-budget",
                hints=("leave out both, and a search makes 64 trials of each function.",),
            )
