"""Dim: a size that each call decides, within bounds that are known when a kernel is built.

A function with dims stands for one function per choice of their values (`specialise.py` makes it),
and is lowered, proved and compiled once for all of them. As an expression a dim is its value. Where
storage, loops and costs need a number they take the upper bound: the elements and the points beyond
the value of a dim do not exist, and nothing may touch them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .expr import Var


@dataclass(frozen=True, slots=True, eq=False)
class Dim(Var):
    """A size of `low` .. `high`, the same wherever it stands in one call.

    typical: the one for which a schedule is chosen; `high` where it is None. assumed: nobody said
    the bounds, so that a refusal has to say where they come from.
    """

    low: int = 0
    high: int = 0
    typical: int | None = None
    assumed: bool = False

    @property
    def usual(self) -> int:
        """The size for which a schedule is chosen."""
        return self.high if self.typical is None else self.typical

    def __repr__(self) -> str:
        return f"Dim {self.name}: {self.low} .. {self.high}"


Extent = int | Dim


def most(extent: Extent) -> int:
    """The extent, or the upper bound of one that a call decides."""
    return extent.high if isinstance(extent, Dim) else extent


def dims_of(extents: Iterable[Extent]) -> tuple[Dim | None, ...]:
    """The dim of each extent, None where it is a number; () where all are."""
    found = tuple(extent if isinstance(extent, Dim) else None for extent in extents)
    return found if any(dim is not None for dim in found) else ()
