"""Take a block out of its nest and put it below a loop of another one, as compute_at and
reverse_compute_at do.
"""

from __future__ import annotations

from dataclasses import replace

from ....tir.analysis.regions import Span
from ....tir.expr import Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.stmt import Alloc, Block, For, ForKind, Stmt, seq
from ....tir.visit import replace_stmt
from ...errors import Kind, refuse
from ...nest import loop_of, loops_around, remove, targets_of, write_indices
from ..storage.stage import within


def check_one_form(func: PrimFunc, producer: Block, primitive: str) -> None:
    """The block stores all its tensors at the same indices, so that one box is the part of each."""
    targets = targets_of(producer)
    if len({write_indices(producer, target)[0] for target in targets}) == 1:
        return
    names = ", ".join(f"'{(target.origin or target).name}'" for target in targets)
    raise refuse(
        func,
        f"{primitive}: block '{producer.name}' stores {names} in several forms; expected tensors "
        "that it stores at the same indices.",
        code="several-tensors",
        kind=Kind.LIMIT,
        hints=("join_axes and split_axis change the form of an intermediate tensor only.",),
    )


def move_block(
    block: Block,
    spans: dict[Expr, Span],
    still: dict[Var, tuple[int | None, int | None]],
    *,
    recomputed: bool,
) -> tuple[Stmt, tuple[Var, ...]]:
    """The block below new loops: over `spans` for the iteration variables that have one, over the
    whole axis for others.
    """
    variables: list[Var] = []
    bindings: list[Expr] = []
    loops: list[tuple[Var, int]] = []
    ranges = dict(still)
    for it in block.iters:
        span = spans.get(it.var, Span(index(0), it.extent))
        variable = Var(it.var.name.removeprefix("v"))
        variables.append(variable)
        loops.append((variable, span.extent))
        bindings.append(span.low + variable)
        ranges[variable] = (0, span.extent - 1)
    extents = tuple(it.extent for it in block.iters)
    predicate = within(tuple(bindings), extents, ranges)
    nest: Stmt = replace(
        block,
        bindings=tuple(bindings),
        predicate=predicate,
        recomputed=block.recomputed or recomputed,
    )
    for variable, extent in reversed(loops):
        nest = For(variable, extent, ForKind.SERIAL, nest)
    return nest, tuple(variables)


def without_block(func: PrimFunc, block: Block) -> PrimFunc:
    """The function without a block, and without the loops that then run nothing."""
    left = remove(func.body, block)
    assert left is not None
    return func.with_body(left)


def put_below(func: PrimFunc, loop: Var, new: Stmt, *, first: bool) -> PrimFunc:
    """The function with `new` as the first or last statement below `loop`, inside the allocations
    there.
    """
    node = loop_of(func, loop)
    place = node.body
    while isinstance(place, Alloc):
        place = place.body
    return func.with_body(
        replace_stmt(func.body, place, seq(new, place) if first else seq(place, new))
    )


def forward_loops(
    func: PrimFunc, block: Block, variables: tuple[Var, ...]
) -> dict[Var, tuple[Var, ...]]:
    """The new loops of a block that moves stand for those around it."""
    return {loop.var: variables for loop in loops_around(func, block)}
