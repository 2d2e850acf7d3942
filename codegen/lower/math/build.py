"""What the expansions are written with: the float formats, and a builder of Lets.

Where a product feeds a sum, an expansion says Fma itself, and splitting a number into halves relies
on its roundings: the pass that contracts a*b + c runs before this one, never after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....tir.dtype import FLOAT32, FLOAT64, INT32, INT64, DType
from ....tir.expr import Add, Const, Expr, Let, Mul, Number, Sub, Var, const
from ....tir.lowered import Fma


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE binary format: its type, the integer type of its bits, and its sizes.

    mantissa: bits after the point. bias: of the exponent; it is the largest exponent as well.
    """

    type: DType
    bits: DType
    mantissa: int
    bias: int

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with a full mantissa."""
        return float(2.0 ** (1 - self.bias))

    def bits_of(self, value: float) -> int:
        """The bits of `value`, as an integer."""
        return int(np.asarray(value, dtype=self.type.numpy).view(self.bits.numpy))


SINGLE = Format(FLOAT32, INT32, 23, 127)
DOUBLE = Format(FLOAT64, INT64, 52, 1023)


class Lets:
    """Writes the expansion of one call: values are named by Let, in order of definition."""

    def __init__(self) -> None:
        self._bound: list[tuple[Var, Expr]] = []

    def let(self, name: str, value: Expr) -> Expr:
        """A name for `value`, which is evaluated once. Names and constants stand for themselves."""
        if isinstance(value, Var | Const):
            return value
        var = Var(name, value.dtype)
        self._bound.append((var, value))
        return var

    def close(self, body: Expr) -> Expr:
        """`body` inside the Lets made so far; the builder forgets them."""
        for var, value in reversed(self._bound):
            body = Let(var, value, body)
        self._bound.clear()
        return body


class Builder(Lets):
    """Writes the expansion of a call in a float format."""

    def __init__(self, dtype: DType) -> None:
        super().__init__()
        self.format = SINGLE if dtype == FLOAT32 else DOUBLE

    def number(self, value: Number) -> Const:
        """`value` in this format."""
        return const(value, self.format.type)

    def polynomial(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """The polynomial with `coefficients`, lowest first, by Horner's rule: one Fma a degree, or
        an addition for the highest one where its coefficient is 1.
        """
        *lower, highest = coefficients
        result: Expr = self.number(highest)
        if highest == 1.0 and lower:
            result = Add(x, self.number(lower.pop()))
        for coefficient in reversed(lower):
            result = Fma(result, x, self.number(coefficient))
        return result

    def half(self, value: float) -> Const:
        """`value` rounded to half the mantissa."""
        mantissa, exponent = math.frexp(value)
        scale = 2.0 ** ((self.format.mantissa + 1) // 2)
        return self.number(math.ldexp(round(mantissa * scale) / scale, exponent))

    def halves(self, x: Expr, name: str) -> tuple[Expr, Expr]:
        """x as a sum of two numbers of half the mantissa each, whose products are exact.

        Veltkamp's splitting. Requires: x * 2**(half the mantissa + 1) does not overflow.
        """
        if isinstance(x, Const):
            half = self.half(float(x.value))
            return half, self.number(float(x.value) - float(half.value))
        factor = self.number(2.0 ** ((self.format.mantissa + 2) // 2) + 1.0)
        scaled = self.let(f"{name}_scaled", Mul(x, factor))
        high = self.let(f"{name}_high", Sub(scaled, Sub(scaled, x)))
        return high, self.let(f"{name}_low", Sub(x, high))

    def exact_sum(self, large: Expr, small: Expr, name: str) -> tuple[Expr, Expr]:
        """large + small rounded, and exactly what the rounding lost.

        Dekker's fast sum. Requires: |large| >= |small|, or large is 0.
        """
        total = self.let(name, Add(large, small))
        return total, self.let(f"{name}_lost", Add(Sub(large, total), small))
