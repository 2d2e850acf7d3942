"""Operators on the bits of integers: BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ..types import Array
from .elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class BitwiseAnd(Elementwise):
    """The bits that both integers have."""

    commutative = True
    takes = "integer"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.bitwise_and(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a & b


@dataclass(frozen=True, slots=True)
class BitwiseOr(Elementwise):
    """The bits that one of the integers has."""

    commutative = True
    neutral = 0
    takes = "integer"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.bitwise_or(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a | b


@dataclass(frozen=True, slots=True)
class BitwiseXor(Elementwise):
    """The bits in which two integers differ."""

    commutative = True
    neutral = 0
    takes = "integer"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.bitwise_xor(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a ^ b


@dataclass(frozen=True, slots=True)
class BitwiseNot(Elementwise):
    """The bits that an integer does not have."""

    arity = (1, 1)
    takes = "integer"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.invert(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return ~x


@dataclass(frozen=True, slots=True)
class BitShift(Elementwise):
    """The first integer shifted by the second: its bits move up, or down (`right`), where the sign
    comes after them. A count below 0, or of all bits and more, shifts every bit out.
    """

    right: bool = False

    neutral = 0
    takes = "integer"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, count = arrays
        bits = 8 * x.dtype.itemsize
        inside = np.greater_equal(count, 0) & np.less(count, bits)
        within = np.where(inside, count, np.zeros((), x.dtype))
        shifted = (np.right_shift if self.right else np.left_shift)(x, within)
        out = np.where(np.less(x, 0), -1, 0) if self.right else np.zeros(())
        return (np.where(inside, shifted, out.astype(x.dtype)),)

    def element(self, *elements: Expr) -> Expr:
        x, count = elements
        return x >> count if self.right else x << count
