"""Make the extents that a call decides conditions of the blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....tir.analysis.linear import linear
from ....tir.analysis.simplify import simplify
from ....tir.conditions import all_of, conjuncts
from ....tir.dim import Dim
from ....tir.expr import LE, LT, Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Block
from ....tir.visit import free_vars, substitute, transform


@dataclass(frozen=True, slots=True)
class GuardDims:
    """Let each block test whether its point exists at the sizes of a call.

    with block("C", vi=spatial(n, i)): s   ->   with block("C", vi=spatial(64, i)): where(i < n); s

    That it is below the upper bound, which splits may have made a condition, goes without saying;
    so does it of a reduction that counts its points below a dim.
    Requires: stage CONTRACTED, inits placed.
    Ensures: stage CONTRACTED; no axis of a block has a dim.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(transform(func.body, _guarded)) if func.dims else func


def _guarded(node: Node) -> Node:
    if not isinstance(node, Block):
        return node
    own = conjuncts(node.predicate)
    sized = [
        (b, it.dim) for it, b in zip(node.iters, node.bindings, strict=True) if it.dim is not None
    ]
    within = {simplify(binding < dim.high) for binding, dim in sized}
    within |= {most for condition in own if (most := _at_most(condition)) is not None}
    kept = [c for c in own if simplify(c) not in within]
    if not sized and len(kept) == len(own):
        return node
    return replace(
        node,
        iters=tuple(replace(it, dim=None) for it in node.iters),
        predicate=all_of(*kept, *(simplify(binding < dim) for binding, dim in sized)),
    )


def _at_most(condition: Expr) -> Expr | None:
    """What a condition below a dim implies: the condition at the upper bound; None for others."""
    if not isinstance(condition, LT | LE):
        return None
    terms = (linear(condition.a) - linear(condition.b)).terms
    sizes: dict[Var, Expr] = {
        atom: index(atom.high) for atom, c in terms if isinstance(atom, Dim) and c < 0
    }
    rest = {v for atom, _ in terms if atom not in sizes for v in free_vars(atom)}
    if not sizes or any(isinstance(var, Dim) for var in rest):
        return None
    return simplify(substitute(condition, sizes))
