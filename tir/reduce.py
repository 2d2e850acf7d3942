"""Reductions as a definition writes them: what combines values, and over which axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .dtype import DType
from .expr import Expr, Var


@dataclass(frozen=True, slots=True)
class Reducer:
    """An associative and commutative way to combine values of one type, with its identity."""

    name: str
    combine: Callable[[Expr, Expr], Expr]
    identity: Callable[[DType], Expr]


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expr):
    """`value` combined over all points of `axes`. Only at the top of a te.compute."""

    reducer: Reducer
    value: Expr
    axes: tuple[Var, ...]
    extents: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return self.value.dtype
