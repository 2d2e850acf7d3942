"""A fused loop as the loops that it was made of: integer sets find their way through boxes at once,
through quotients and remainders only sometimes.

for x in range(a*b): s[x // b, x % b]   ->   for x_0 in range(a): for x_1 in range(b): s[x_0, x_1]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ...tir.expr import Const, Expr, FloorDiv, FloorMod, Var, index
from ...tir.func import PrimFunc
from ...tir.node import Node
from ...tir.stmt import For, ForKind, Stmt
from ...tir.visit import substitute, transform, walk


def unfused(func: PrimFunc) -> PrimFunc:
    """The function with each loop of which quotients or remainders are used taken apart, where its
    extent is a product of what it is divided by; runs, and their order, are the same. Loops of a
    grid stay, since the values of one are threads.
    """

    def rule(node: Node) -> Node:
        if not isinstance(node, For) or node.kind is ForKind.BOUND:
            return node
        steps = (1, *_divisors(node), node.extent)
        apart = len(steps) > 2 and all(b % a == 0 and b > a for a, b in pairwise(steps))
        return _nested(node, steps) if apart else node

    body = transform(func.body, rule)
    return func if body is func.body else func.with_body(body)


def _divisors(loop: For) -> list[int]:
    """What the loop's variable is divided by below it, rising."""
    found = set()
    for node in walk(loop.body):
        match node:
            case FloorDiv(a, Const(value)) | FloorMod(a, Const(value)) if a is loop.var:
                found.add(int(value))
    return sorted(found - {loop.extent})


def _nested(loop: For, steps: tuple[int, ...]) -> Stmt:
    """A loop for each digit, the highest outermost."""
    digits = [Var(f"{loop.var.name}_{n}") for n in range(len(steps) - 1)]
    value: Expr = index(0)
    for digit, step in zip(digits, reversed(steps[:-1]), strict=True):
        value = value + digit * step
    nest = substitute(loop.body, {loop.var: value})
    for digit, (low, high) in zip(reversed(digits), pairwise(steps), strict=True):
        nest = replace(loop, var=digit, extent=high // low, body=nest)
    return nest
