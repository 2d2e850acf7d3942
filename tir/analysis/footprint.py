"""The footprint of a loop: the bytes of memory that it touches while it runs once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..buffer import Buffer
from ..expr import Expr, Var
from ..stmt import Block, For, Stmt
from ..visit import accesses, free_vars, statements, substitute
from .bounds import form_bounds
from .linear import Interval, linear


def footprint(loop: For) -> int:
    """Bytes of tensors and copies that a loop touches while all of it runs once and the loops
    around it stand still: of each, the box around its largest access. What lies in registers counts
    nothing.
    """
    inner = (stmt for stmt in statements(loop) if isinstance(stmt, For))
    moving: dict[Var, Interval] = {one.var: (0, one.extent - 1) for one in inner}
    largest: dict[Buffer, int] = {}
    for buffer, indices in _accessed(loop, {}):
        if buffer.scope != "register":
            size = _box_size(buffer, indices, moving) * buffer.type.bytes
            largest[buffer] = max(size, largest.get(buffer, 0))
    return sum(largest.values())


def _accessed(stmt: Stmt, values: dict[Var, Expr]) -> Iterator[tuple[Buffer, tuple[Expr, ...]]]:
    """Each access below a statement, its indices in terms of the loops."""
    if isinstance(stmt, Block):
        bound = zip(stmt.iters, stmt.bindings, strict=True)
        values = {it.var: substitute(value, values) for it, value in bound}
        for access in accesses(stmt.body):
            yield access.buffer, tuple(substitute(index, values) for index in access.indices)
        return
    below = [child for child in stmt.children() if isinstance(child, Stmt)]
    if not below:
        for access in accesses(stmt):
            yield access.buffer, access.indices
    for child in below:
        yield from _accessed(child, values)


def _box_size(buffer: Buffer, indices: Sequence[Expr], moving: dict[Var, Interval]) -> int:
    """Elements of the box around an access while some loops move and the others stand still; an
    index whose bounds are not known reaches everything.
    """
    size = 1
    for index, extent in zip(indices, buffer.shape, strict=True):
        still: dict[Var, Interval] = dict.fromkeys(free_vars(index), (0, 0))
        low, high = form_bounds(linear(index), still | moving)
        size *= extent if low is None or high is None else min(extent, high - low + 1)
    return size
