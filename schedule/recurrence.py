"""May a step change when the points of a recurrence run?

A block with an ordered variable reads what it has set itself at earlier steps. The theorems: on the
nest that a step leaves, each such read comes after the write of its element (`check_order`); the
iterations of a loop may run at once where none reads what another one writes (`carried`). Both are
asked of isl, exactly; a yes is final, a no comes with two iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from ..tir.func import PrimFunc
from ..tir.stmt import Block, For
from ..tir.visit import blocks
from .errors import ScheduleError, refuse
from .proof.affine import Undecided
from .proof.order import Order, common_loops, text_before
from .proof.sets import Sets
from .proof.statements import Access, Nest, Statement, read_nest
from .proof.witness import element_text, iteration, runs_of

MAX_OPERATIONS = 2_000_000  # of isl: some tenths of a second


@dataclass(frozen=True, slots=True)
class Clash:
    """Two runs, in words: `writer` sets `element`, `reader` needs it."""

    block: str
    writer: str
    reader: str
    element: str


def check_order(before: PrimFunc, after: PrimFunc, moved: Iterable[Block], primitive: str) -> None:
    """In `after`, which a step made of `before`, every recurrence still reads what has been
    written. moved: the blocks whose points the step runs in another order.
    """
    if not any(block.is_ordered for block in moved):
        return
    found = _ask(before, after, primitive, _late)
    if found is not None:
        raise refuse(
            before,
            f"{primitive}: block '{found.block}' would read '{found.element}' before it is "
            "computed; expected its steps in order.",
            code="scan-order",
            notes=(
                f"iteration {found.reader} reads {found.element}, which iteration "
                f"{found.writer} writes.",
            ),
            hints=(
                "the loop over the ordered axis goes through the steps in order, outside of the "
                "loops along which the block looks back.",
            ),
        )


def check_carries_nothing(func: PrimFunc, loop: For, primitive: str) -> None:
    """No iteration of the loop reads what a recurrence computes in another one."""
    found = carried(func, loop, primitive)
    if found is not None:
        raise refuse(
            func,
            f"{primitive}: iterations of loop '{loop.var.name}' depend on each other: block "
            f"'{found.block}' reads in one of them what it computes in another.",
            code="scan-carries",
            notes=(
                f"iteration {found.reader} reads {found.element}, which iteration "
                f"{found.writer} writes.",
            ),
            hints=("choose a loop over an axis along which the recurrence does not look back.",),
        )


def carried(func: PrimFunc, loop: For, primitive: str) -> Clash | None:
    """Two iterations of the loop of which one reads what a recurrence computes in the other."""
    if loop.extent < 2 or not any(block.is_ordered for block in blocks(loop.body)):
        return None

    def apart(write: Statement, read: Statement) -> Sequence[Order]:
        if loop.var not in write.variables or loop.var not in read.variables:
            return ()
        level = write.variables.index(loop.var)
        return Order(level, "<"), Order(level, ">")

    return _ask(func, func, primitive, apart)


def check_no_recurrence(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block's elements do not depend on each other, so it may be moved or taken apart."""
    if not block.is_ordered:
        return
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' is a recurrence, which reads its own earlier steps; "
        "expected a block whose elements do not depend on each other.",
        code="scan-block",
        hints=(
            "split, reorder, fuse, parallel, vectorize and unroll take its loops; "
            "reverse_compute_at brings its readers to it.",
        ),
    )


Orders = Callable[[Statement, Statement], Sequence[Order]]


def _late(write: Statement, read: Statement) -> Sequence[Order]:
    """When a run of `write` does not come before one of `read`."""
    common = common_loops(write, read)
    orders = [Order(level, ">") for level in range(common)]
    return orders if text_before(write, read) else [*orders, Order(common)]


def _ask(before: PrimFunc, nest: PrimFunc, primitive: str, orders: Orders) -> Clash | None:
    """A write and a read of one element by a recurrence of `nest`, in one of `orders`."""
    try:
        return _found(read_nest(nest), orders)
    except Undecided as undecided:
        raise _unclear(before, primitive, str(undecided)) from undecided
    except isl.Error as error:
        if "maximal number of operations" not in str(error):
            raise
        reason = f"it takes isl more than {MAX_OPERATIONS} operations"
        raise _unclear(before, primitive, reason) from error


def _unclear(func: PrimFunc, primitive: str, reason: str) -> ScheduleError:
    return refuse(
        func,
        f"{primitive}: whether the steps of a recurrence stay in order cannot be shown: {reason}.",
        code="scan-undecided",
        hints=(f"leave out this {primitive}.",),
    )


def _found(nest: Nest, orders: Orders) -> Clash | None:
    sets = Sets(MAX_OPERATIONS)
    for write, read in _own_pairs(nest):
        a, b = write.statement, read.statement
        wanted = orders(a, b)
        equal = tuple(zip(write.cell, read.cell, strict=True))
        possible = sets.possible(a, write.where, b, read.where, equal, wanted) if wanted else ()
        if not possible:
            continue
        runs = sets.pairs(a, write.where, b, read.where, equal, possible)
        if not sets.empty(runs):
            wrote, at = runs_of(runs.wrap().lexmin(), a, b)
            element = element_text(write.buffer.name, write.indices, wrote)
            return Clash(b.name, str(iteration(a, wrote)), str(iteration(b, at)), element)
    return None


def _own_pairs(nest: Nest) -> Iterator[tuple[Access, Access]]:
    """The writes and reads of one buffer by the blocks of one recurrence."""
    own = [access for access in nest.accesses if access.statement.block.is_ordered]
    for write in own:
        for read in own:
            same = write.statement.family == read.statement.family
            if write.write and not read.write and same and write.buffer is read.buffer:
                yield write, read
