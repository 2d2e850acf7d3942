"""Keep register-scope buffers in named vectors: the buffer disappears, each element or vector of it
becomes a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ....tir.buffer import Buffer, Load
from ....tir.conditions import conjuncts
from ....tir.errors import TargetError
from ....tir.expr import LT, Const, Expr, Select, Var, const
from ....tir.func import PrimFunc
from ....tir.lowered import Broadcast, Lanes, Ramp
from ....tir.node import Node
from ....tir.stmt import NOTHING, Alloc, For, ForKind, If, LetStmt, Prefetch, Seq, Stmt, Store, seq
from ....tir.target.target import Target
from ....tir.visit import (
    accesses,
    exchange,
    free_vars,
    loads,
    mentions_none,
    transform,
    transform_statements,
)
from ...isa.isa import Isa, isa
from ...isa.selection import lanes_operation

Key = tuple[Expr, ...]
Place = tuple[tuple[int, int], ...]  # along each dimension, the first element and their number
Places = dict[Key, Place]
Parts = dict[Key, tuple[Key, int]]  # of loads: the vector that a part belongs to, its first lane


@dataclass(frozen=True, slots=True)
class Registers:
    """Replace each register-scope buffer by one buffer of shape () per index, a vector's worth
    each.

    C[0, ramp(16, 1, 16)] = fma(a, b, C[0, ramp(16, 1, 16)])      ->      C_0_1[()] = fma(a, b,
    C_0_1[()])

    A load of a part of a vector takes lanes of its register. A store that nothing reads goes. A
    masked store drops its mask where the lanes that are off are never read, else it keeps their old
    values, zeros at first, by a Select. A tile stays a small array without vector registers, and
    where two of its vectors overlap in part: where one block has an instruction for them all and
    another goes lane by lane.
    Requires: no loop is VECTORIZED or UNROLLED. Ensures: other register-scope buffers have shape
    (). Raises: TargetError where an index is not constant.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not self.target.names_registers:
            return func
        tables = isa(self.target)

        def rule(node: Node) -> Node:
            if not isinstance(node, Alloc) or node.buffer.scope != "register":
                return node
            places = _places(node.buffer, node.body)
            parts = _parts(node.buffer, node.body, places, tables)
            places = {key: place for key, place in places.items() if key not in parts}
            if _conflict(places):
                return _array(node, places)
            return _named(node, places, parts) if node.buffer.shape else node

        return func.with_body(transform_statements(func.body, rule))


def _named(node: Alloc, places: Places, parts: Parts) -> Node:
    buffer = node.buffer
    found = {n.indices for n in loads(node.body) if n.buffer is buffer}
    read = {parts[key][0] if key in parts else key for key in found}
    registers = {key: _register(buffer, key) for key in places if key in read}
    unmasked = _unmasked(buffer, node.body, parts)

    def rule(item: Node) -> Node:
        if isinstance(item, Load) and item.buffer is buffer and item.indices in parts:
            whole, first = parts[item.indices]
            return Lanes(Load(registers[whole], ()), first, item.dtype.lanes)
        if isinstance(item, Load) and item.buffer is buffer:
            load = Load(registers[item.indices], ())
            if item.mask is None or item.other is None:
                return load
            return Select(item.mask, load, item.other)
        if isinstance(item, Store) and item.buffer is buffer:
            if item.indices not in read:
                return NOTHING
            register = registers[item.indices]
            if item.mask is None or item.indices in unmasked:
                return replace(item, buffer=register, indices=(), mask=None)
            value = Select(item.mask, item.value, Load(register, ()))
            return replace(item, buffer=register, indices=(), value=value, mask=None)
        return _without_prefetch(item, buffer)

    body: Stmt = exchange(node.body, rule, lambda stmt: mentions_none(stmt, (buffer,)))
    begun = _begun_by_masks(buffer, node.body) - unmasked
    for key, register in reversed(registers.items()):
        zero = const(0, buffer.type)
        if key in begun:
            lanes = register.type.lanes
            body = seq(Store(register, (), Broadcast(zero, lanes) if lanes > 1 else zero), body)
        body = Alloc(register, body)
    return body


