"""Run loops for the points that exist at the sizes of a call, and no further."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....tir.analysis.bounds import bounds
from ....tir.analysis.linear import Linear, Ranges, expression, linear
from ....tir.analysis.simplify import simplify, simplify_stmt
from ....tir.conditions import all_of, conjuncts
from ....tir.dim import Dim
from ....tir.expr import LE, LT, Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, If, Seq, Stmt, seq
from ....tir.visit import blocks, free_vars, fresh_copy, loads, transform, walk


@dataclass(frozen=True, slots=True)
class FitDims:
    """Test what a call leaves of a tile outside of its loops.

    for i: for ii: with block("C"): where(i*8 + ii < n); s
    ->  for i:
            if i*8 < n:                           # the loop ends here: code generation reads it so
                if i*8 + 7 < n: for ii: s         # a whole tile has no tests inside
                else: for ii: if i*8 + ii < n: s

    Requires: stage NEST. Ensures: stage NEST; a point runs exactly where it did before.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(simplify_stmt(_visit(func.body, {}))) if func.dims else func


@dataclass(frozen=True, slots=True)
class _Tests:
    """Conditions of the blocks below a loop that say the same about it.

    some, every: what they say of the loops outside, at some point of the loops inside and at all;
    of: the condition of each block.
    """

    some: Expr
    every: Expr
    of: Mapping[Block, Expr]


def _visit(stmt: Stmt, ranges: Ranges) -> Stmt:
    match stmt:
        case For() if stmt.kind is not ForKind.VECTORIZED:
            inner = {**ranges, stmt.var: (0, stmt.extent - 1)}
            return replace(stmt, body=_inside(stmt.body, stmt.var, inner))
        case Seq():
            return seq(*(_visit(child, ranges) for child in stmt.body))
        case Alloc():
            return Alloc(stmt.buffer, _visit(stmt.body, ranges))
        case If():
            orelse = None if stmt.orelse is None else _visit(stmt.orelse, ranges)
            return If(stmt.condition, _visit(stmt.then, ranges), orelse)
    return stmt


def _inside(body: Stmt, var: Var, ranges: Ranges) -> Stmt:
    """The body of the loop of `var` below the tests that its blocks share."""
    tests = _shared(body, var, ranges)
    if tests is None:
        match body:
            case Seq():
                return seq(*(_inside(child, var, ranges) for child in body.body))
            case Alloc():
                return Alloc(body.buffer, _inside(body.body, var, ranges))
        return _visit(body, ranges)
    free = _without(body, tests.of)
    if tests.some == tests.every:
        return If(tests.every, _inside(free, var, ranges))
    whole = _inside(fresh_copy(free), var, ranges)
    return If(tests.some, If(tests.every, whole, _visit(body, ranges)))


def _shared(body: Stmt, var: Var, ranges: Ranges) -> _Tests | None:
    """The tests of the first condition that has its like in each block; None where none has."""
    found = blocks(body)
    inner: Ranges = {n.var: (0, n.extent - 1) for n in walk(body) if isinstance(n, For)}
    known = [
        {c: t for c in conjuncts(b.predicate) if (t := _tests(c, var, ranges, inner))}
        for b in found
    ]
    for wanted in known[0].values() if known else ():
        like = [next((c for c, t in own.items() if t == wanted), None) for own in known]
        of = {b: c for b, c in zip(found, like, strict=True) if c is not None}
        if len(of) == len(found):
            return _Tests(*wanted, of)
    return None


def _tests(condition: Expr, var: Var, ranges: Ranges, inner: Ranges) -> tuple[Expr, Expr] | None:
    """Where a condition on a dim and `var` holds for some values of the loops inside, and where
    for all; None for another condition, and where these loops run through all there can be.
    """
    used = free_vars(condition)
    if var not in used or not any(isinstance(v, Dim) for v in used) or loads(condition):
        return None
    if not isinstance(condition, LT | LE):
        return None
    form = linear(condition.a) - linear(condition.b)
    moving = tuple(t for t in form.terms if free_vars(t[0]) & inner.keys())
    still = tuple(t for t in form.terms if t not in moving)
    low, high = bounds(expression(Linear(moving, 0)), {**ranges, **inner})
    if low is None or high is None:
        return None
    some, every = (
        simplify(type(condition)(expression(Linear(still, form.constant + end)), index(0)), ranges)
        for end in (low, high)
    )
    return (some, every) if var in free_vars(every) else None


def _without(stmt: Stmt, gone: Mapping[Block, Expr]) -> Stmt:
    """The statement whose blocks do not test these conditions."""

    def drop(node: Node) -> Node:
        if not isinstance(node, Block) or node not in gone:
            return node
        kept = (c for c in conjuncts(node.predicate) if c != gone[node])
        return replace(node, predicate=all_of(*kept))

    return transform(stmt, drop)
