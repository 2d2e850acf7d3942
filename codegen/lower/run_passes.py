"""Run passes in order: each is timed, named in errors, and verified where that is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.verify.verify import Stage, verify

Pass = Callable[[PrimFunc], PrimFunc]
Watch = Callable[[str, PrimFunc, float], None]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in order, from one stage to the next."""

    before: Stage
    after: Stage
    passes: tuple[Pass, ...]


class Verified(Enum):
    """Where a function is verified against its stage while passes run."""

    NOWHERE = "nowhere"
    ENDS = "ends"  # what is given, and what comes of it
    EACH = "each"  # also what each pass returns


def run_passes(
    func: PrimFunc,
    pipeline: Pipeline,
    *,
    verified: Verified = Verified.ENDS,
    watch: Watch | None = None,
) -> PrimFunc:
    """The function after the passes of a pipeline.

    watch: called after each pass with its name, the function and the seconds that the pass took.
    Raises: what a pass raises, and VerificationError for what it returns, with its name.
    """
    if verified is not Verified.NOWHERE:
        verify(func, pipeline.before)
    for number, step in enumerate(pipeline.passes, 1):
        last = number == len(pipeline.passes)
        began = time.perf_counter()
        try:
            func = step(func)
            seconds = time.perf_counter() - began
            if verified is Verified.EACH or (last and verified is Verified.ENDS):
                verify(func, pipeline.after, underway=not last)
        except Exception as error:
            _name(error, step)
            raise
        if watch is not None:
            watch(_name_of(step), func, seconds)
    return func


def _name(error: Exception, step: Pass) -> None:
    """Say in an error which pass raised it, or made what was refused."""
    if isinstance(error, TilewrightError):
        error.message = f"{_name_of(step)}: {error.message}"
    else:
        error.add_note(f"in the pass {_name_of(step)}")


def _name_of(step: Pass) -> str:
    return type(step).__name__
