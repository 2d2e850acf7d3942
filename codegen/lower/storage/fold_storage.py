"""Give each tensor between blocks no more storage than is live at once.

A tensor that a C function reads or writes keeps its storage. Three steps for the others, each
checked by the proof that follows: a tensor that its only reader, or the last of several, turns
element by element into a tensor of the same shape shares that tensor's storage; an allocation moves
down to the loop that holds all accesses; and it shrinks to the box that one iteration touches, its
indices taken relative to the box. Where the box moves forward over a tensor that is made as it is
read (a rolling buffer), the indices go round in storage of the size of the box; what comes after
may read the last box, as who wants the last step of a recurrence does.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from ....tir.analysis.linear import Interval, Ranges, linear
from ....tir.analysis.narrow import narrowed
from ....tir.analysis.regions import Region, Span, region
from ....tir.analysis.simplify import provable
from ....tir.buffer import Buffer, Load
from ....tir.expr import Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import (
    SHARED_OUT,
    Alloc,
    Block,
    Extern,
    For,
    ForKind,
    If,
    IterKind,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
    seq,
)
from ....tir.visit import (
    accesses,
    blocks,
    enclosing_path,
    exchange,
    free_vars,
    loads,
    mentions_none,
    replace_buffers,
    replace_stmt,
    statements,
    stores,
    substitute,
    walk,
)
from .starts_afresh import below_tests, branch_conditions, starts_afresh

Access = Load | Store | Prefetch


@dataclass(frozen=True, slots=True)
class FoldStorage:
    """Share, sink and shrink the allocations of a function.

    Requires: stage NEST. Ensures: stage NEST; no allocation is unused, or larger than the box that
    its body touches.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = _share(func).body
        return func.with_body(_fold(body, {}))


# -- sharing -------------------------------------------------------------------------------------


def _share(func: PrimFunc) -> PrimFunc:
    for tensor in func.allocations:
        if tensor.origin is None and tensor.scope == "global" and _is_free(func.body, tensor):
            target = _heir(func, tensor)
            if target is not None:
                func = func.with_body(
                    replace_buffers(_without(func.body, tensor), {tensor: target})
                )
    return func


def _without(stmt: Stmt, buffer: Buffer) -> Stmt:
    def drop(node: Node) -> Node:
        return node.body if isinstance(node, Alloc) and node.buffer is buffer else node

    return exchange(stmt, drop, lambda part: mentions_none(part, (buffer,)))


def _heir(func: PrimFunc, tensor: Buffer) -> Buffer | None:
    """The tensor whose storage `tensor` may use: its only reader, or one that comes behind all
    others, makes each element of it from the same element.
    """
    forms = {tensor} | {b for b in func.allocations if b.origin is tensor}
    users = [b for b in blocks(func.body) if any(load.buffer in forms for load in loads(b.body))]
    makers = [b for b in blocks(func.body) if any(s.buffer in forms for s in stores(b.body))]
    accumulators = {s.buffer for b in makers if b.role is not Role.COPY for s in stores(b.body)}
    copied = {s.buffer for b in users if b.role is Role.COPY for s in stores(b.body)}
    if (copied & forms) - accumulators - {tensor}:
        return None  # a reader's own copy may hold more than the elements that it then replaces
    parts = {b.name for b in makers if b.role is Role.COMPUTE}
    if len(parts) > 1 and any(b.role is Role.COPY for b in makers):
        return None  # what one part copies out for the readers of others may come after a reader
    if any(b.recomputed for b in (*users, *makers)):
        return None
    own_names = {b.family for b in makers}
    readers = [b for b in users if b.role is Role.COMPUTE and b.family not in own_names]
    if len({b.family for b in readers}) > 1:
        readers = _last_readers(func, tensor, forms, readers)
    if not readers:
        return None
    targets = {s.buffer for b in readers for s in stores(b.body)}
    target = next(iter(targets))
    if (
        len(targets) != 1
        or (target.extents, target.type) != (tensor.extents, tensor.type)
        or target.origin is not None
    ):
        return None
    others = [
        b
        for b in blocks(func.body)
        if b not in readers and any(s.buffer is target for s in stores(b.body))
    ]
    own = all(_reads_own_element(b, forms, target) for b in readers)
    allowed = target in func.outputs or (
        target.scope == "global" and _lives_around(func, target, forms)
    )
    if not own or not allowed or others or _copied_later(func, tensor, readers):
        return None
    if _goes_on(func, makers, readers) or any(_streams(func, block) for block in readers):
        return None
    return target


def _last_readers(
    func: PrimFunc, tensor: Buffer, forms: set[Buffer], readers: list[Block]
) -> list[Block]:
    """Of several readers the one behind all others, where each round of the loops around them makes
    what they read; none where there is no such reader.
    """
    last = [b for b in readers if b.family == readers[-1].family]
    place = _place(func.body, tensor)
    while isinstance(place, Alloc):
        place = place.body
    if forms != {tensor} or not isinstance(place, Seq):
        return []
    first = (n for n, s in enumerate(place.body) if any(b in last for b in blocks(s)))
    behind = place.body[next(first, 0) :]
    users = (b for statement in behind for b in blocks(statement) if _touches(b, tensor))
    return last if all(b in last for b in users) else []


