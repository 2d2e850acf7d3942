"""Skip whole tiles of a reduction whose points a condition leaves out: a causal sum, a band.

A condition that ties a reduction loop to a loop of the result (`k <= i`) is decided tile by tile.
Around the loops of a tile stands one test whether any of its points counts, and, where all do, the
tile runs without a test inside. What does not change in the inner loops is tested outside of them.

    for k0: for i: for k: for j: where(k0*4 + k <= i0*4 + i) C
    ->  for k0:
            if k0*4 + 3 <= i0*4: for i: for k: for j: C
            else: if k0*4 <= i0*4 + 3: for i: for k: if k0*4 + k <= i0*4 + i: for j: C
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....tir.analysis.bounds import bounds
from ....tir.analysis.linear import Linear, Ranges, expression, linear
from ....tir.analysis.simplify import simplify
from ....tir.conditions import all_of, conjuncts
from ....tir.expr import LE, LT, Const, Expr, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, If, IterKind, Seq, Stmt, seq
from ....tir.visit import blocks, free_vars, fresh_copy, loads, statements, transform


@dataclass(frozen=True, slots=True)
class HoistGuards:
    """Test conditions that tie reduction loops to others outside of the loops of a tile.

    Requires: stage NEST. Ensures: stage NEST; a point runs exactly where it did before.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        guarded = any(mixed(block, c) for block in blocks(func.body) for c in _conditions(block))
        return func.with_body(_visit(func.body, {}, False)) if guarded else func


def mixed(block: Block, condition: Expr) -> bool:
    """Whether a condition ties a loop that the block reduces over to one that it does not."""
    used = free_vars(condition)
    kinds = {
        it.kind
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if free_vars(binding) & used
    }
    return kinds == {IterKind.SPATIAL, IterKind.REDUCE}


def _conditions(block: Block) -> tuple[Expr, ...]:
    return conjuncts(block.predicate)


def _visit(stmt: Stmt, ranges: Ranges, split: bool) -> Stmt:
    """The statement with guards hoisted; split: whether it is the part of a tile that is cut."""
    match stmt:
        case For() if stmt.kind not in (ForKind.VECTORIZED, ForKind.TENSORIZED):
            inner = {**ranges, stmt.var: (0, stmt.extent - 1)}
            return replace(stmt, body=_inside(stmt.body, inner, split))
        case Seq():
            return seq(*(_visit(child, ranges, split) for child in stmt.body))
        case Alloc():
            return Alloc(stmt.buffer, _visit(stmt.body, ranges, split))
        case If():
            orelse = None if stmt.orelse is None else _visit(stmt.orelse, ranges, split)
            return If(stmt.condition, _visit(stmt.then, ranges, split), orelse)
    return stmt


def _inside(body: Stmt, ranges: Ranges, split: bool) -> Stmt:
    """The body of a loop: each statement that holds loops below the tests that it shares."""
    match body:
        case Seq():
            return seq(*(_inside(child, ranges, split) for child in body.body))
        case Alloc():
            return Alloc(body.buffer, _inside(body.body, ranges, split))
        case For():
            return _guarded(body, ranges, split)
    return _visit(body, ranges, split)


def _guarded(nest: For, ranges: Ranges, split: bool) -> Stmt:
    """A nest of loops inside a loop, below the first test that can stand around it."""
    inner: Ranges = {n.var: (0, n.extent - 1) for n in statements(nest) if isinstance(n, For)}
    found = blocks(nest)
    for condition in _shared(found):
        if not free_vars(condition) & inner.keys():
            rest = _guarded_or_loop(_without(nest, condition), ranges, split)
            return If(condition, rest)
        tests = None if split else _tests(condition, ranges, inner)
        if tests is not None:
            some, every = tests
            whole = fresh_copy(_without(nest, condition))
            return If(every, _visit(whole, ranges, False), If(some, _visit(nest, ranges, True)))
    return _visit(nest, ranges, split)


def _guarded_or_loop(stmt: Stmt, ranges: Ranges, split: bool) -> Stmt:
    return _guarded(stmt, ranges, split) if isinstance(stmt, For) else stmt


def _shared(found: tuple[Block, ...]) -> list[Expr]:
    """The conditions that tie reduction loops to others, and that every block has."""
    if not found:
        return []
    first, *others = found
    return [
        c
        for c in _conditions(first)
        if mixed(first, c) and not loads(c) and all(c in _conditions(b) for b in others)
    ]


def _tests(condition: Expr, ranges: Ranges, inner: Ranges) -> tuple[Expr, Expr] | None:
    """Whether the condition holds somewhere in the loops `inner`, and whether it holds everywhere:
    two conditions on the loops outside; None where one of them says nothing.
    """
    if not isinstance(condition, LT | LE):
        return None
    form = linear(condition.a) - linear(condition.b)
    moving = [(a, c) for a, c in form.terms if free_vars(a) & inner.keys()]
    still = Linear(tuple(t for t in form.terms if t not in moving), form.constant)
    low, high = bounds(expression(Linear(tuple(moving), 0)), inner)
    if low is None or high is None:
        return None
    found = []
    for end in (low, high):
        total = expression(Linear(still.terms, still.constant + end))
        found.append(simplify(type(condition)(total, index(0)), ranges))
    some, every = found
    return None if any(isinstance(test, Const) for test in found) else (some, every)


def _without(stmt: Stmt, condition: Expr) -> Stmt:
    """The statement whose blocks do not test a condition."""

    def drop(node: Node) -> Node:
        if not isinstance(node, Block):
            return node
        return replace(node, predicate=all_of(*(c for c in _conditions(node) if c != condition)))

    return transform(stmt, drop)
