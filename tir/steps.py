"""The steps of functions of tensors that the language knows, beside C functions of the user's: what
schedules leave as it is, and lowering makes loops of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .buffer import Buffer
from .scatter import ScatterFunction, scatter_named, scatter_problem
from .suppression import SUPPRESS, SuppressionFunction, suppression_problem

StepFunction: TypeAlias = ScatterFunction | SuppressionFunction


def step_named(symbol: str) -> StepFunction | None:
    """The one whose symbol it is; None where it is that of a C function."""
    return SuppressionFunction() if symbol == SUPPRESS else scatter_named(symbol)


def step_problem(
    function: StepFunction, inputs: Sequence[Buffer], outputs: Sequence[Buffer]
) -> str | None:
    """What is wrong with the tensors of a step; None for nothing."""
    if isinstance(function, SuppressionFunction):
        return suppression_problem(inputs, outputs)
    return scatter_problem(function, inputs, outputs)
