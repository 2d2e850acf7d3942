"""Quotients by a number of which more is known than its value."""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.expr import Call, Expr
from ...tir.intrinsics import ROUND_QUOTIENT
from ..types import Array
from .elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class RoundQuotient(Elementwise):
    """The nearest integer to x / step, ties to even, at most 512 in magnitude. Promised for
    steps from 2**-60 to 2**60 in magnitude.
    """

    arity = (2, 2)
    takes = "float"
    decides = True
    is_of_levels = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (ROUND_QUOTIENT.meaning(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return Call(ROUND_QUOTIENT, elements)
