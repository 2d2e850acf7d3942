"""The errors of scheduling, with the loop nest in them: rendered only when somebody reads them."""

from __future__ import annotations

from collections.abc import Sequence

from ..tir.errors import TilewrightError
from ..tir.func import PrimFunc

# The codes of the rules about the order in which elements are written and read, and about who
# shares them: such a refusal names two iterations that would clash and the element. Every other
# rule is about a form that a step does not take, or about the work that it would repeat.
ORDER_RULES = frozenset(
    {
        "init-inside",
        "loop-carries",
        "loop-clash",
        "merge-order",
        "operand-later",
        "reader-early",
        "reader-inside",
        "reduction-open",
        "reverse-overlap",
        "scan-carries",
        "scan-order",
        "scope-carries",
        "storage-elsewhere",
        "writer-inside",
    }
)


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
