"""Cut a tile into smaller ones, for what a call leaves of it.

A tile is rows, or vectors, that are written out: `for ii in unrolled(8)`, in each statement of a
body. The body runs for a part of its rows at a time, for one vector at a time; or for all rows that
are left, whose number chooses among bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....tir.analysis.linear import Linear, linear
from ....tir.buffer import Buffer, Load
from ....tir.conditions import all_of, conjuncts
from ....tir.dim import Dim
from ....tir.expr import LE, LT, Expr, Var, index
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, If, Stmt, Store
from ....tir.visit import free_vars, fresh_copy, loads, stores, substitute, transform, walk


@dataclass(frozen=True, slots=True)
class _Rows:
    """How a block runs through the rows of a tile.

    loop: that is written out. steps: from one of its iterations to the next. in_lanes: whether each
    is a vector of rows. var: the iteration variable of the block that is the row.
    """

    loop: For
    steps: int
    in_lanes: bool
    var: Var

    def is_like(self, other: _Rows) -> bool:
        """Whether two blocks run through the same rows."""
        same = self.loop.extent == other.loop.extent and self.steps == other.steps
        return same and self.in_lanes == other.in_lanes


def smaller_tiles(body: Stmt, tested: Mapping[Block, Expr], parts: int) -> For | None:
    """A loop over smaller tiles that does what `body` does, `parts` of them for a tile of rows.

    A = alloc; for ii in unrolled(8): A_init; for k: for ii in unrolled(8): A
    ->  for i: A = alloc; for ii in unrolled(2): A_init; for k: for ii in unrolled(2): A

    tested: the condition of each block on its row, which says the same for all of them. None where
    rows are not written out, or where one may need another: whatever the body writes, it writes and
    reads at the row of a block alone.
    """
    loops = {node.var: node for node in walk(body) if isinstance(node, For)}
    known = _tile_rows(body, tested, loops)
    if not known:
        return None
    first = next(iter(known.values()))
    size = 1 if first.in_lanes else -(-first.loop.extent // parts)
    outer = Var(first.loop.var.name, first.loop.var.type)
    cut = {own.loop for own in known.values()}

    def smaller(node: Node) -> Node:
        if not isinstance(node, For) or node not in cut:
            return node
        if size == 1:
            return substitute(node.body, {node.var: outer})
        inner = Var(node.var.name, node.var.type)
        moved = substitute(node.body, {node.var: outer * size + inner})
        return replace(node, var=inner, extent=size, body=moved)

    return For(outer, -(-first.loop.extent // size), ForKind.SERIAL, transform(body, smaller))


def tile_of_rows_left(body: Stmt, tested: Mapping[Block, Expr], most: int) -> Stmt | None:
    """As `smaller_tiles`, but one tile of all rows that are left, where at least one is.

    for ii in unrolled(4): if i*4 + ii < n: s
    ->  if i*4 + 2 < n: for ii in unrolled(3): s
        else: if i*4 + 1 < n: for ii in unrolled(2): s
              else: s[ii := 0]

    tested: as there. Requires: the first row exists, and not all do. None where `smaller_tiles`
    gives None, of vectors, and of a tile that has more than `most` rows.
    """
    loops = {node.var: node for node in walk(body) if isinstance(node, For)}
    known = _tile_rows(body, tested, loops)
    if not known:
        return None
    block, first = next(iter(known.items()))
    inside = free_vars(tested[block]) & loops.keys()
    if first.in_lanes or first.loop.extent > most or inside != {first.loop.var}:
        return None
    cut = {own.loop.var for own in known.values()}

    def tile(size: int) -> Stmt:
        def smaller(node: Node) -> Node:
            if isinstance(node, Block) and node in tested:
                kept = (c for c in conjuncts(node.predicate) if c != tested[node])
                return replace(node, predicate=all_of(*kept))
            if isinstance(node, For) and node.var in cut:
                alone = substitute(node.body, {node.var: index(0)})
                return alone if size == 1 else replace(node, extent=size)
            return node

        return fresh_copy(transform(body, smaller))

    found = tile(1)
    for size in range(2, first.loop.extent):
        exists = substitute(tested[block], {first.loop.var: index(size - 1)})
        found = If(exists, tile(size), found)
    return found


def _tile_rows(
    body: Stmt, tested: Mapping[Block, Expr], loops: Mapping[Var, For]
) -> dict[Block, _Rows]:
    """How each block runs through the rows; none where they are not written out alike, or where one
    may need another.
    """
    rows = {block: _rows(block, condition, loops) for block, condition in tested.items()}
    known = {block: own for block, own in rows.items() if own is not None}
    first = next(iter(known.values()), None)
    if first is None or len(known) < len(rows) or not all(r.is_like(first) for r in known.values()):
        return {}
    return known if _are_apart(body, known) else {}


def _rows(block: Block, condition: Expr, loops: Mapping[Var, For]) -> _Rows | None:
    """How a block runs through its rows; None where they are not written out, or where the loop
    that does counts something else too.
    """
    used = [loops[var] for var in free_vars(condition) if var in loops]
    copied = [loop for loop in used if loop.kind is ForKind.UNROLLED and loop.extent > 1]
    if len(copied) != 1 or not isinstance(condition, LT | LE):
        return None
    (loop,) = copied
    form = linear(condition.a) - linear(condition.b)
    row = Linear(
        tuple(term for term in form.terms if not isinstance(term[0], Dim)),
        form.constant - isinstance(condition, LE),
    )
    counted = [
        (it, binding)
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if loop.var in free_vars(binding)
    ]
    others = (c for c in conjuncts(block.predicate) if c != condition)
    if len(counted) != 1 or any(loop.var in free_vars(c) for c in others):
        return None
    ((it, binding),) = counted
    if linear(binding) - row != Linear((), 0):
        return None
    in_lanes = any(x.kind is ForKind.VECTORIZED for x in used)
    return _Rows(loop, form.coefficient(loop.var), in_lanes, it.var)


def _are_apart(body: Stmt, rows: Mapping[Block, _Rows]) -> bool:
    """Whether no row of a tile needs another, and each may have registers of its own."""
    own = {node.buffer for node in walk(body) if isinstance(node, Alloc)}
    written = {store.buffer for store in stores(body)}
    axes: dict[Buffer, set[int]] = {}
    for block, of in rows.items():
        touched: tuple[Store | Load, ...] = (*stores(block.body), *loads(block.body))
        for access in touched:
            buffer = access.buffer
            if buffer not in written:
                continue
            if buffer.scope == "register" and buffer not in own:
                return False
            found = {n for n, item in enumerate(access.indices) if item is of.var}
            axes[buffer] = axes.get(buffer, found) & found
    return all(axes.values())
