"""PowInteger: integers to the power of integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ..types import Array
from .elementwise import Elementwise

_MOST = 64  # beyond, a power of any number but -1, 0 and 1 overflows


@dataclass(frozen=True, slots=True)
class PowInteger(Elementwise):
    """The first integer to the power of the second; 0 to the power of 0 is 1. It wraps around.

    Where |x| > 1, an exponent above 64 counts as 64, or as 65 where it is odd: the result overflows
    either way. A negative exponent gives 1 / x**-n rounded towards 0, and 0 where x is 0.
    """

    neutral = 1
    takes = "integer"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, n = arrays
        odd = np.bitwise_and(n, 1)
        size = np.where(np.greater(n, _MOST), odd + _MOST, np.maximum(n, 0)).astype(x.dtype)
        with np.errstate(all="ignore"):
            power = np.power(x, size)
        unit = np.where(np.equal(x, 1) | (np.equal(x, -1) & np.equal(odd, 0)), 1, 0)
        small = np.where(np.equal(x, -1) & np.equal(odd, 1), -1, unit)
        return (np.where(np.less(n, 0), small, power).astype(x.dtype),)

    def element(self, *elements: Expr) -> Expr:
        x, n = elements

        def flag(condition: Expr) -> Expr:
            return te.cast(condition, x.dtype)

        # in products, since a chain of choices would read x and n for each of them
        odd = n & 1
        size = n + (odd + _MOST - n) * flag(n > _MOST)
        power, square = (x - 1) * odd + 1, x
        for bit in range(1, _MOST.bit_length()):
            square = square * square
            power = power * ((square - 1) * ((size >> bit) & 1) + 1)
        small = flag(te.eq(x, 1)) + flag(te.eq(x, -1)) * (1 - odd * 2)
        return power + (small - power) * flag(n < 0)
