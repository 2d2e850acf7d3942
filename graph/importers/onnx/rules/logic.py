"""Rules of truth values: comparisons, logic, choice."""

from __future__ import annotations

from collections.abc import Callable

from ....ops import logic
from ....ops.base import Operator
from ..node import NodeReader
from .rule import ImportRule, Result, plain


def _swapped(op: Operator) -> Callable[[NodeReader], Result]:
    """a > b is b < a."""
    return lambda node: (op, (node.value(1), node.value(0)))


def _xor(node: NodeReader) -> Result:
    return logic.Not(), (node.emit(logic.Equal(), *node.inputs),)


def _is_infinite(node: NodeReader) -> Result:
    up, down = (node.integer(f"detect_{way}", 1) != 0 for way in ("positive", "negative"))
    return logic.IsInf(up, down), node.inputs


RULES: dict[str, ImportRule] = {
    "And": ImportRule((7,), (), plain(logic.And())),
    "Equal": ImportRule((7, 11, 13, 19), (), plain(logic.Equal())),
    "Greater": ImportRule((7, 9, 13), (), _swapped(logic.Less())),
    "GreaterOrEqual": ImportRule((12, 16), (), _swapped(logic.LessOrEqual())),
    "IsInf": ImportRule((10, 20), ("detect_negative", "detect_positive"), _is_infinite),
    "IsNaN": ImportRule((9, 13, 20), (), plain(logic.IsNaN())),
    "Less": ImportRule((7, 9, 13), (), plain(logic.Less())),
    "LessOrEqual": ImportRule((12, 16), (), plain(logic.LessOrEqual())),
    "Not": ImportRule((1,), (), plain(logic.Not())),
    "Or": ImportRule((7,), (), plain(logic.Or())),
    "Where": ImportRule((9, 16), (), plain(logic.Where())),
    "Xor": ImportRule((7,), (), _xor),
}
