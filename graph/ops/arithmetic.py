"""Arithmetic on two or more tensors: Add, Sub, Mul, Div, Pow, Sum, Min, Max.

Integers wrap around. What else ONNX calls arithmetic is made of these: Neg is Mul by -1, Reciprocal
is 1 / x, Clip is Min of Max.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from ...tir.expr import Expr, const
from ...tir.number import integer_range
from ...tir.te import te
from ..types import Array
from .elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class Add(Elementwise):
    """The sum of two tensors."""

    commutative = True
    neutral = 0  # x + 0 is x but for the sign of a zero

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.add(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a + b


@dataclass(frozen=True, slots=True)
class Sub(Elementwise):
    """The difference of two tensors."""

    neutral = 0

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.subtract(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a - b


@dataclass(frozen=True, slots=True)
class Mul(Elementwise):
    """The product of two tensors."""

    commutative = True
    neutral = 1

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.multiply(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a * b


@dataclass(frozen=True, slots=True)
class Div(Elementwise):
    """The quotient of two tensors; of integers it is rounded towards zero, and 0 for a divisor of
    0.
    """

    neutral = 1

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = arrays
        if np.issubdtype(a.dtype, np.floating):
            with np.errstate(all="ignore"):
                return (np.divide(a, b),)
        with np.errstate(all="ignore"):
            floor, rest = np.divmod(a, b)
        return (np.add(floor, np.less(floor, 0) & np.not_equal(rest, 0), dtype=a.dtype),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        if a.dtype.is_float:
            return a / b
        if integer_range(a.dtype)[0] == 0:
            return a // b
        # of what is not above 0, since the least number has no opposite
        quotient = te.minimum(a, 0 - a) // te.minimum(b, 0 - b)
        sign = te.select((a ^ b) < 0, const(-1, a.dtype), const(1, a.dtype))
        return quotient * sign


@dataclass(frozen=True, slots=True)
class Pow(Elementwise):
    """The first tensor to the power of the second, as IEEE 754 has it: a negative base takes an
    integral exponent only.
    """

    takes = "float"
    neutral = 1

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.power(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.pow(*elements)


@dataclass(frozen=True, slots=True)
class Sum(Elementwise):
    """The sum of one or more tensors, from left to right."""

    arity = (1, None)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (reduce(np.add, arrays),)

    def element(self, *elements: Expr) -> Expr:
        return reduce(lambda a, b: a + b, elements)


@dataclass(frozen=True, slots=True)
class Max(Elementwise):
    """The largest of one or more tensors; NaN where one is NaN."""

    arity = (1, None)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (reduce(np.maximum, arrays),)

    def element(self, *elements: Expr) -> Expr:
        return reduce(te.maximum, elements)


@dataclass(frozen=True, slots=True)
class Min(Elementwise):
    """The smallest of one or more tensors; NaN where one is NaN."""

    arity = (1, None)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (reduce(np.minimum, arrays),)

    def element(self, *elements: Expr) -> Expr:
        return reduce(te.minimum, elements)
