"""The errors of scheduling, with the loop nest in them: rendered only when somebody reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..tir.errors import TilewrightError
from ..tir.expr import Var
from ..tir.func import PrimFunc


class ScheduleError(TilewrightError, ValueError):
    """A schedule step that cannot be applied: what it names does not exist, or it would change the
    meaning.
    """


class ScheduleTypeError(ScheduleError, TypeError):
    """What is to be scheduled is no function."""


def refuse(
    func: PrimFunc, message: str, *, code: str, notes: Sequence[str] = (), hints: Sequence[str] = ()
) -> ScheduleError:
    """A ScheduleError that shows the function as it stood before the step."""
    return ScheduleError(
        message, code=code, where=lambda: f"in {func.name}:\n{func}", notes=notes, hints=hints
    )


def iteration(values: Mapping[Var, int]) -> str:
    """One concrete iteration in words: (i=0, j=3)."""
    return "(" + ", ".join(f"{var.name}={value}" for var, value in values.items()) + ")"
