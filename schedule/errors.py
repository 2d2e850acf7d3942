"""The errors of scheduling, with the loop nest in them: rendered only when somebody reads them.

A step is refused for one of three reasons (`Kind`): it was asked for what it does not take, it
would change what the function means, or tilewright cannot carry it out, or not decide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ..tir.errors import TilewrightError, Where
from ..tir.func import PrimFunc
from .conflict_note import ConflictNote


class Kind(Enum):
    """Why a step is refused.

    ARGUMENT: what it was given does not exist, or is nothing that the step takes.
    CONFLICT: it would change the result; a note names two iterations and the element that both
    touch, or what the first one has not finished.
    LIMIT: it may well keep the meaning; tilewright has no rewrite for it, or cannot tell.
    """

    ARGUMENT = "argument"
    CONFLICT = "conflict"
    LIMIT = "limit"


LIMIT_NOTE = "a limit of tilewright: the step may well keep the meaning."


class ScheduleError(TilewrightError, ValueError):
    """A schedule step that is refused. A conflict that names no iterations is none that was seen:
    it counts as a limit.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        kind: Kind = Kind.ARGUMENT,
        where: Where = None,
        notes: Sequence[str] = (),
        hints: Sequence[str] = (),
    ) -> None:
        self.kind = Kind.LIMIT if kind is Kind.CONFLICT and not notes else kind
        if self.kind is Kind.LIMIT:
            notes = (*notes, LIMIT_NOTE)
        super().__init__(message, code=code, where=where, notes=notes, hints=hints)

    @property
    def conflict(self) -> ConflictNote | None:
        """The two iterations that a note names; None where no note does."""
        return next((note for note in self.notes if isinstance(note, ConflictNote)), None)

    def _repr_html_(self) -> str:
        conflict = self.conflict
        return super()._repr_html_() + ("" if conflict is None else conflict.picture().svg)


class ScheduleTypeError(ScheduleError, TypeError):
    """What is to be scheduled is no function."""


def refuse(
    func: PrimFunc,
    message: str,
    *,
    code: str,
    kind: Kind,
    notes: Sequence[str] = (),
    hints: Sequence[str] = (),
) -> ScheduleError:
    """A ScheduleError that shows the function as it stood before the step."""
    return ScheduleError(
        message,
        code=code,
        kind=kind,
        where=lambda: f"in {func.name}:\n{func}",
        notes=notes,
        hints=hints,
    )
