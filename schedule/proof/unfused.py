"""Fused loops as the loops that they were made of: integer sets find their way through boxes at
once, through quotients and remainders only sometimes.

for x in range(a*b): s[x // b, x % b]   ->   for x_0 in range(a): for x_1 in range(b):
                                                x = x_0*b + x_1; s[x // b, x % b]

A fused loop that was split again (threads of blocks, and perhaps lanes of these) is one number
still: loops i and t, t < n, right inside of each other, of which i*n + t is used, are joined first.
Where every block asks for i*n + t < m, nothing runs at the numbers beyond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ...tir.analysis.linear import Linear, linear
from ...tir.conditions import conjuncts
from ...tir.expr import LT, Const, Expr, FloorDiv, FloorMod, Var, index
from ...tir.func import PrimFunc
from ...tir.node import Node
from ...tir.stmt import Block, For, LetStmt, Stmt
from ...tir.visit import blocks, found_in, transform_statements

MOST_LOOPS = 3  # blocks, threads and lanes of a grid


def unfused(func: PrimFunc) -> PrimFunc:
    """The function with each number of which quotients or remainders are used taken apart, where it
    has as many values as the product of what it is divided by. Runs, and their order, are the same;
    who runs them, of threads and blocks, is not told any more.
    """

    def rule(node: Node) -> Node:
        if not isinstance(node, For):
            return node
        found = (number.taken_apart() for number in _Number.all_of(node))
        return next((apart for apart in found if apart is not None), node)

    body = transform_statements(func.body, rule)
    return func if body is func.body else func.with_body(body)


@dataclass(frozen=True, slots=True)
class _Number:
    """What a loop counts, or several, each of which is all that the one before it runs.

    terms: the factors of their variables; values: how many there are; body: what they run.
    """

    loops: tuple[For, ...]
    terms: tuple[tuple[Var, int], ...]
    values: int
    body: Stmt

    @staticmethod
    def all_of(loop: For) -> Iterator[_Number]:
        """That of the loop, of it with the one inside, and so on."""
        loops: tuple[For, ...] = ()
        node: Stmt = loop
        while isinstance(node, For) and len(loops) < MOST_LOOPS:
            loops = (*loops, node)
            node, steps, step = node.body, list[int](), 1
            for each in reversed(loops):
                steps.append(step)
                step *= each.extent
            terms = zip((each.var for each in loops), reversed(steps), strict=True)
            yield _Number(loops, tuple(terms), step, node)

    def taken_apart(self) -> Stmt | None:
        """A loop for each digit, the highest outermost; None where its digits are not all used."""
        divisors = self._divisors()
        most = self._limit() if len(self.loops) > 1 else self.values
        for values in dict.fromkeys((most, self.values)):
            steps = (1, *(d for d in divisors if d < values), values)
            if len(steps) > 2 and all(b % a == 0 and b > a for a, b in pairwise(steps)):
                return self._nested(steps)
        return None

    def _is_mine(self, form: Linear) -> bool:
        return form.constant == 0 and set(form.terms) == set(self.terms)

    def _divisors(self) -> list[int]:
        """What the number is divided by below, rising."""
        found = set()
        for node in found_in(self.body, FloorDiv | FloorMod):
            match node:
                case FloorDiv(a, Const(value)) | FloorMod(a, Const(value)):
                    if self._is_mine(linear(a)):
                        found.add(int(value))
        return sorted(found)

    def _limit(self) -> int:
        """The least number at which no block runs, as far as each of them says so itself."""
        limits = [min(self._limits(block), default=self.values) for block in blocks(self.body)]
        return min(self.values, max(limits, default=self.values))

    def _limits(self, block: Block) -> Iterator[int]:
        for condition in conjuncts(block.predicate):
            if isinstance(condition, LT) and isinstance(condition.b, Const):
                form = linear(condition.a)
                if self._is_mine(replace(form, constant=0)):
                    yield int(condition.b.value) - form.constant

    def _nested(self, steps: Sequence[int]) -> Stmt:
        loop = self.loops[-1]
        digits = [Var(f"{loop.var.name}_{n}") for n in range(len(steps) - 1)]
        value: Expr = index(0)
        for digit, step in zip(digits, reversed(steps[:-1]), strict=True):
            value = value + digit * step
        nest = self.body
        for each, (_, step) in zip(reversed(self.loops), reversed(self.terms), strict=True):
            own = value // step if step > 1 else value
            nest = LetStmt(each.var, own if each is self.loops[0] else own % each.extent, nest)
        for digit, (low, high) in zip(reversed(digits), pairwise(steps), strict=True):
            kind = replace(loop, var=digit, extent=high // low, body=nest, tail=None)
            nest = replace(kind, kind=self.loops[0].kind, axis=self.loops[0].axis)
        return nest
