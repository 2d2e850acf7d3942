"""Operators on bits: BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift, BitCast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ..types import Array, TensorType
from .base import check_arity, refuse
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


@dataclass(frozen=True, slots=True)
class BitCast(Elementwise):
    """The bits of numbers of type `source` as numbers of type `to`, of 32 or 64 bits both."""

    source: str = "float32"
    to: str = "int32"

    arity = (1, 1)
    takes = "any"
    decides = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        widths = {np.dtype(name).itemsize for name in (self.source, self.to)}
        if types[0].dtype != self.source or widths not in ({4}, {8}):
            problem = f"expected {self.source} of 4 or 8 bytes, as {self.to} has, got {types[0]}"
            refuse(self, problem, code="bit-cast")
        return (TensorType(self.to, types[0].shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        with np.errstate(all="ignore"):
            return (np.ascontiguousarray(x.astype(self.source)).view(self.to).reshape(x.shape),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.reinterpret(x, self.to)
