"""Dependences between iterations: may two loops become one, may the iterations of one run at once?

The theorem: two iterations may run in any order where they share no element that one of them writes
(`apart`). One loop in the place of two keeps the meaning where iteration i of the second shares
such elements with iteration i of the first only (`check_together`). Where a tensor is made in
parts, iterations may run at once, or in storage of their own, where each reads only what it wrote
(`check_reads_own`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...tir.analysis.bounds import bounds
from ...tir.analysis.linear import Ranges, expression, linear, total
from ...tir.analysis.regions import Region, region
from ...tir.analysis.simplify import simplify
from ...tir.buffer import Buffer, Load
from ...tir.expr import Expr, Var
from ...tir.func import PrimFunc
from ...tir.initialise import spatial_loops
from ...tir.stmt import Block, For, Role, Seq, Store
from ...tir.visit import blocks, enclosing_path, loops_below, substitute, walk
from ..canonical import origin_of
from ..errors import Kind, refuse
from ..nest import (
    bound,
    buffers_read,
    is_reduction,
    loops_around,
    ranges_of,
    read_indices,
    targets_of,
    write_indices,
    writers,
)
from ..proof.forms.affine import variable
from ..proof.forms.nest import Access
from ..proof.relations.order import ANY, Order, orders_not_before
from .conflict import SEEN, Orders, conflict_notes, in_other_iterations


@dataclass(frozen=True, slots=True)
class BoundAccess:
    """One load or store of a block, its indices in the variables of the loops around it.

    begins: whether it is part of an initialisation.
    """

    block: Block
    buffer: Buffer
    indices: tuple[Expr, ...]
    write: bool
    begins: bool

    @property
    def verb(self) -> str:
        """What the block does with the element."""
        if self.begins and self.write:
            return "initialises"
        return "writes" if self.write else "reads"


def accesses_below(loop: For) -> Iterator[BoundAccess]:
    """What the blocks below a loop load and store, initialisations included."""
    for block in blocks(loop.body):
        begun = () if block.init is None else walk(block.init)
        updates = walk(replace(block, init=None))
        for begins, nodes in ((True, begun), (block.role is Role.INIT, updates)):
            for node in nodes:
                if isinstance(node, Load | Store):
                    indices = tuple(bound(block, item) for item in node.indices)
                    write = isinstance(node, Store)
                    yield BoundAccess(block, node.buffer, indices, write, begins)


def check_siblings(func: PrimFunc, first: For, second: For) -> None:
    """The second loop follows the first, with nothing between."""
    path = enclosing_path(func.body, first)
    around = path[-1] if path else None
    position = _position(around, first)
    if position is None or _position(around, second) != position + 1:
        nested = second in loops_below(first) or first in loops_below(second)
        raise refuse(
            func,
            f"merge: loop '{second.var.name}' does not follow loop '{first.var.name}' directly.",
            code="merge-siblings",
            kind=Kind.ARGUMENT if nested else Kind.LIMIT,
            hints=("compute_at and reverse_compute_at move a block below a loop of another.",),
        )


def _position(around: object, loop: For) -> int | None:
    """Where a loop stands in a sequence; None when it does not."""
    statements = around.body if isinstance(around, Seq) else ()
    return next((n for n, statement in enumerate(statements) if statement is loop), None)


def check_together(func: PrimFunc, first: For, second: For) -> None:
    """What the two loops both touch, one of them writing, they touch in one iteration; but for the
    updates of one reduction, which may run in any.
    """
    met = [
        (one, two)
        for one, two in itertools.product(accesses_below(first), accesses_below(second))
        if one.buffer is two.buffer
        and (one.write or two.write)
        and not _are_updates_of_one(one, two)
        and not apart(func, first, second, one, two)
    ]
    _check_merged(func, first, second, met)


def _are_updates_of_one(one: BoundAccess, two: BoundAccess) -> bool:
    """Whether two accesses are updates of one reduction, which may run in any order."""
    return _are_of_one_sum(one.block, two.block) and not (one.begins or two.begins)


def _are_of_one_sum(one: Block, two: Block) -> bool:
    """Whether two blocks are parts of one reduction."""
    update = one.role is two.role is Role.COMPUTE and is_reduction(one) and is_reduction(two)
    return update and one.family == two.family and not one.is_ordered


def _check_merged(
    func: PrimFunc, first: For, second: For, met: Sequence[tuple[BoundAccess, BoundAccess]]
) -> None:
    """Of each pair of accesses, below the one loop and the other, the two share no element in
    different iterations; but the second may add to what the first initialises before all else.
    """
    around = Order(len(loops_around(func, first)))
    late, early = variable(first.var), variable(second.var)
    hints = (
        "merge loops over axes of which both blocks touch the same element; compute_at computes "
        "what a reader needs.",
    )
    for one, two in met:
        notes = conflict_notes(func, _between(one, two, around), ((late, early),))
        if notes is not None:
            raise refuse(
                func,
                f"{_meet(first, second, one, two, 'another')}{'' if notes else SEEN}.",
                code="merge-order",
                kind=Kind.CONFLICT,
                notes=notes,
                hints=hints,
            )
    # in order still, but folded storage keeps what one iteration touches, and reorder asks no more
    for one, two in met:
        if _are_of_one_sum(one.block, two.block) and _begins_first(one, first):
            continue
        notes = conflict_notes(func, _between(two, one, around), ((early, late),))
        if notes is not None:
            raise refuse(
                func,
                f"{_meet(first, second, one, two, 'an earlier')}{'' if notes else SEEN}.",
                code="merge-carries",
                kind=Kind.LIMIT,
                notes=notes,
                hints=hints,
            )


def _begins_first(touch: BoundAccess, loop: For) -> bool:
    """Whether an access is part of an initialisation in the first iteration alone of a loop: it
    comes first however the loop is cut and reordered.
    """
    return touch.begins and not spatial_loops(touch.block, (loop,))


def _between(one: BoundAccess, two: BoundAccess, order: Order) -> Orders:
    """The order is asked about for these two accesses alone."""

    def orders(a: Access, b: Access) -> Sequence[Order]:
        return (order,) if _is(a, one) and _is(b, two) else ()

    return orders


def check_parts_together(func: PrimFunc, after: PrimFunc, loop: For) -> None:
    """No iteration of `loop` of `after`, made of two loops of `func`, reads what another one writes
    of a tensor all of whose parts the loop now holds: the storage would be an iteration's own.
    """
    inside = set(map(id, blocks(loop.body)))
    made_by: dict[Buffer, list[Block]] = {}
    for block in after.blocks:
        for buffer in dict.fromkeys(targets_of(block)) if block.role is not Role.INIT else ():
            made_by.setdefault(buffer, []).append(block)
    for tensor in func.allocations:
        makers = made_by.get(tensor, [])
        below = all(id(b) in inside for b in makers)
        again = all(b.recomputed for b in makers)  # so an iteration writes what it reads
        if not below or again or len({b.name for b in makers}) < 2:
            continue

        def carried(a: Access, b: Access, tensor: Buffer = tensor) -> Sequence[Order]:
            ours = a.write and not b.write and a.buffer is tensor is b.buffer
            if not ours or a.statement.block.family == b.statement.block.family:
                return ()
            return in_other_iterations(a.statement, b.statement, loop)

        notes = conflict_notes(after, carried)
        if notes is not None:
            raise refuse(
                func,
                f"merge: one loop would hold all parts of '{tensor.name}', of which an iteration "
                f"reads what another one writes{'' if notes else SEEN}.",
                code="merge-carries",
                kind=Kind.LIMIT,
                notes=notes,
                hints=("what rolling_buffer puts in front of a loop stays in front of it.",),
            )


def _meet(first: For, second: For, one: BoundAccess, two: BoundAccess, which: str) -> str:
    return (
        f"merge: block '{two.block.name}' {two.verb} in one iteration of loop "
        f"'{second.var.name}' what block '{one.block.name}' {one.verb} of '{one.buffer.name}' in "
        f"{which} one of loop '{first.var.name}'"
    )


def _is(access: Access, touch: BoundAccess) -> bool:
    statement = access.statement
    same = statement.block is touch.block and access.buffer is touch.buffer
    return same and access.write == touch.write and (statement.role is Role.INIT) == touch.begins


def check_reads_own(
    func: PrimFunc, loop: For, primitive: str, tensor: Buffer | None = None
) -> None:
    """Of a tensor that is made in parts, some below the loop and some outside, an iteration reads
    only what it wrote itself.

    tensor: the one that is asked about, for its iterations get storage of their own; else each,
    and an iteration may read what has been written outside of the loop.
    """
    inside = blocks(loop.body)
    outside = {
        origin_of(target)
        for b in func.blocks
        if b.role is Role.COMPUTE and not any(b is x for x in inside)
        for target in targets_of(b)
    }
    found = [touch for touch in accesses_below(loop) if touch.block.role is not Role.INIT]
    for one in found:
        if not one.write or origin_of(one.buffer) not in outside:
            continue
        if tensor is not None and one.buffer is not tensor:
            continue
        for two in found:
            own = two.block.role is Role.COMPUTE and two.block.family == one.block.family
            if two.buffer is not one.buffer or own:
                continue
            _check_not_carried(func, loop, one, two, primitive, own=tensor is not None)


def _check_not_carried(
    func: PrimFunc, loop: For, one: BoundAccess, two: BoundAccess, primitive: str, *, own: bool
) -> None:
    """Block `two` does not read what `one` writes in another iteration of the loop; nor, where each
    iteration has its `own` elements, what is written outside of the loop.
    """
    family = one.block.family

    def orders(a: Access, b: Access) -> Sequence[Order]:
        if not a.write or not _is(b, two):
            return ()
        if a.statement.block is one.block:
            return in_other_iterations(a.statement, b.statement, loop)
        return (ANY,) if own and a.statement.block.family == family else ()

    notes = conflict_notes(func, orders)
    if notes is None:
        return
    raise refuse(
        func,
        f"{primitive}: block '{two.block.name}' reads in one iteration of loop '{loop.var.name}' "
        f"what block '{one.block.name}' writes to '{one.buffer.name}' in another"
        f"{'' if notes else SEEN}.",
        code="loop-carries",
        kind=Kind.CONFLICT,
        notes=notes,
        hints=(f"choose a loop outside of '{loop.var.name}'.",),
    )


def check_read_complete(
    before: PrimFunc, after: PrimFunc, moved: Sequence[Block], primitive: str
) -> None:
    """In `after`, which a step made of `before`, what one of the blocks `moved` reads of another is
    still complete by then.
    """
    running = [block for block in moved if block.role is not Role.INIT]
    read = {buffer for block in running for buffer in buffers_read(block)}
    made = dict.fromkeys(target for block in running for target in targets_of(block))
    for tensor in (target for target in made if target in read):
        orders = _before_complete(after, tensor)
        staged = tensor.origin is not None  # an iteration's own part goes on from the one before
        notes = conflict_notes(after, orders, anywhere=staged)
        again = notes is not None and conflict_notes(before, orders, anywhere=staged) is not None
        if notes is None or again:  # computed again, as before
            continue
        raise refuse(
            before,
            f"{primitive}: '{tensor.name}' would be read before it is complete"
            f"{'' if notes else SEEN}; expected its readers after all of its "
            "writers.",
            code="reader-early",
            kind=Kind.CONFLICT,
            notes=notes,
            hints=(
                f"call {primitive} before the step that brought them together "
                "(reverse_compute_at, rolling_buffer).",
            ),
        )


def _before_complete(func: PrimFunc, tensor: Buffer) -> Orders:
    """A run that brings an element of a tensor closer to complete does not come before one that
    reads it for other blocks.
    """

    def orders(a: Access, b: Access) -> Sequence[Order]:
        one, two = a.statement, b.statement
        ours = a.write and not b.write and a.buffer is tensor is b.buffer
        if not ours or not _updates(one.block, tensor):
            return ()
        return orders_not_before(one, two) if _is_served(func, tensor, one.block, two.block) else ()

    return orders


def _updates(block: Block, tensor: Buffer) -> bool:
    """Whether a block computes a tensor, or copies out what has been computed of it."""
    out = any(read.origin is tensor for read in buffers_read(block))
    return block.role is Role.COMPUTE or (block.role is Role.COPY and out)


def _is_served(func: PrimFunc, tensor: Buffer, maker: Block, reader: Block) -> bool:
    """Whether a block that reads a tensor is no part of its computation: one of another family, or
    a copy into a buffer that nobody else writes.
    """
    if reader.role is not Role.COPY:
        return reader.role is Role.COMPUTE and reader.family != maker.family
    (target,) = targets_of(reader)
    makers = [b for b in writers(func, target) if b.role is not Role.INIT]
    return target.origin is tensor and all(tensor in buffers_read(b) for b in makers)


def writes_apart(func: PrimFunc, loop: For, buffer: Buffer) -> bool:
    """Whether different iterations of a loop write different elements of a buffer."""
    written = [touch for touch in accesses_below(loop) if touch.buffer is buffer and touch.write]
    pairs = itertools.combinations_with_replacement(written, 2)
    return all(apart(func, loop, loop, one, two) for one, two in pairs)


def ever_apart(func: PrimFunc, writer: Block, reader: Block, buffer: Buffer) -> bool:
    """Whether no run of one block touches an element of the buffer that some run of the other does:
    they belong to parts of the tensor that have nothing in common.
    """
    boxes = []
    for block, indices in ((writer, write_indices), (reader, read_indices)):
        found = [tuple(bound(block, item) for item in access) for access in indices(block, buffer)]
        boxes.append(region(found, ranges_of(loops_around(func, block)), {}, buffer.shape))
    return _separate(boxes[0], boxes[1], {}, {})


def apart(func: PrimFunc, first: For, second: For, one: BoundAccess, two: BoundAccess) -> bool:
    """Whether the box of `one` in an iteration of `first` and that of `two` in any other iteration
    of `second` share no element: their lows are far enough apart along one axis.
    """
    step, last = Var("step"), max(first.extent, second.extent) - 1
    if last < 1:
        return True
    own = ranges_of(loops_around(func, first))
    a = _box(one, first, {**own, first.var: (0, last)})
    b = _box(two, second, {**own, second.var: (0, last)})
    for one_box, two_box, early, late in (
        (a, b, second.var, first.var),
        (b, a, first.var, second.var),
    ):
        after = linear(early + step)
        ranges: Ranges = {
            **own,
            early: (0, last - 1),
            step: (1, last),
            total(after): (1, last),
            total(after.scaled(-1)): (-last, -1),
        }
        if not _separate(one_box, two_box, {late: early + step}, ranges):
            return False
    return True


def _separate(a: Region, b: Region, moved: dict[Var, Expr], ranges: Ranges) -> bool:
    """Whether box `a`, with its loop's variable replaced, and box `b` share no element."""
    for left, right in zip(a, b, strict=True):
        low = linear(simplify(substitute(left.low, moved), ranges))
        distance = low - linear(simplify(right.low, ranges))
        least, most = bounds(expression(distance), ranges)
        if (least is not None and least >= right.extent) or (
            most is not None and -most >= left.extent
        ):
            return True
    return False


def _box(touch: BoundAccess, loop: For, still: Ranges) -> Region:
    """The elements that an access may touch in one iteration of a loop."""
    moving = ranges_of(loops_below(loop.body))
    return region([touch.indices], moving, still, touch.buffer.shape)
