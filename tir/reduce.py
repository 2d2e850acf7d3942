"""Reductions as a definition writes them: what combines values, over which axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .dtype import DType
from .expr import TRUE, Expr, Var

Values = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Reducer:
    """An associative and commutative way to combine values, one or several at once, with its
    identity.

    combine: what becomes of two tuples of values. identity: the tuple, for the types of its
    elements, that leaves the other one as it is.
    named: the new values stand as Lets around what combines them, so that a schedule can tell the
    two apart (`update.read_update`); the reducers of the language do without.
    """

    name: str
    combine: Callable[[Values, Values], Values]
    identity: Callable[[tuple[DType, ...]], Values]
    named: bool = False

    def __repr__(self) -> str:
        return f"Reducer {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expr):
    """`values` combined over the points of `axes` at which `where` holds. Only at the top of a
    te.compute, which gives a tensor for each of the values.
    """

    reducer: Reducer
    values: Values
    axes: tuple[Var, ...]
    extents: tuple[int, ...]
    where: Expr = TRUE

    @property
    def dtype(self) -> DType:
        """The type of the first value."""
        return self.values[0].dtype
