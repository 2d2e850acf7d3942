"""Replace blocks by their bodies: iteration variables become their bindings, predicates become
conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....tir.analysis.simplify import simplify_stmt
from ....tir.errors import InternalError
from ....tir.expr import TRUE, Let, Var
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import NOTHING, Block, If, LetStmt, Seq, Stmt, Store, seq
from ....tir.visit import (
    free_vars,
    loads,
    of_block,
    stores,
    substitute,
    transform,
    transform_statements,
)


@dataclass(frozen=True, slots=True)
class EraseBlocks:
    """Replace every block by its body.

    with block("C", vi=spatial(n, i)): where(p); C[vi] = x      ->      if p: C[i] = x

    The values of several stores are computed before any is written: the stores stand in an order in
    which few of them write what a later one reads, and a LetStmt holds the value of each of those.

        a = f(a, b); b = g(a, b)      ->      b_new = g(a, b); a = f(a, b); b = b_new
    Requires: stage NEST; no block has an init left.
    Ensures:  stage NEST without blocks; indices are simplified in the ranges of the loops.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(simplify_stmt(transform_statements(func.body, _erase)))


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
    body = of_block(_in_order(substitute(node.body, values)), node.name)
    return body if node.predicate == TRUE else If(node.predicate, body)


def _in_order(body: Stmt) -> Stmt:
    """The stores of a block one after the other, with what they write computed before."""
    body = transform(body, _used)
    if not isinstance(body, Seq):
        return body
    waiting = list(stores(body))
    placed: list[Store] = []
    held: list[LetStmt] = []
    while waiting:
        first = next((s for s in waiting if not _readers(s, waiting)), waiting[0])
        waiting.remove(first)
        placed.append(first)
        for reader in _readers(first, waiting):
            name = Var(f"{reader.buffer.name}_new", reader.value.dtype)
            held.append(LetStmt(name, reader.value, NOTHING))
            waiting[waiting.index(reader)] = Store(reader.buffer, reader.indices, name)
    result = seq(*placed)
    for let in reversed(held):
        result = LetStmt(let.var, let.value, result)
    return result


def _readers(store: Store, others: Sequence[Store]) -> list[Store]:
    """Those of other stores whose values read what a store writes."""
    return [
        s
        for s in others
        if s is not store and any(x.buffer is store.buffer for x in loads(s.value))
    ]


def _used(node: Node) -> Node:
    """A Let whose variable nobody uses is its body."""
    if isinstance(node, Let) and node.var not in free_vars(node.body):
        return node.body
    return node
