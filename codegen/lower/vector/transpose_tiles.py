"""Replace small tiles that are read across their lines by loads, shuffles and stores of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....tir.analysis.linear import Interval, Ranges
from ....tir.analysis.simplify import simplify_stmt
from ....tir.buffer import Buffer, Load
from ....tir.expr import LT, Expr, Let, Select, Var, const, index
from ....tir.func import PrimFunc
from ....tir.lowered import Broadcast, Ramp, Shuffle
from ....tir.node import Node
from ....tir.stmt import Alloc, For, ForKind, LetStmt, Stmt, Store, seq
from ....tir.target.target import Target
from ....tir.visit import found_in, fresh_copy, substitute, transform, with_distinct_lets
from ...isa.isa import Isa, isa
from ...isa.shuffles import ShuffleStep, transposition
from ...lanes import access, address, linear_in
from .vector_body import NotVectorizable, VectorBody
from .vectorize import check_supported, vector_lanes


@dataclass(frozen=True, slots=True)
class TransposeTiles:
    """Turn an unrolled loop around a vectorised one, which is read along the outer one, into a
    transposition in registers.

    for i in unrolled(4): for j in vectorized(4): C[i, j] = A[j, i]
    ->  t[0, ramp(0, 1, 4)] = A[0, ramp(0, 1, 4)] ... t[3, ramp(0, 1, 4)] = A[3, ramp(0, 1, 4)]
        let a = t[0, ramp(0, 1, 4)]; let b = t[2, ramp(0, 1, 4)];
            t[0, ramp(0, 1, 4)] = shuffle(a, b, 0, 4, 1, 5)
            t[2, ramp(0, 1, 4)] = shuffle(a, b, 2, 6, 3, 7) ...
        C[0, ramp(0, 1, 4)] = t[0, ramp(0, 1, 4)] ...

    A tile has at most as many rows and columns as a vector has lanes; one with fewer has masks.
    What else the store reads becomes vectors as ever. A tile for which the instruction set lacks
    something stays as it is, as does one that reads what it writes, or chooses what it reads.
    Requires: stage NEST without blocks.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        tables = isa(self.target)
        if not tables.vector_bytes:
            return func
        body = _tiles(func.body, tables, {})
        return func if body is func.body else func.with_body(body)


def _tiles(stmt: Stmt, tables: Isa, ranges: dict[Var, Interval]) -> Stmt:
    if isinstance(stmt, For):
        tile = _tile(stmt, tables, ranges)
        if tile is not None:
            return tile
        ranges = {**ranges, stmt.var: (0, stmt.extent - 1)}
    return stmt.map_children(lambda c: _tiles(c, tables, ranges) if isinstance(c, Stmt) else c)


def _tile(rows: For, tables: Isa, ranges: Ranges) -> Stmt | None:
    """The tile of two loops in registers; None where it is none, or cannot be."""
    columns = rows.body
    if rows.kind is not ForKind.UNROLLED or not isinstance(columns, For):
        return None
    store = columns.body
    if columns.kind is not ForKind.VECTORIZED or not isinstance(store, Store):
        return None
    known = {**ranges, rows.var: (0, rows.extent - 1), columns.var: (0, columns.extent - 1)}
    crossed = _crossed(store, rows.var, columns, known)
    if not crossed:
        return None
    try:
        longest = max(rows.extent, columns.extent)
        lanes = vector_lanes(replace(columns, extent=longest), tables)
        if longest > lanes:
            return None
        result = with_distinct_lets(_Tile(rows, columns, store, lanes, known).stmt(crossed))
        check_supported(result, tables, known)
    except NotVectorizable:
        return None
    return result


def _crossed(store: Store, row: Var, columns: For, ranges: Ranges) -> Sequence[Load]:
    """The loads that take neighbours along the rows, and others along the columns."""
    if any(isinstance(node, Select | Let) for node in found_in(store.value, Select | Let)):
        return ()
    loads = list(dict.fromkeys(found_in(store.value, Load)))
    if any(load.buffer is store.buffer or load.mask is not None for load in loads):
        return ()
    return [load for load in loads if _is_crossed(load, row, columns, ranges)]


