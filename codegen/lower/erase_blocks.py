"""Replace blocks by their bodies: iteration variables become their bindings, predicates become
conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.errors import InternalError
from ...tir.expr import TRUE
from ...tir.func import PrimFunc
from ...tir.node import Node
from ...tir.simplify import simplify_stmt
from ...tir.stmt import Block, If, Stmt
from ...tir.visit import substitute, transform


@dataclass(frozen=True, slots=True)
class EraseBlocks:
    """Replace every block by its body.

    with block("C", vi=spatial(n, i)): where(p); C[vi] = x      ->      if p: C[i] = x

    Requires: stage NEST; no block has an init left.
    Ensures:  stage NEST without blocks; indices are simplified in the ranges of the loops.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(simplify_stmt(transform(func.body, _erase)))


def _erase(node: Node) -> Node:
    if not isinstance(node, Block):
        return node
    if node.init is not None:
        raise InternalError(
            f"erase_blocks: block '{node.name}' still has an init; expected it as a block of "
            "its own.",
            code="erase-init",
        )
    values = {it.var: binding for it, binding in zip(node.iters, node.bindings, strict=True)}
    body: Stmt = substitute(node.body, values)
    return body if node.predicate == TRUE else If(node.predicate, body)
