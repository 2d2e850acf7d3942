"""Primitive compute_at: run a block below a loop of its consumer."""

from __future__ import annotations

from random import Random

from ....tir.analysis.regions import Span, disjoint, region
from ....tir.expr import Expr, Var
from ....tir.func import PrimFunc
from ....tir.stmt import SHARED_OUT, Block, For
from ....tir.visit import blocks, loops_below
from ...drawing import Arguments, ScheduleView, choose_loop, choose_pair
from ...errors import Kind, refuse
from ...legality import completeness, recurrence
from ...legality.blocks import check_compute, check_init_inside, check_unstaged
from ...legality.conflict import runs_twice
from ...legality.loops import check_not_vectorized
from ...legality.tensors import check_intermediate
from ...nest import (
    Rewrite,
    allocate_below,
    bound,
    is_reduction,
    loop_of,
    loops_around,
    ranges_of,
    read_indices,
    readers,
    root_statement,
    targets_of,
    write_indices,
)
from ..parameters import BLOCK, LOOP
from ..primitive import Primitive, all_loops
from .moved_blocks import check_one_form, forward_loops, move_block, put_below, without_block


def compute_at(func: PrimFunc, block: str, loop: Var) -> Rewrite:
    """Compute, in each iteration of `loop`, just the part of a tensor that the iteration reads.

    for y: P; for i: C(P)   ->   for i: { for y in what C reads: P; C(P) }

    Where the parts of two iterations overlap, the overlap is computed again (the block is then
    marked recomputed). Of a recurrence an iteration computes all that the parts depend on: a part
    along axes along which it does not look back, and every step.
    Requires: all consumers stand below `loop`; neither a reduction nor a recurrence is computed
    twice; the block's operands are complete there. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    producer = func.block(block)
    targets = targets_of(producer)
    check_compute(func, producer, "compute_at")
    check_one_form(func, producer, "compute_at")
    for target in targets:
        check_intermediate(func, target, "compute_at")
    check_init_inside(func, producer, "compute_at")
    check_unstaged(func, producer, "compute_at")
    check_not_vectorized(func, node, "compute_at")
    _check_consumers_below(func, producer, node)
    completeness.check_operands(func, producer, root_statement(func, node), "compute_at")
    around = (*loops_around(func, node), node)
    still = ranges_of(around)
    moving = ranges_of(loops_below(node.body))
    target = targets[0]
    accesses = [
        tuple(bound(b, i) for i in access)
        for b in blocks(node)
        for tensor in targets
        for access in read_indices(b, tensor)
    ]
    box = region(accesses, moving, still, target.shape)
    written = write_indices(producer, target)[0]
    # what is no axis of its own, as where an axis was split, is computed as a whole, and so are the
    # axes along which a recurrence looks back
    free = {it.var for it in recurrence.free_axes(producer)}
    parts: dict[Expr, Span] = {
        axis: span
        for axis, span in zip(written, box, strict=True)
        if isinstance(axis, Var) and (axis in free or not producer.is_ordered)
    }
    once = disjoint(list(parts.values()), [(x.var, x.extent) for x in around])
    moved, variables = move_block(producer, parts, still, recomputed=not once)
    changed = put_below(without_block(func, producer), loop, moved, first=True)
    if not once:
        _check_may_run_twice(func, producer, around, changed)
    recurrence.check_order(func, changed, (producer,), "compute_at")
    shared = next((x for x in reversed(around) if x.kind in SHARED_OUT), None)
    if shared is not None and not once:
        for tensor in targets:
            changed = allocate_below(changed, shared.var, tensor)
    return Rewrite(changed, variables, forward=forward_loops(func, producer, variables))


def _check_may_run_twice(
    func: PrimFunc, producer: Block, around: tuple[For, ...], changed: PrimFunc
) -> None:
    """The block, parts of which iterations share, is neither a reduction nor a recurrence.
    changed: the function where it stands below the loops.
    """
    if not is_reduction(producer) and not producer.is_ordered:
        return
    kind, target = "recurrence", targets_of(producer)[0]
    notes: tuple[str, ...] = ()
    if is_reduction(producer):
        kind = "reduction"
        notes = runs_twice(changed, producer.name, target, [x.var for x in around]) or ()
    raise refuse(
        func,
        f"compute_at: iterations of loop '{around[-1].var.name}' read overlapping parts of "
        f"'{target.name}', "
        f"and block '{producer.name}' is a {kind}; expected parts that do not overlap.",
        code="recompute-reduction",
        kind=Kind.LIMIT,
        notes=notes,
        hints=(f"choose an outer loop, or leave '{producer.name}' at the root.",),
    )


def _check_consumers_below(func: PrimFunc, producer: Block, node: For) -> None:
    found = [b for target in targets_of(producer) for b in readers(func, target)]
    if producer in blocks(node):
        others = dict.fromkeys(b.name for b in found if b is not producer)
        raise refuse(
            func,
            f"compute_at: block '{producer.name}' already stands below loop '{node.var.name}'; "
            "expected a loop of a block that reads it.",
            code="already-below",
            kind=Kind.ARGUMENT,
            hints=tuple(f"sch.loops('{name}') gives such loops." for name in others),
        )
    if not found or any(b not in blocks(node) for b in found):
        names = ", ".join(dict.fromkeys(f"'{b.name}'" for b in found))
        raise refuse(
            func,
            f"compute_at: not all consumers of '{producer.name}' stand below loop "
            f"'{node.var.name}'; they are {names}.",
            code="consumer-outside",
            kind=Kind.LIMIT,
            hints=(
                "choose a loop around all of them, or move the other consumers below it first (of "
                "a chain of windows, all blocks; then rolling_buffer, from its beginning).",
            ),
        )


def draw_compute_at(sch: ScheduleView, rng: Random) -> Arguments:
    """A block and a loop around one that reads what it makes."""
    block, user = choose_pair(sch, rng)
    return {"block": block, "loop": choose_loop(sch, rng, user)}


COMPUTE_AT = Primitive(
    "compute_at",
    compute_at,
    {"block": BLOCK, "loop": LOOP},
    gives=all_loops,
    draw=draw_compute_at,
    weight=3,
)