def _begun_by_masks(buffer: Buffer, body: Stmt) -> set[Key]:
    """The registers whose first store leaves out lanes, on one of the ways through the body."""
    begun: set[Key] = set()

    def follow(node: Stmt, stored: set[Key]) -> None:
        """Add to the registers that are stored to before a statement those that it stores to."""
        while isinstance(node, Alloc | LetStmt):  # a chain may be longer than Python's stack
            node = node.body
        match node:
            case Store() if node.buffer is buffer and node.indices not in stored:
                stored.add(node.indices)
                if node.mask is not None:
                    begun.add(node.indices)
            case If(orelse=Stmt() as orelse):
                otherwise = set(stored)
                follow(node.then, stored)
                follow(orelse, otherwise)
                stored |= otherwise
            case _:
                for child in node.children():
                    if isinstance(child, Stmt):
                        follow(child, stored)

    follow(body, set())
    return begun


def _without_prefetch(item: Node, buffer: Buffer) -> Node:
    """A statement without prefetches of a register: that is near enough."""
    if isinstance(item, Prefetch) and item.buffer is buffer:
        return NOTHING
    return seq(*item.body) if isinstance(item, Seq) and NOTHING in item.body else item


def _array(node: Alloc, places: Places) -> Node:
    """The tile as an array with room for whole vectors, whose masks are Selects. It begins with
    zeros, since a Select looks at lanes that nothing has been stored to.
    """
    buffer = node.buffer
    firsts = zip(*([start for start, _ in place] for place in places.values()), strict=True)
    ends = zip(*(map(sum, place) for place in places.values()), strict=True)
    before = [max(0, -min(starts)) for starts in firsts]  # lanes that are off in front of it
    room = zip(before, map(max, buffer.shape, map(max, ends)), strict=True)
    whole = replace(buffer, shape=tuple(map(sum, room)), dims=())

    def moved(indices: Key) -> Key:
        return tuple(_behind(i, count) for i, count in zip(indices, before, strict=True))

    def rule(item: Node) -> Node:
        if isinstance(item, Load) and item.buffer is buffer:
            load = Load(whole, moved(item.indices))
            if item.mask is None or item.other is None:
                return load
            return Select(item.mask, load, item.other)
        if isinstance(item, Store) and item.buffer is buffer:
            old = Load(whole, moved(item.indices))
            value = item.value if item.mask is None else Select(item.mask, item.value, old)
            return replace(item, buffer=whole, indices=old.indices, value=value, mask=None)
        return _without_prefetch(item, buffer)

    axes = tuple(Var(f"{buffer.name}_{axis}") for axis in range(len(whole.shape)))
    zeros: Stmt = Store(whole, axes, const(0, buffer.type))
    for var, extent in zip(reversed(axes), reversed(whole.shape), strict=True):
        zeros = For(var, extent, ForKind.SERIAL, zeros)
    return Alloc(whole, seq(zeros, transform(node.body, rule)))


def _behind(where: Expr, count: int) -> Expr:
    """An index so many elements further on."""
    if count == 0:
        return where
    if isinstance(where, Ramp):
        return replace(where, base=where.base + count)
    return where + count


def _places(buffer: Buffer, body: Stmt) -> Places:
    """The indices that the buffer is accessed with, in order; each a constant or a run of
    neighbours.
    """
    found: dict[Key, Place] = {}
    for node in accesses(body):
        held = node.buffer is buffer and not isinstance(node, Prefetch)
        if held and node.indices not in found:
            found[node.indices] = tuple(_place(buffer, i) for i in node.indices)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _parts(buffer: Buffer, body: Stmt, places: Places, tables: Isa) -> Parts:
    """The loads of a part of a vector that is stored whole, where there is an instruction for it.

    A vector of 16 that is read by fours, a vector of 4 that is read one by one.
    """
    own = [n for n in accesses(body) if n.buffer is buffer and not isinstance(n, Prefetch)]
    stored = [n for n in own if isinstance(n, Store)]
    kept = {n.indices for n in own if isinstance(n, Store) or n.mask is not None}
    wholes = {store.indices for store in stored if store.mask is None}
    found: Parts = {}
    for key, place in places.items():
        for whole in wholes if key not in kept else ():
            first = _first_lane(place, places[whole])
            count, lanes = (max(n for _, n in where) for where in (place, places[whole]))
            kind = buffer.type.with_lanes(lanes)
            if first is not None and tables.has(lanes_operation(count), kind):
                found[key] = whole, first
    return found


