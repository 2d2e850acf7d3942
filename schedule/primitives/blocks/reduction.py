"""Primitive decompose_reduction: place the initialisation of a reduction by hand."""

from __future__ import annotations

from dataclasses import replace

from ....tir.expr import TRUE, Var
from ....tir.func import PrimFunc
from ....tir.initialise import init_nest
from ....tir.stmt import Block, For, seq
from ....tir.visit import blocks, loops_below, replace_stmt
from ...drawing import draw_reduction
from ...errors import Kind, refuse
from ...legality.blocks import check_holds, check_predicate
from ...legality.conflict import witness, written_twice
from ...legality.loops import reduction_loops
from ...legality.tensors import allocated_in
from ...nest import Rewrite, is_reduction, loop_of, loops_around, target_of, targets_of
from ..parameters import BLOCK, LOOP
from ..primitive import Primitive, one_block


def decompose_reduction(func: PrimFunc, block: str, loop: Var) -> Rewrite:
    """Initialise the accumulators of a reduction right before `loop`, in a block of its own.

    for i: for k: C (init inside)   ->   for i: { C_init; for k: C }

    Requires: no reduction loop of the block stands outside `loop`; the accumulators exist there.
    Returns the new block. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    update = func.block(block)
    check_holds(func, node, update, "decompose_reduction")
    if not is_reduction(update) or update.init is None:
        raise refuse(
            func,
            f"decompose_reduction: block '{block}' has no initialisation to place.",
            code="no-init",
            kind=Kind.ARGUMENT,
        )
    _check_begins_once(func, update, node)
    staged = (x for x in targets_of(update) if allocated_in(node, x))
    accumulator = next(staged, None)
    if accumulator is not None:
        raise refuse(
            func,
            f"decompose_reduction: the accumulators of block '{block}' are staged as "
            f"'{accumulator.name}' inside loop '{loop.name}'; expected a loop below the stage.",
            code="init-staged",
            kind=Kind.LIMIT,
            hints=("call decompose_reduction before stage.",),
        )
    inner = [x for x in loops_around(func, update) if x is node or x in loops_below(node.body)]
    check_predicate(func, update, inner, "decompose_reduction", loop.name)
    init = init_nest(update, inner, TRUE)
    bare = replace_stmt(node, update, replace(update, init=None))
    return Rewrite(
        func.with_body(replace_stmt(func.body, node, seq(init, bare))),
        blocks=(blocks(init)[0].name,),
    )


def _check_begins_once(func: PrimFunc, block: Block, loop: For) -> None:
    """No loop outside of the one at which a reduction is initialised is reduced over."""
    around = loops_around(func, loop)
    outside = [x for x in reduction_loops(func, block) if x in around and x.extent > 1]
    if not outside:
        return
    found = witness(func, written_twice(target_of(block), outside))
    raise refuse(
        func,
        f"decompose_reduction: loop '{outside[0].var.name}' outside of loop '{loop.var.name}' "
        "is reduced over; "
        "the accumulators would start anew in each of its iterations.",
        code="init-inside",
        kind=Kind.CONFLICT,
        notes=()
        if found is None
        else (
            found.note(
                f"what iteration {found.first.run.place} adds to {found.element} would be lost "
                f"before iteration {found.second.run.place}."
            ),
        ),
        hints=(f"place it before loop '{outside[0].var.name}'.",),
    )


DECOMPOSE_REDUCTION = Primitive(
    "decompose_reduction",
    decompose_reduction,
    {"block": BLOCK, "loop": LOOP},
    gives=one_block,
    draw=draw_reduction,
)
