"""Replace vectorised loops by vector operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....tir.analysis.iterations import LaneRange
from ....tir.analysis.linear import Interval, Ranges, expression, linear
from ....tir.analysis.narrow import narrowed
from ....tir.analysis.simplify import simplify, simplify_stmt
from ....tir.buffer import Load
from ....tir.conditions import all_of, conjuncts, names_dim
from ....tir.dtype import INT64, DType
from ....tir.expr import (
    LE,
    LT,
    And,
    Cast,
    Compare,
    Const,
    Expr,
    Let,
    Not,
    Or,
    Select,
    Var,
    add,
    index,
    mul,
)
from ....tir.func import PrimFunc
from ....tir.lowered import Broadcast, Ramp
from ....tir.node import Node
from ....tir.stmt import NOTHING, Alloc, For, ForKind, If, Stmt, Store, seq
from ....tir.target.target import Target
from ....tir.visit import free_vars, fresh_copy, substitute, walk, with_distinct_lets
from ...isa.isa import Isa, isa
from ...isa.selection import is_lane_count, operation
from ...lanes import access, fits_int32, lane_ranges, narrow
from .vector_body import NotVectorizable, VectorBody

LONGEST_UNROLLED = 8  # vectors of one loop that are written out; more of them stay a loop


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Turn each VECTORIZED loop into vector loads, arithmetic and stores, with masks where lanes
    differ.

    for i in vectorized(40): C[i] = A[i]
    ->  for i in unrolled(2): C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)]
        masked(C[ramp(32, 1, 16)], lane < 8) = masked(A[ramp(32, 1, 16)], lane < 8)

    The lanes are those that the widest type in the loop has in one register, of bytes those of 32
    bits. What the instruction set cannot do with vectors (a type or an operation that it lacks)
    runs lane after lane; so does an outer one of two nested vectorised loops. What it has no masks
    for does so where a call leaves less than all lanes.
    Requires: stage NEST without blocks. Ensures: no loop is VECTORIZED.
    Raises: TargetError for lanes that store to elements that are not neighbours.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(_Rewriter(isa(self.target)).stmt(func.body, {}))


class _Rewriter:
    def __init__(self, tables: Isa) -> None:
        self.isa = tables

    def stmt(self, stmt: Stmt, ranges: dict[Var, Interval]) -> Stmt:
        """Bottom-up, so that the innermost of nested vectorised loops wins."""
        if isinstance(stmt, For):
            ranges = {**ranges, stmt.var: (0, stmt.extent - 1)}
        if isinstance(stmt, If) and names_dim(stmt.condition):
            orelse = None if stmt.orelse is None else self.stmt(stmt.orelse, ranges)
            then = self.stmt(stmt.then, narrowed(ranges, stmt.condition))
            return If(stmt.condition, then, orelse)
        result = stmt.map_children(lambda c: self.stmt(c, ranges) if isinstance(c, Stmt) else c)
        if isinstance(result, For) and result.kind is ForKind.VECTORIZED:
            return self._loop(result, ranges)
        return result

    def _loop(self, loop: For, ranges: Ranges) -> Stmt:
        held = any(isinstance(n, Load | Store) and n.buffer.scope == "register" for n in walk(loop))
        try:
            return self._vectors(loop, ranges, held)
        except NotVectorizable:
            kind = ForKind.UNROLLED if held and self.isa.vector_bytes else ForKind.SERIAL
            lanes = For(loop.var, loop.extent, kind, loop.body)
        try:
            whole = self._where_whole(loop, ranges, held)
        except NotVectorizable:
            return lanes
        return lanes if whole is None else replace(whole, orelse=fresh_copy(lanes))

    def _where_whole(self, loop: For, ranges: Ranges, held: bool) -> If | None:
        """The loop in vectors where a call leaves all its iterations, which the instruction set may
        have no masks for; None where no test says so. Raises: NotVectorizable.
        """
        if not isinstance(loop.body, If) or loop.body.orelse is not None:
            return None
        tests = conjuncts(loop.body.condition)
        ends = [c for c in tests if names_dim(c) and _rises(c, loop.var)]
        if not ends:
            return None
        others = [c for c in tests if c not in ends]
        inside = If(all_of(*others), loop.body.then) if others else loop.body.then
        vectors = self._vectors(replace(loop, body=fresh_copy(inside)), ranges, held)
        last: dict[Var, Expr] = {loop.var: index(loop.extent - 1)}
        return If(all_of(*(simplify(substitute(c, last), ranges) for c in ends)), vectors)

    def _vectors(self, loop: For, ranges: Ranges, held: bool) -> Stmt:
        lanes = vector_lanes(loop, self.isa)
        whole, rest = divmod(loop.extent, lanes)
        parts: list[Stmt] = []
        if whole == 1:
            parts.append(self._body(loop, index(0), lanes, ranges, None))
        elif whole:
            outer = Var(loop.var.name)
            inner = {**ranges, outer: (0, whole - 1)}
            body = self._body(loop, mul(outer, index(lanes)), lanes, inner, None)
            short = whole <= LONGEST_UNROLLED or held
            parts.append(For(outer, whole, ForKind.UNROLLED if short else ForKind.SERIAL, body))
        if rest:
            parts.append(self._tail(loop, whole * lanes, lanes, ranges, held))
        return seq(*parts) if parts else NOTHING

    def _tail(self, loop: For, start: int, lanes: int, ranges: Ranges, held: bool) -> Stmt:
        """The iterations from `start`, fewer than a vector has lanes: masked, or one after the
        other where the instruction set has no masks for such memory. Raises: NotVectorizable.
        """
        count = loop.extent - start
        try:
            return self._body(loop, index(start), lanes, ranges, count)
        except NotVectorizable:
            if held or not start:
                raise
        var = Var(loop.var.name)
        body = substitute(fresh_copy(loop.body), {loop.var: add(index(start), var)})
        return For(var, count, ForKind.SERIAL, body)

    def _body(self, loop: For, base: Expr, lanes: int, ranges: Ranges, count: int | None) -> Stmt:
        """The loop's body for var = base .. base + lanes - 1, of which the first `count` take
        part.
        """
        lane = Var(loop.var.name)
        known = {**ranges, lane: LaneRange((0, lanes - 1))}
        body = simplify_stmt(substitute(fresh_copy(loop.body), {loop.var: add(base, lane)}), known)
        on = None if count is None else LT(lane, index(count))
        result = with_distinct_lets(VectorBody(lane, lanes, ranges).stmt(body, on))
        check_supported(result, self.isa, ranges)
        return result


def vector_lanes(loop: For, tables: Isa) -> int:
    """How many iterations of a vectorised loop one vector takes. Raises: NotVectorizable."""
    if not tables.vector_bytes:
        raise NotVectorizable("the instruction set has no vectors")
    if any(isinstance(node, Ramp | Broadcast) for node in walk(loop.body)):
        raise NotVectorizable("a vectorised loop inside it")
    widest = 0
    for dtype in _element_types(loop.body, loop.var):
        if dtype not in tables.elements:
            raise NotVectorizable(f"no vectors of {dtype}")
        widest = max(widest, dtype.bytes)
    full = tables.vector_bytes // max(widest, 4)
    needed = 1 << max(0, loop.extent - 1).bit_length()
    return max(min(full, tables.fewest_lanes), min(full, needed))


def _rises(condition: Expr, var: Var) -> bool:
    """Whether a comparison holds for all smaller values of a variable where it holds for one."""
    if not isinstance(condition, LT | LE):
        return False
    form = linear(condition.a) - linear(condition.b)
    rest = expression(form.without(var))
    return form.coefficient(var) > 0 and var not in free_vars(rest)


def _element_types(body: Stmt, lane: Var) -> set[DType]:
    """The types of the data that a body touches or makes; truth values and index arithmetic are not
    data, nor are indices that all lanes share.
    """
    found: set[DType] = set()
    for node, inside in _data_nodes(body, lane, False):
        match node:
            case Load() | Store() | Alloc():
                found.add(node.buffer.type.scalar)
            case Cast(value) if inside and node.type == INT64 and value.dtype.is_integer:
                found.add(value.dtype.scalar)  # addresses are narrowed again
            case Cast() if not node.type.is_bool:
                found.add(node.type.scalar)
            case Expr() if node.dtype.is_float:
                found.add(node.dtype.scalar)
    return found


def _data_nodes(node: Node, lane: Var, inside: bool) -> Iterator[tuple[Node, bool]]:
    """The nodes below `node`, each with whether it is part of an index; without indices that do not
    mention the lane.
    """
    yield node, inside
    indices = node.indices if isinstance(node, Load | Store) else ()
    for child in node.children():
        if child not in indices:
            yield from _data_nodes(child, lane, inside)
        elif lane in free_vars(child):
            yield from _data_nodes(child, lane, True)


def _data(node: Node) -> Iterator[Expr]:
    """The vector expressions that are computed as data: not indices, nor the sides of a lane
    count.
    """
    if isinstance(node, Expr) and node.dtype.lanes > 1:
        yield node
    below: tuple[Node | None, ...] = node.children()
    match node:
        case Load():
            below = (node.mask, node.other)
        case Store():
            below = (node.value, node.mask)
        case Compare() if is_lane_count(node):
            below = ()
    for child in below:
        if child is not None:
            yield from _data(child)


def check_supported(stmt: Stmt, tables: Isa, ranges: Ranges) -> None:
    """Raise NotVectorizable where the instruction set lacks an operation of `stmt`."""
    for node in walk(stmt):
        if isinstance(node, Store) and node.value.dtype.lanes > 1:
            _check_memory(node, "store", tables)
    for data in _data(stmt):
        if isinstance(data, Load):
            _check_load(data, tables, ranges)
        elif not _is_supported(data, tables):
            raise NotVectorizable(f"no instruction for {type(data).__name__} of {data.dtype}")


def _check_load(load: Load, tables: Isa, ranges: Ranges) -> None:
    found = access(load.buffer, load.indices, ranges)
    if load.buffer.scope == "register" or (found.stride == 1):
        _check_memory(load, "load", tables)
        return
    if found.stride is None:
        offsets = narrow(found.offset, found.lane, found.lanes, ranges, found.values)
        known = lane_ranges(found.lane, found.lanes, ranges, found.values)
        if offsets is None or not fits_int32(found.offset, known):
            raise NotVectorizable("addresses that int32 may not hold")
        check_supported(Store(load.buffer, (), offsets), tables, ranges)
    _check_memory(load, "gather", tables)


def _check_memory(node: Load | Store, name: str, tables: Isa) -> None:
    dtype = node.dtype if isinstance(node, Load) else node.value.dtype
    wanted = name if node.mask is None else f"{name}_masked"
    if node.buffer.scope == "register" and dtype.is_bool:
        raise NotVectorizable("no register of truth values")
    if node.buffer.scope != "register" and not tables.has(wanted, dtype):
        raise NotVectorizable(f"no {wanted} of {dtype}")


def _is_supported(node: Expr, tables: Isa) -> bool:
    match node:
        case And() | Or() | Not() | Let() | Var() | Const():
            return True
        case Select() if node.condition.dtype.lanes == 1 or node.dtype.is_bool:
            return True
        case Broadcast() if node.dtype.is_bool:
            return True
        case Compare() if is_lane_count(node):
            return True
        case Ramp() if node.stride != 1 and not tables.has("mul", node.dtype):
            return False
    return tables.has(*operation(node))
