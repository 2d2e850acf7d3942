"""Rules of the operators that act element by element."""

from __future__ import annotations

from ...ops import elementwise
from .rule import Rule, plain

RULES: dict[str, Rule] = {
    "Add": Rule((7, 13, 14), (), plain(elementwise.Add())),
    "Mul": Rule((7, 13, 14), (), plain(elementwise.Mul())),
    "Relu": Rule((6, 13, 14), (), plain(elementwise.Relu())),
    "Sum": Rule((6, 8, 13), (), plain(elementwise.Sum())),
}
