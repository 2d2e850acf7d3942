"""Truth values and what they choose: Equal, Less, LessOrEqual, IsNaN, IsInf, And, Or, Not, Where.

Greater is Less with its inputs swapped; Xor of truth values is Not of Equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ..types import Array, TensorType
from .base import check_arity, check_bool, check_same_dtype
from .elementwise import Elementwise, broadcast


@dataclass(frozen=True, slots=True)
class Equal(Elementwise):
    """a == b; NaN equals nothing."""

    commutative = True
    takes = "any"
    gives = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.equal(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.eq(*elements)


@dataclass(frozen=True, slots=True)
class Less(Elementwise):
    """a < b; false where one is NaN."""

    gives = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.less(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a < b


@dataclass(frozen=True, slots=True)
class LessOrEqual(Elementwise):
    """a <= b; false where one is NaN."""

    gives = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.less_equal(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a <= b


@dataclass(frozen=True, slots=True)
class IsNaN(Elementwise):
    """Whether x is not a number."""

    arity = (1, 1)
    takes = "float"
    gives = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.isnan(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.ne(x, x)


@dataclass(frozen=True, slots=True)
class IsInf(Elementwise):
    """Whether x is infinite: `positive`, `negative`, or either."""

    positive: bool = True
    negative: bool = True

    arity = (1, 1)
    takes = "float"
    gives = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        below = np.less(x, 0)
        return (np.isinf(x) & np.where(below, self.negative, self.positive),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        ends = [math.inf] * self.positive + [-math.inf] * self.negative
        return te.any_of(te.const(False, "bool"), *(te.eq(x, end) for end in ends))


@dataclass(frozen=True, slots=True)
class And(Elementwise):
    """Both hold."""

    commutative = True
    neutral = 1
    takes = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.logical_and(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.all_of(*elements)


@dataclass(frozen=True, slots=True)
class Or(Elementwise):
    """One of both holds."""

    commutative = True
    neutral = 0
    takes = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.logical_or(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.any_of(*elements)


@dataclass(frozen=True, slots=True)
class Not(Elementwise):
    """It does not hold."""

    arity = (1, 1)
    takes = "bool"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.logical_not(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.logical_not(*elements)


@dataclass(frozen=True, slots=True)
class Where(Elementwise):
    """The second input where the first, a condition, holds, else the third."""

    arity = (3, 3)
    takes = "any"

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 3)
        check_bool(self, types[:1])
        check_same_dtype(self, types[1:])
        return (TensorType(types[1].dtype, broadcast(self, types).shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.where(*arrays),)

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        if is_all(0, 1):
            return 1
        return 2 if is_all(0, 0) else None

    def element(self, *elements: Expr) -> Expr:
        return te.select(*elements)