def _goes_on(func: PrimFunc, makers: list[Block], readers: list[Block]) -> bool:
    """Whether a recurrence among the makers may still look back at what a reader has replaced: one
    loop holds both, or the reader stands before it.
    """
    place = {id(block): number for number, block in enumerate(blocks(func.body))}
    for one, other in itertools.product((b for b in makers if b.is_ordered), readers):
        around = [n for n in enclosing_path(func.body, one) if isinstance(n, For)]
        together = any(any(block is other for block in blocks(loop)) for loop in around)
        if together or place[id(other)] < place[id(one)]:
            return True
    return False


def _streams(func: PrimFunc, block: Block) -> bool:
    """Whether what a block stores goes past the caches, so that nothing should lie there before."""
    around = (n for n in enclosing_path(func.body, block) if isinstance(n, For))
    return any("stream" in dict(loop.annotations) for loop in around)


def _copied_later(func: PrimFunc, tensor: Buffer, readers: list[Block]) -> bool:
    """Whether a copy into `tensor` may run after a reader has put its own element there.

    It does not where it stands before the reader or in another branch, and every loop around both
    gives the reader other elements, or runs it in its last iteration only.
    """
    listed = blocks(func.body)
    copies = [
        b for b in listed if b.role is Role.COPY and any(s.buffer is tensor for s in stores(b.body))
    ]
    for reader in readers:
        spatial = frozenset[Var]().union(*(free_vars(binding) for binding in reader.bindings))
        path = enclosing_path(func.body, reader)
        loops = [n for n in path if isinstance(n, For)]
        around = {loop.var for loop in loops}
        runs: dict[Var, Interval] = {loop.var: (0, loop.extent - 1) for loop in loops}
        for condition in (reader.predicate, *branch_conditions(path, reader)):
            runs = {**runs, **narrowed(runs, condition)}
        last = {loop.var for loop in loops if runs[loop.var] == (loop.extent - 1,) * 2}
        for copy in copies:
            shared = around & {n.var for n in enclosing_path(func.body, copy) if isinstance(n, For)}
            later = listed.index(copy) > listed.index(reader) and not _apart(func, reader, copy)
            if later or not shared <= spatial | last:
                return True
    return False


def _apart(func: PrimFunc, one: Block, other: Block) -> bool:
    """Whether two blocks stand in different branches."""
    for node in walk(func.body):
        if isinstance(node, If) and node.orelse is not None:
            sides = [blocks(side) for side in (node.then, node.orelse)]
            found = [[any(b is x for x in side) for side in sides] for b in (one, other)]
            if found in ([[True, False], [False, True]], [[False, True], [True, False]]):
                return True
    return False


def _lives_around(func: PrimFunc, target: Buffer, others: set[Buffer]) -> bool:
    """Whether every access to the other buffers is inside the allocation of `target`."""
    holders = [n for n in statements(func.body) if isinstance(n, Alloc) and n.buffer is target]
    within = sum(a.buffer in others for holder in holders for a in accesses(holder))
    return within == sum(a.buffer in others for a in accesses(func.body))


def _reads_own_element(block: Block, forms: set[Buffer], target: Buffer) -> bool:
    written = stores(block.body)[0].indices
    reduced = any(it.kind is IterKind.REDUCE for it in block.iters)
    return not reduced and all(
        load.indices == written for load in loads(block.body) if load.buffer in forms
    )


# -- sinking and shrinking -----------------------------------------------------------------------


def _fold(stmt: Stmt, still: dict[Var, Interval]) -> Stmt:
    match stmt:
        case Alloc():
            return _allocation(stmt, still)
        case For():
            body = _fold(stmt.body, {**still, stmt.var: (0, stmt.extent - 1)})
            return stmt if body is stmt.body else replace(stmt, body=body)
        case Seq():
            return seq(*(_fold(child, still) for child in stmt.body))
        case If():
            orelse = None if stmt.orelse is None else _fold(stmt.orelse, still)
            return If(stmt.condition, _fold(stmt.then, still), orelse)
    return stmt


def _allocation(stmt: Alloc, still: dict[Var, Interval]) -> Stmt:
    buffer, body = stmt.buffer, stmt.body
    if not _touches(body, buffer):
        return _fold(body, still)
    if _is_handed(body, buffer):
        return Alloc(buffer, _fold(body, still))
    place = _place(body, buffer)
    if place is not body:
        return _fold(replace_stmt(body, place, Alloc(buffer, place)), still)
    box = _box(body, buffer, still)
    round_trip = _window(body, buffer, box, still)
    shape = tuple(
        span.extent if size is None else size for span, size in zip(box, round_trip, strict=True)
    )
    if shape == buffer.shape:
        return Alloc(buffer, _fold(body, still))
    small = replace(buffer, shape=shape, dims=())
    return Alloc(small, _fold(_relative(body, buffer, small, box, round_trip), still))


