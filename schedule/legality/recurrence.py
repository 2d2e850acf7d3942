"""May a step change when the points of a recurrence run?

A block with an ordered variable reads what it has set itself at earlier steps. The theorems: on the
nest that a step leaves, each such read comes after the write of its element (`check_order`); the
iterations of a loop may run at once where none reads what another one writes (`carried`). Both are
asked of isl, exactly; a yes is final, a no comes with two iterations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...tir.buffer import Buffer, Load
from ...tir.func import PrimFunc
from ...tir.stmt import Block, For, IterKind, IterVar
from ...tir.visit import blocks, free_vars, loads, stores
from ..conflict_note import ConflictNote
from ..errors import Kind, ScheduleError, refuse
from ..proof.forms.affine import Undecided
from ..proof.forms.nest import Access
from ..proof.relations.order import Order, orders_not_before
from .conflict import Conflict, Orders, find_conflict, in_other_iterations


def check_order(before: PrimFunc, after: PrimFunc, moved: Iterable[Block], primitive: str) -> None:
    """In `after`, which a step made of `before`, every recurrence still reads what has been
    written. moved: the blocks whose points the step runs in another order.
    """
    families = {block.family for block in moved if block.is_ordered}
    if not families:
        return
    found = _ask(before, after, primitive, _late, families)
    if found is not None:
        raise refuse(
            before,
            f"{primitive}: block '{found.second.run.block}' would read '{found.element}' before "
            "it is computed; expected its steps in order.",
            code="scan-order",
            kind=Kind.CONFLICT,
            notes=(_read_and_write(found),),
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
            f"'{found.second.run.block}' reads in one of them what it computes in another.",
            code="scan-carries",
            kind=Kind.CONFLICT,
            notes=(_read_and_write(found),),
            hints=("choose a loop over an axis along which the recurrence does not look back.",),
        )


def carried(
    func: PrimFunc, loop: For, primitive: str, tensor: Buffer | None = None
) -> Conflict | None:
    """Two iterations of the loop of which one reads what a recurrence computes in the other.

    tensor: the one that is asked about; else all.
    """
    families = {block.family for block in blocks(loop.body) if block.is_ordered}
    if loop.extent < 2 or not families:
        return None

    def apart(a: Access, b: Access) -> Sequence[Order]:
        asked = tensor is None or a.buffer is tensor
        return in_other_iterations(a.statement, b.statement, loop) if asked and _own(a, b) else ()

    return _ask(func, func, primitive, apart, families)


def check_no_recurrence(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block's elements do not depend on each other, so it may be moved or taken apart."""
    if not block.is_ordered:
        return
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' is a recurrence, which reads its own earlier steps; "
        "expected a block whose elements do not depend on each other.",
        code="scan-block",
        kind=Kind.LIMIT,
        hints=(
            "split, reorder, fuse, parallel, vectorize and unroll take its loops; "
            "reverse_compute_at brings its readers to it.",
        ),
    )


def _read_and_write(found: Conflict) -> ConflictNote:
    first, second = found.first.run, found.second.run
    return found.note(f"iteration {second} reads {found.element}, which iteration {first} writes.")


def _own(a: Access, b: Access) -> bool:
    """Whether the two are a write and a read by the blocks of one recurrence."""
    ordered = a.statement.block.is_ordered and b.statement.block.is_ordered
    return ordered and a.write and not b.write and a.statement.family == b.statement.family


def _late(write: Access, read: Access) -> Sequence[Order]:
    """When a run of a recurrence's `write` does not come before one of its `read`."""
    return orders_not_before(write.statement, read.statement) if _own(write, read) else ()


def _ask(
    before: PrimFunc, nest: PrimFunc, primitive: str, orders: Orders, families: Collection[str]
) -> Conflict | None:
    """A write and a read of one element by a recurrence of `nest`, one of some families, in one of
    `orders`.
    """
    try:
        return find_conflict(nest, orders, families=families)
    except Undecided as undecided:
        raise _unclear(before, primitive, str(undecided)) from undecided


def _unclear(func: PrimFunc, primitive: str, reason: str) -> ScheduleError:
    return refuse(
        func,
        f"{primitive}: whether the steps of a recurrence stay in order cannot be shown: {reason}.",
        code="scan-undecided",
        kind=Kind.LIMIT,
        hints=(f"leave out this {primitive}.",),
    )


def free_axes(block: Block) -> tuple[IterVar, ...]:
    """The spatial axes of several points along which a recurrence reads its own tensors at the very
    place that it sets.
    """
    places = {store.buffer: store.indices for store in stores(block.body)}
    read = [load for load in loads(block.body) if load.buffer in places]

    def free(it: IterVar) -> bool:
        def stays(load: Load) -> bool:
            own = zip(places[load.buffer], load.indices, strict=True)
            return all(at == place for place, at in own if it.var in free_vars(place))

        return all(map(stays, read))

    spatial = (it for it in block.iters if it.kind is IterKind.SPATIAL and it.extent > 1)
    return tuple(it for it in spatial if free(it))
