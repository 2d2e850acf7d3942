"""Rules of the operators that make integers of floating-point numbers by a scale."""

from __future__ import annotations

from ....ops import quantization
from .rule import ImportRule, plain

RULES: dict[str, ImportRule] = {
    "DynamicQuantizeLinear": ImportRule(
        (11,), (), plain(quantization.DynamicQuantizeLinear()), outputs=3
    )
}
