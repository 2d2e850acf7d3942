"""Replace loops of kind UNROLLED by copies of their body."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....tir.analysis.simplify import simplify_stmt
from ....tir.buffer import Buffer
from ....tir.errors import TargetError
from ....tir.expr import Expr, Let, Var, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import NOTHING, Alloc, For, ForKind, LetStmt, Stmt, seq
from ....tir.target.target import Target
from ....tir.visit import exchange, found_in, transform_statements, walk


@dataclass(frozen=True, slots=True)
class Unroll:
    """Unroll every loop marked UNROLLED; without vector registers, where a tile is an array, run it
    serially instead.

    for i in unrolled(2): C[i] = A[i]      ->      C[0] = A[0]; C[1] = A[1]

    Requires: no loop is VECTORIZED. Ensures: no loop is UNROLLED; indices are simplified.
    Raises: TargetError where nested unrolled loops ask for more than `max_steps` copies.
    """

    target: Target
    max_steps: int = 512

    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not any(_is_unrolled(node) for node in walk(func.body)):
            return func
        if not self.target.names_registers:
            return func.with_body(transform_statements(func.body, _serial))
        self._check(func.body, ())
        return func.with_body(simplify_stmt(transform_statements(func.body, _copies)))

    def _check(self, node: Node, loops: tuple[For, ...]) -> None:
        """Follow each chain of nested unrolled loops down to its innermost one."""
        if isinstance(node, For) and node.kind is ForKind.UNROLLED:
            loops = (*loops, node)
            copies = 1
            for loop in loops:
                copies *= loop.extent
            if copies > self.max_steps:
                listed = ", ".join(f"'{loop.var.name}' ({loop.extent})" for loop in loops)
                raise TargetError(
                    f"unroll: loops {listed} make {copies} copies of their body; "
                    f"expected at most {self.max_steps}.",
                    code="unroll-copies",
                    hints=("unroll fewer of them, or split one and unroll its inner part only.",),
                )
        for child in node.children():
            if isinstance(child, Stmt):
                self._check(child, loops)


def _is_unrolled(node: Node) -> bool:
    return isinstance(node, For) and node.kind is ForKind.UNROLLED


def _serial(node: Node) -> Node:
    if isinstance(node, For) and node.kind is ForKind.UNROLLED:
        return For(node.var, node.extent, ForKind.SERIAL, node.body)
    return node


def _copies(node: Node) -> Node:
    if not isinstance(node, For) or node.kind is not ForKind.UNROLLED:
        return node
    if node.extent == 0:
        return NOTHING
    return seq(*(_copy(node.body, node.var, step) for step in range(node.extent)))


def _copy(body: Stmt, var: Var, step: int) -> Stmt:
    """The body for var = step; copies but the first have variables and allocations of their own."""
    values: dict[Var, Expr] = {var: index(step)}
    buffers: dict[Buffer, Buffer] = {}
    for node in found_in(body, For | LetStmt | Let | Alloc) if step else ():
        if isinstance(node, Alloc):
            buffers[node.buffer] = replace(node.buffer)
        elif isinstance(node, For | LetStmt | Let):
            values[node.var] = Var(node.var.name, node.var.type)

    def rule(node: Node) -> Node:
        if isinstance(node, Var):
            return values.get(node, node)
        return buffers.get(node, node) if isinstance(node, Buffer) else node

    return exchange(body, rule)
