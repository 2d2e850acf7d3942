"""Which blocks of a grid do nothing at the sizes of a call.

for i in bound(64, "blockIdx.x"): for ii in bound(8, "threadIdx.x"): if i*8 + ii < n: C[..] = ..

stores nothing where i*8 >= n: a call launches (n + 7) / 8 blocks. What a block keeps for itself is
not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...tir.analysis.bounds import form_bounds
from ...tir.analysis.linear import Linear, Ranges, expression, linear
from ...tir.buffer import Buffer
from ...tir.conditions import conjuncts
from ...tir.dim import Dim
from ...tir.expr import LE, LT, Expr, Var
from ...tir.stmt import Alloc, Barrier, Commit, For, If, LetStmt, Prefetch, Seq, Stmt, Store
from ...tir.visit import free_vars


@dataclass(frozen=True, slots=True)
class BlockStop:
    """From which block on nothing is stored: ceil((scale * dim + offset) / step)."""

    dim: Dim
    scale: int
    step: int
    offset: int


def block_stop(root: Stmt, axis: str) -> BlockStop | None:
    """The end that a size of the call makes for the blocks along an axis; None where there is none
    that every store to the memory of the device keeps to.
    """
    found: BlockStop | None = None
    for stops in _stores(root, _Path(axis)):
        if found is None:
            found = min(stops, key=lambda stop: stop.offset, default=None)
        else:
            like = [stop for stop in stops if _alike(stop, found)]
            least = min(like, key=lambda stop: stop.offset, default=None)
            found = least if least is None or least.offset > found.offset else found
        if found is None:
            return None
    return found


def _alike(one: BlockStop, other: BlockStop) -> bool:
    """Whether their offsets alone differ."""
    return (one.dim, one.scale, one.step) == (other.dim, other.scale, other.step)


@dataclass(frozen=True, slots=True)
class _Path:
    """What stands around a statement. var: the block along the axis; own: what a block keeps for
    itself; stops: what the conditions say.
    """

    axis: str
    var: Var | None = None
    ranges: tuple[tuple[Var, tuple[int, int]], ...] = ()
    own: frozenset[Buffer] = frozenset()
    stops: tuple[BlockStop, ...] = ()

    def below(self, loop: For) -> _Path:
        """Inside of a loop."""
        ranges = (*self.ranges, (loop.var, (0, loop.extent - 1)))
        var = loop.var if loop.axis == self.axis else self.var
        return _Path(self.axis, var, ranges, self.own, self.stops)

    def where(self, condition: Expr) -> _Path:
        """Where a condition holds."""
        made = (self._stop(each) for each in conjuncts(condition))
        stops = (*self.stops, *(stop for stop in made if stop is not None))
        return _Path(self.axis, self.var, self.ranges, self.own, stops)

    def with_own(self, buffer: Buffer) -> _Path:
        """Where a buffer of the block's own lives."""
        return _Path(self.axis, self.var, self.ranges, self.own | {buffer}, self.stops)

    def _stop(self, condition: Expr) -> BlockStop | None:
        """Of step * block + rest < scale * dim + .., at the least that the rest can be."""
        if self.var is None or not isinstance(condition, LT | LE):
            return None
        form = linear(condition.a) - linear(condition.b)
        dims = [(a, c) for a, c in form.terms if isinstance(a, Dim)]
        step = form.coefficient(self.var)
        if len(dims) != 1 or step <= 0:
            return None
        (dim, scale), rest = dims[0], form.without(self.var).without(dims[0][0])
        ranges: Ranges = dict(self.ranges)
        if scale >= 0 or self.var in free_vars(expression(rest)):
            return None
        low, _ = form_bounds(Linear(rest.terms, rest.constant), ranges)
        if low is None:
            return None
        return BlockStop(dim, -scale, step, -low + (1 if isinstance(condition, LE) else 0))


def _stores(stmt: Stmt, path: _Path) -> Iterator[tuple[BlockStop, ...]]:
    """What is known to end the blocks at each store to what outlives a block."""
    match stmt:
        case For():
            yield from _stores(stmt.body, path.below(stmt))
        case If():
            yield from _stores(stmt.then, path.where(stmt.condition))
            if stmt.orelse is not None:
                yield from _stores(stmt.orelse, path)
        case Seq():
            for child in stmt.body:
                yield from _stores(child, path)
        case Alloc():
            yield from _stores(stmt.body, path.with_own(stmt.buffer))
        case LetStmt():
            yield from _stores(stmt.body, path)
        case Store():
            if stmt.buffer not in path.own:
                yield path.stops
        case Barrier() | Commit() | Prefetch():
            pass
        case _:  # what writes in a way of its own: nothing is known of it
            yield ()
