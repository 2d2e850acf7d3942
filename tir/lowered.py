"""Expressions of lowered code alone: vectors and parts of them, bits read as another type, the
fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, cast

from .dtype import DType
from .expr import Expr
from .node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Reinterpret(Expr):
    """The bits of `value` read as `type`, which takes as many bytes, all lanes together: the lowest
    lane is the lowest bits. Those of several lanes appear in lowered code only.
    """

    value: Expr
    type: DType

    @property
    def dtype(self) -> DType:
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Ramp(Expr):
    """The vector base, base + stride, base + 2*stride, ... Lowered code only."""

    base: Expr
    stride: int
    lanes: int

    def _find_dtype(self) -> DType:
        return self.base.dtype.with_lanes(self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Expr):
    """The vector whose lanes all are `value`. Lowered code only."""

    value: Expr
    lanes: int

    def _find_dtype(self) -> DType:
        return self.value.dtype.with_lanes(self.lanes)

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        value = visit(self.value)
        return self if value is self.value else type(self)(cast(Expr, value), self.lanes)

    def children(self) -> tuple[Node, ...]:
        return (self.value,)


@dataclass(frozen=True, slots=True, eq=False)
class Lanes(Expr):
    """`count` lanes of a vector, from lane `first` on, which is a multiple of `count`. Lowered code
    only.
    """

    value: Expr
    first: int
    count: int

    def _find_dtype(self) -> DType:
        return self.value.dtype.with_lanes(self.count)


@dataclass(frozen=True, slots=True, eq=False)
class Vector(Expr):
    """The vector whose lanes are `values`, scalars of one type. Lowered code only."""

    values: tuple[Expr, ...]

    def _find_dtype(self) -> DType:
        return self.values[0].dtype.with_lanes(len(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle(Expr):
    """The vector whose lane n is lane `order[n]` of `a` and, behind it, `b`, which are of one type.
    Lowered code only.
    """

    a: Expr
    b: Expr
    order: tuple[int, ...]

    def _find_dtype(self) -> DType:
        return self.a.dtype.with_lanes(len(self.order))


@dataclass(frozen=True, slots=True, eq=False)
class Exchange(Expr):
    """What the thread whose lane of a warp differs in the bits of `step` has for `value`, at the
    same place of the text, to which all threads of the warp come. Lowered code for a GPU only: no
    interpreter has several threads at one place.
    """

    value: Expr
    step: Expr

    def _find_dtype(self) -> DType:
        return self.value.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Fma(Expr):
    """a * b + c, rounded once."""

    a: Expr
    b: Expr
    c: Expr

    def _find_dtype(self) -> DType:
        return self.a.dtype

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        a, b, c = visit(self.a), visit(self.b), visit(self.c)
        if a is self.a and b is self.b and c is self.c:
            return self
        return type(self)(cast(Expr, a), cast(Expr, b), cast(Expr, c))

    def children(self) -> tuple[Node, ...]:
        return self.a, self.b, self.c
