"""Place the initialisation of each reduction that the schedule has not placed.

It goes before the outermost reduction loop below the innermost stage of the accumulator (below the
root, where nothing is staged), never into the nest of an instruction, and runs where all reduction
loops further out are in their first iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....tir.conditions import all_of, conjuncts
from ....tir.expr import TRUE, Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.initialise import init_nest
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, IterKind, Stmt, seq
from ....tir.visit import (
    blocks,
    enclosing_path,
    free_vars,
    replace_stmt,
    stores,
    substitute,
    transform_statements,
)


@dataclass(frozen=True, slots=True)
class PlaceInit:
    """Give every reduction an INIT block.

    Requires: stage CONTRACTED. Ensures: stage CONTRACTED; no Block has an init; what a reduction
    leaves out is a part of its predicate.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = func.body
        while (block := next((b for b in blocks(body) if b.init is not None), None)) is not None:
            body = _place(body, block)
        return func.with_body(transform_statements(body, _counted))


def _place(body: Stmt, block: Block) -> Stmt:
    path = enclosing_path(body, block)
    accumulators = {store.buffer for store in stores(block.body)}
    stage = max(
        (
            n
            for n, node in enumerate(path)
            if isinstance(node, Alloc) and node.buffer in accumulators
        ),
        default=-1,
    )
    reduced = frozenset[Var]().union(
        *(
            free_vars(binding)
            for it, binding in zip(block.iters, block.bindings, strict=True)
            if it.kind is IterKind.REDUCE
        )
    )
    loops = [(n, node) for n, node in enumerate(path) if isinstance(node, For)]
    outside = [loop for n, loop in loops if n < stage and loop.var in reduced]
    inside = [loop for n, loop in loops if n > stage]
    first = next((x for x in inside if x.var in reduced or x.kind is ForKind.TENSORIZED), None)
    anchor: Stmt = block if first is None else first
    below = [] if first is None else inside[inside.index(first) :]
    init = init_nest(block, below, _all_first(outside))
    bare = replace(block, init=None)
    new = bare if first is None else replace_stmt(first, block, bare)
    return replace_stmt(body, anchor, seq(init, new))


def _counted(block: Node) -> Node:
    """The block whose `counts` has become a part of its predicate, in terms of the loops."""
    if not isinstance(block, Block) or block.counts == TRUE:
        return block
    values = {it.var: value for it, value in zip(block.iters, block.bindings, strict=True)}
    counts = substitute(block.counts, values)
    return replace(
        block, predicate=all_of(*conjuncts(block.predicate), *conjuncts(counts)), counts=TRUE
    )


def _all_first(loops: list[For]) -> Expr:
    """The condition that all loops are in their first iteration."""
    if not loops:
        return TRUE
    steps: Expr = index(0)
    for loop in loops:
        steps = steps + loop.var
    return steps < 1
