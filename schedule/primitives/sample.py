"""Decision sample_categorical: a step that asks a question and changes no function."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ScheduleError
from ..trace.decisions import Question
from .parameters import OPTIONAL, PLAIN
from .step_form import StepForm


class DecisionForm(StepForm[Question]):
    """A step that records the answer to a question. Its function gets the number of the step and
    the arguments by name.
    """

    __slots__ = ()


def ask(step: int, candidates: Sequence[object], default: int = 0, name: str = "") -> Question:
    """The question which of `candidates` to take. Raises: ScheduleError where `default` is the
    index of none.
    """
    if not 0 <= default < len(candidates):
        raise ScheduleError(
            f"sample_categorical: the default is number {default} of {len(candidates)} candidates.",
            code="sample-default",
        )
    return Question(step, name, tuple(candidates), default)


SAMPLE_CATEGORICAL = DecisionForm(
    "sample_categorical", ask, {"candidates": PLAIN, "default": PLAIN, "name": OPTIONAL}
)