def _is_crossed(load: Load, row: Var, columns: For, ranges: Ranges) -> bool:
    if any(isinstance(node, Load) for item in load.indices for node in found_in(item, Load)):
        return False
    found = address(load.buffer, load.indices, columns.var, columns.extent, ranges)
    if found.stride in (None, 0, 1) or load.buffer.scope == "register":
        return False
    moved = linear_in(found.offset, row)
    return moved is not None and moved[1] == 1


@dataclass(frozen=True, slots=True)
class _Tile:
    rows: For
    columns: For
    store: Store
    lanes: int
    ranges: Ranges

    def stmt(self, crossed: Sequence[Load]) -> Stmt:
        """The tile. Raises: NotVectorizable."""
        tiles: dict[Node, Load] = {}
        parts: list[Stmt] = []
        shape = (self.lanes, self.lanes)
        for load in crossed:
            tile = Buffer(f"{load.buffer.name}_tile", load.buffer.type, shape, "register")
            tiles[load] = Load(tile, (self.rows.var, self.columns.var))
            parts += self._filled(tile, load)
            parts += [
                _exchanged(tile, step) for step in transposition(load.dtype.with_lanes(self.lanes))
            ]
        moved = transform(self.store, lambda node: tiles.get(node, node))
        parts += [self._row(moved, number) for number in range(self.rows.extent)]
        body = seq(*parts)
        for kept in tiles.values():
            body = Alloc(kept.buffer, body)
        return body

    def _filled(self, tile: Buffer, load: Load) -> list[Stmt]:
        """The lines of memory as the vectors of a tile: a column of the loops each; zeros behind
        the last one.
        """
        lane = Var(self.rows.var.name)
        on = None if self.rows.extent == self.lanes else LT(lane, index(self.rows.extent))
        body = VectorBody(lane, self.lanes, self.ranges)
        filled: list[Stmt] = []
        for number in range(self.lanes):
            line: Expr = Broadcast(const(0, load.dtype), self.lanes)
            if number < self.columns.extent:
                there = substitute(load, {self.rows.var: lane, self.columns.var: index(number)})
                line = body.vector(there, on)
                assert isinstance(line, Load)
                if access(line.buffer, line.indices, self.ranges).stride != 1:
                    raise NotVectorizable("a line that is not seen to lie in one piece")
            filled.append(Store(tile, _vector_of(number, self.lanes), line))
        return filled

    def _row(self, store: Stmt, number: int) -> Stmt:
        """What the loops store at one iteration of the rows."""
        lane = Var(self.columns.var.name)
        own = substitute(fresh_copy(store), {self.rows.var: index(number), self.columns.var: lane})
        known = {**self.ranges, lane: (0, self.columns.extent - 1)}
        on = None if self.columns.extent == self.lanes else LT(lane, index(self.columns.extent))
        return VectorBody(lane, self.lanes, self.ranges).stmt(simplify_stmt(own, known), on)


def _exchanged(tile: Buffer, step: ShuffleStep) -> Stmt:
    """One step of a transposition of the vectors of a tile."""
    lanes = tile.shape[1]
    first, second = (_vector_of(row, lanes) for row in (step.first, step.second))
    a, b = (Var(name, tile.type.with_lanes(lanes)) for name in ("a", "b"))
    low, high = (
        Store(tile, where, Shuffle(a, b, order))
        for where, order in ((first, step.low), (second, step.high))
    )
    return LetStmt(a, Load(tile, first), LetStmt(b, Load(tile, second), seq(low, high)))


def _vector_of(row: int, lanes: int) -> tuple[Expr, Expr]:
    return index(row), Ramp(index(0), 1, lanes)
