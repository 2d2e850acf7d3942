"""Rules of truth values: comparisons, logic, choice."""

from __future__ import annotations

from collections.abc import Callable

from ....ops import logic
from ....ops.base import Operator
from ..node import NodeReader
from .rule import Result, Rule, plain


def _swapped(op: Operator) -> Callable[[NodeReader], Result]:
    """a > b is b < a."""
    return lambda node: (op, (node.value(1), node.value(0)))


def _xor(node: NodeReader) -> Result:
    return logic.Not(), (node.emit(logic.Equal(), *node.inputs),)


RULES: dict[str, Rule] = {
    "And": Rule((7,), (), plain(logic.And())),
    "Equal": Rule((7, 11, 13, 19), (), plain(logic.Equal())),
    "Greater": Rule((7, 9, 13), (), _swapped(logic.Less())),
    "GreaterOrEqual": Rule((12, 16), (), _swapped(logic.LessOrEqual())),
    "IsNaN": Rule((9, 13, 20), (), plain(logic.IsNaN())),
    "Less": Rule((7, 9, 13), (), plain(logic.Less())),
    "LessOrEqual": Rule((12, 16), (), plain(logic.LessOrEqual())),
    "Not": Rule((1,), (), plain(logic.Not())),
    "Or": Rule((7,), (), plain(logic.Or())),
    "Where": Rule((9, 16), (), plain(logic.Where())),
    "Xor": Rule((7,), (), _xor),
}