def _first_lane(part: Place, whole: Place) -> int | None:
    """Where in a vector a part of it begins, at a multiple of its length; None where it is no
    part.
    """
    first = 0
    for (start, count), (begin, lanes) in zip(part, whole, strict=True):
        if not begin <= start <= start + count <= begin + lanes or (start - begin) % count:
            return None
        first += start - begin
    return first if part != whole else None


def _conflict(places: Places) -> bool:
    """Whether two places overlap in part."""
    return any(_overlap(*pair) for pair in pairwise(places.values()))


def _place(buffer: Buffer, index: Expr) -> tuple[int, int]:
    """First element and number of elements of an index. Raises: TargetError."""
    base, lanes = index, 1
    if isinstance(index, Ramp) and (index.stride == 1 or index.lanes == 1):
        base, lanes = index.base, index.lanes
    if isinstance(base, Const):
        return int(base.value), lanes
    names = sorted({f"'{var.name}'" for var in free_vars(base)})
    hint = (
        f"unroll loop {' and '.join(names)}." if names else "vectorise along one dimension of it."
    )
    raise TargetError(
        f"registers: '{buffer.name}' lives in registers, but is indexed with a value that "
        f"{'loop ' + ' and '.join(names) + ' changes' if names else 'is no run of neighbours'}; "
        "expected constant indices.",
        code="register-index",
        hints=(hint,),
    )


def _overlap(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> bool:
    return all(x < y + m and y < x + n for (x, n), (y, m) in zip(a, b, strict=True))


def _register(buffer: Buffer, key: Key) -> Buffer:
    parts: list[str] = []
    lanes = 1
    for (start, count), extent in zip((_place(buffer, i) for i in key), buffer.shape, strict=True):
        lanes = max(lanes, count)
        if extent > count:
            parts.append(str(start // count if start % count == 0 else start))
    name = "_".join((buffer.name, *parts))
    return Buffer(name, buffer.type.with_lanes(lanes), (), "register", buffer.origin)


def _unmasked(buffer: Buffer, body: Stmt, parts: Parts) -> set[Key]:
    """The registers of which each read needs no lane that a masked store to it leaves out."""
    reads: dict[Key, set[Expr | None]] = {}
    writes: dict[Key, set[Expr]] = {}
    for node in accesses(body):
        if node.buffer is not buffer:
            continue
        if isinstance(node, Load):
            key = parts[node.indices][0] if node.indices in parts else node.indices
            reads.setdefault(key, set()).add(node.mask)
        elif isinstance(node, Store) and node.mask is not None:
            writes.setdefault(node.indices, set()).add(node.mask)
    return {
        key
        for key, masks in writes.items()
        if all(_implies(read, mask) for read in reads.get(key, ()) for mask in masks)
    }


def _implies(read: Expr | None, mask: Expr) -> bool:
    return read is not None and any(_narrower(item, mask) for item in (read, *conjuncts(read)))


def _narrower(a: Expr, b: Expr) -> bool:
    """Whether the lanes of `a` are among those of `b`: the same ones, or fewer of the first."""
    match a, b:
        case LT(left, Broadcast(Const() as fewer)), LT(right, Broadcast(Const() as more)):
            apart = _distance(left, right)
            return apart is not None and fewer.value <= more.value + apart
    return a == b


def _distance(a: Expr, b: Expr) -> int | None:
    """By how much each lane of `a` is more than that of `b`; None where that is not plain."""
    match a, b:
        case Ramp(Const() as one, step, _), Ramp(Const() as other, also, _) if step == also:
            return int(one.value) - int(other.value)
    return 0 if a == b else None