def _is_free(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether the layout of a tensor's storage is unconstrained."""
    return not buffer.aligned and not _is_handed(stmt, buffer)


def _is_handed(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether a C function reads or writes a buffer."""
    calls = (node for node in statements(stmt) if isinstance(node, Extern))
    return any(buffer in (*call.inputs, *call.outputs) for call in calls)


def _touches(stmt: Stmt, buffer: Buffer) -> bool:
    while isinstance(stmt, Alloc):
        stmt = stmt.body
    return not mentions_none(stmt, (buffer,))


def _place(body: Stmt, buffer: Buffer) -> Stmt:
    """The body of the innermost loop that holds every access and that no accumulator is carried
    into from outside.
    """
    place = found = body
    while True:
        match place:
            case Seq():
                users = [child for child in place.body if _touches(child, buffer)]
                if len(users) != 1:
                    return found
                place = users[0]
            case Alloc():
                place = place.body
            case For() if _may_own(place, buffer) and starts_afresh(place, buffer):
                place = found = below_tests(place.body)
            case _:
                return found


def _may_own(loop: For, buffer: Buffer) -> bool:
    """Whether an iteration of the loop may have the buffer for itself."""
    if loop.is_of_threads and buffer.scope == "shared":
        return False
    return loop.kind in (ForKind.SERIAL, *SHARED_OUT)


def _box(body: Stmt, buffer: Buffer, still: dict[Var, Interval]) -> Region:
    """The box that a statement touches while the loops in it run."""
    moving = {n.var: (0, n.extent - 1) for n in statements(body) if isinstance(n, For)}
    found: list[tuple[Expr, ...]] = []

    def collect(node: Node, values: dict[Var, Expr]) -> None:
        if isinstance(node, Block):
            values = {it.var: b for it, b in zip(node.iters, node.bindings, strict=True)}
        if isinstance(node, Load | Store | Prefetch) and node.buffer is buffer:
            found.append(tuple(substitute(i, values) for i in node.indices))
        for child in node.children():
            if not isinstance(child, Stmt) or not mentions_none(child, (buffer,)):
                collect(child, values)

    collect(body, {})
    return region(found, moving, still, buffer.shape)


def _window(
    body: Stmt, buffer: Buffer, box: Region, still: dict[Var, Interval]
) -> tuple[int | None, ...]:
    """For the axis along which the box that one iteration of a serial loop touches moves forward
    over a larger tensor: how many elements it has there, where what stands before the loop touches
    the box of its first iteration only, and what comes after that of its last one. None for other
    axes.

    Then an element is used only while it lies in the box, and no two elements of the box have one
    index modulo its extent.
    """
    nothing: tuple[int | None, ...] = (None,) * len(box)
    while isinstance(body, Alloc):
        body = body.body
    users = [x for x in (body.body if isinstance(body, Seq) else (body,)) if _touches(x, buffer)]
    for place, loop in enumerate(users):
        if place and isinstance(loop, For) and loop.kind is ForKind.SERIAL:
            break
    else:
        return nothing
    moving = _box(loop.body, buffer, {**still, loop.var: (0, loop.extent - 1)})
    others = [_box(statement, buffer, still) for statement in users]
    for axis, span in enumerate(moving):
        forward = linear(span.low).coefficient(loop.var) > 0
        known = free_vars(span.low) <= {loop.var, *still}
        inside = all(
            _is_inside(other[axis], span, loop.var, index(end), still)
            for part, end in ((others[:place], 0), (others[place + 1 :], loop.extent - 1))
            for other in part
        )
        if forward and known and inside and span.extent < box[axis].extent:
            return (*nothing[:axis], span.extent, *nothing[axis + 1 :])
    return nothing


def _is_inside(span: Span, moving: Span, var: Var, at: Expr, still: Ranges) -> bool:
    """Whether a span lies within the one that moves with `var`, where this is `at`."""
    low = substitute(moving.low, {var: at})
    return provable(low <= span.low, still) and provable(
        span.low + span.extent <= low + moving.extent, still
    )


def _relative(
    body: Stmt,
    buffer: Buffer,
    small: Buffer,
    box: Region,
    round_trip: tuple[int | None, ...],
) -> Stmt:
    def shift(node: Node) -> Node:
        if not isinstance(node, Load | Store | Prefetch) or node.buffer is not buffer:
            return node
        moved = [i - span.low for i, span in zip(node.indices, box, strict=True)]
        indices = tuple(
            i if size is None else i % size for i, size in zip(moved, round_trip, strict=True)
        )
        match node:
            case Load():
                return Load(small, indices, node.mask, node.other)
            case Store():
                return Store(small, indices, node.value, node.mask)
        return Prefetch(small, indices, node.write, node.level)

    return exchange(body, shift, lambda stmt: mentions_none(stmt, (buffer,)))
