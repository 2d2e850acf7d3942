"""Dependences between iterations: may two loops become one, may the iterations of one run at once?

The theorem: two iterations may run in any order where they share no element that one of them writes
(`apart`). One loop in the place of two keeps the meaning where iteration i of the second shares
such elements with iteration i of the first only (`check_together`). Where a tensor is made in
parts, iterations may run at once, or in storage of their own, where each reads only what it wrote
(`check_reads_own`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ..tir.bounds import bounds
from ..tir.buffer import Buffer, Load
from ..tir.expr import Const, Expr, Var, index
from ..tir.func import PrimFunc
from ..tir.linear import Ranges, expression, linear, total
from ..tir.regions import Region, region
from ..tir.simplify import provable, simplify
from ..tir.stmt import Block, For, Role, Seq, Store
from ..tir.visit import blocks, enclosing_path, substitute, walk
from .canonical import origin_of
from .errors import ScheduleError, iteration, refuse
from .nest import (
    bound,
    loops_around,
    loops_below,
    ranges_of,
    read_indices,
    targets_of,
    write_indices,
)

FIRST_ITERATIONS = 4  # of each loop, among which two that clash are looked for


@dataclass(frozen=True, slots=True)
class Touch:
    """One load or store of a block, its indices in the variables of the loops around it."""

    block: Block
    buffer: Buffer
    indices: tuple[Expr, ...]
    write: bool

    @property
    def verb(self) -> str:
        """What the block does with the element."""
        return "writes" if self.write else "reads"


def touches(loop: For) -> Iterator[Touch]:
    """What the blocks below a loop load and store, initialisations included."""
    for block in blocks(loop.body):
        for node in walk(block):
            if isinstance(node, Load | Store):
                indices = tuple(bound(block, item) for item in node.indices)
                yield Touch(block, node.buffer, indices, isinstance(node, Store))


def check_siblings(func: PrimFunc, first: For, second: For) -> None:
    """The second loop follows the first, with nothing between, and has its extent."""
    if first.extent != second.extent:
        raise refuse(
            func,
            f"merge: loop '{first.var.name}' has {first.extent} iterations and loop "
            f"'{second.var.name}' {second.extent}; expected equal extents.",
            code="merge-extent",
            hints=("loop_partition or split cuts the longer one.",),
        )
    path = enclosing_path(func.body, first)
    around = path[-1] if path else None
    position = _position(around, first)
    if position is None or _position(around, second) != position + 1:
        raise refuse(
            func,
            f"merge: loop '{second.var.name}' does not follow loop '{first.var.name}' directly.",
            code="merge-siblings",
            hints=("compute_at and reverse_compute_at move a block below a loop of another.",),
        )


def _position(around: object, loop: For) -> int | None:
    """Where a loop stands in a sequence; None when it does not."""
    statements = around.body if isinstance(around, Seq) else ()
    return next((n for n, statement in enumerate(statements) if statement is loop), None)


def check_together(func: PrimFunc, first: For, second: For) -> None:
    """What the two loops both touch, one of them writing, they touch in one iteration."""
    for one, two in itertools.product(touches(first), touches(second)):
        if one.buffer is not two.buffer or not (one.write or two.write):
            continue
        if apart(func, first, second, one, two):
            continue
        notes = clash_notes(func, first, second, one, two)
        raise refuse(
            func,
            f"merge: block '{two.block.name}' {two.verb} in one iteration of loop "
            f"'{second.var.name}' what block '{one.block.name}' {one.verb} of "
            f"'{one.buffer.name}' in another one of loop '{first.var.name}'"
            f"{'' if notes else ', as far as can be seen'}.",
            code="merge-order",
            notes=notes,
            hints=(
                "merge loops over axes of which both blocks touch the same element; compute_at "
                "computes what a reader needs.",
            ),
        )


def check_reads_own(func: PrimFunc, loop: For, primitive: str) -> None:
    """Of a tensor that is made in parts, some below the loop and some outside, an iteration reads
    only what it wrote itself.
    """
    inside = blocks(loop.body)
    outside = {
        origin_of(target)
        for b in func.blocks
        if b.role is Role.COMPUTE and not any(b is x for x in inside)
        for target in targets_of(b)
    }
    found = [touch for touch in touches(loop) if touch.block.role is not Role.INIT]
    for one in found:
        if not one.write or origin_of(one.buffer) not in outside:
            continue
        for two in found:
            own = two.block.role is Role.COMPUTE and two.block.family == one.block.family
            if two.buffer is not one.buffer or own:
                continue
            if not _within(func, loop, two, one):
                raise _carried(func, loop, one, two, primitive)


def _within(func: PrimFunc, loop: For, inner: Touch, outer: Touch) -> bool:
    """Whether, in each iteration of the loop, the box of `inner` lies in that of `outer`."""
    still = ranges_of((*loops_around(func, loop), loop))
    return all(
        provable(b.low <= a.low, still) and provable(a.low + a.extent <= b.low + b.extent, still)
        for a, b in zip(_box(inner, loop, still), _box(outer, loop, still), strict=True)
    )


def _carried(func: PrimFunc, loop: For, one: Touch, two: Touch, primitive: str) -> ScheduleError:
    notes = clash_notes(func, loop, loop, one, two)
    return refuse(
        func,
        f"{primitive}: block '{two.block.name}' reads in one iteration of loop '{loop.var.name}' "
        f"what block '{one.block.name}' writes to '{one.buffer.name}' in another"
        f"{'' if notes else ', as far as can be seen'}.",
        code="loop-carries",
        notes=notes,
        hints=(f"choose a loop outside of '{loop.var.name}'.",),
    )


def writes_apart(func: PrimFunc, loop: For, buffer: Buffer) -> bool:
    """Whether different iterations of a loop write different elements of a buffer."""
    written = [touch for touch in touches(loop) if touch.buffer is buffer and touch.write]
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


def apart(func: PrimFunc, first: For, second: For, one: Touch, two: Touch) -> bool:
    """Whether the box of `one` in an iteration of `first` and that of `two` in any other iteration
    of `second` share no element: their lows are far enough apart along one axis.
    """
    if first.extent < 2:
        return True
    step, last = Var("step"), first.extent - 1
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


def _box(touch: Touch, loop: For, still: Ranges) -> Region:
    """The elements that an access may touch in one iteration of a loop."""
    moving = ranges_of(loops_below(loop.body))
    return region([touch.indices], moving, still, touch.buffer.shape)


def clash_notes(func: PrimFunc, first: For, second: For, one: Touch, two: Touch) -> tuple[str, ...]:
    """Two different iterations, among the first of each loop, and an element that both touch, in
    words; nothing where there are none.
    """
    shared = {loop.var: 0 for loop in loops_around(func, first)}
    seen: dict[tuple[int, ...], list[dict[Var, int]]] = {}
    for values, element in _elements(func, second, two, shared):
        seen.setdefault(element, []).append(values)
    for values, element in _elements(func, first, one, shared):
        for other in seen.get(element, []):
            if other[second.var] != values[first.var]:
                shown = ", ".join(map(str, element))
                return (
                    f"block '{one.block.name}' {one.verb} {one.buffer.name}[{shown}] in iteration "
                    f"{iteration(values)}, block '{two.block.name}' {two.verb} it in iteration "
                    f"{iteration(other)}.",
                )
    return ()


def _elements(
    func: PrimFunc, loop: For, touch: Touch, shared: dict[Var, int]
) -> Iterator[tuple[dict[Var, int], tuple[int, ...]]]:
    """The first iterations in which a block runs below a loop, each with the element touched."""
    around = [x for x in loops_around(func, touch.block) if x.var not in shared]
    for point in itertools.product(*(range(min(x.extent, FIRST_ITERATIONS)) for x in around)):
        values = {x.var: value for x, value in zip(around, point, strict=True)}
        numbers: dict[Var, Expr] = {
            var: index(value) for var, value in {**shared, **values}.items()
        }
        runs = simplify(substitute(bound(touch.block, touch.block.predicate), numbers))
        found = [simplify(substitute(item, numbers)) for item in touch.indices]
        known = tuple(int(item.value) for item in found if isinstance(item, Const))
        if isinstance(runs, Const) and runs.value and len(known) == len(found):
            yield values, known
