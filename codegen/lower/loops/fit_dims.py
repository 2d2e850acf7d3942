"""Run loops for the points that exist at the sizes of a call, and no further."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....tir.analysis.bounds import bounds
from ....tir.analysis.linear import Linear, Ranges, expression, linear
from ....tir.analysis.simplify import simplify, simplify_stmt
from ....tir.analysis.tile_parts import TileParts, tile_parts
from ....tir.conditions import all_of, conjuncts, names_dim
from ....tir.expr import LE, LT, Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, If, IterKind, Seq, Stmt, seq
from ....tir.visit import blocks, free_vars, fresh_copy, loads, substitute, transform, walk
from .smaller_tiles import smaller_tiles, tile_of_rows_left

# what a tile is made of: copies of a body, lanes, the points of an instruction
IN_TILES = (ForKind.UNROLLED, ForKind.VECTORIZED, ForKind.TENSORIZED)


@dataclass(frozen=True, slots=True)
class FitDims:
    """Test what a call leaves of a tile outside of its loops.

    for i: for ii: with block("C"): where(i*8 + ii < n); s
    ->  for i:
            if i*8 + 7 < n: for ii: s             # whole tiles: no test inside
        for i:
            if i*8 < n:
                if n <= i*8 + 7:                  # the one that is left
                    for ii: if i*8 + ii < n: s

    Code generation reads the tests right inside a loop as where it begins and ends. A loop whose
    iterations are shared out stays one, with the two parts as branches, and so do all loops of a
    grid. A tile is what loops make that are written out or run in lanes; others end by themselves.
    The vectors in what is left of a tile are masked, and not cut once more.

    Requires: stage NEST. Ensures: stage NEST; a point runs exactly where it did before.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not func.dims:
            return func
        on_grid = any(isinstance(n, For) and n.kind is ForKind.BOUND for n in walk(func.body))
        fitted = _Fitted(on_grid, tile_parts(func.dims)).stmt(func.body, {})
        return func.with_body(simplify_stmt(fitted))


@dataclass(frozen=True, slots=True)
class _Tests:
    """Conditions of the blocks below a loop that say the same about it.

    some, every: what they say of the loops outside, at some point of the loops inside and at all;
    of: the condition of each block. tiled: whether the points are a tile of the loop, of which the
    whole ones come first.
    """

    some: Expr
    every: Expr
    of: Mapping[Block, Expr]
    tiled: bool


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Rewrites statements.

    on_grid: the loops are those of a grid. parts: of a tile. left: here is what is left of a tile.
    copies: loops around that are written out.
    """

    on_grid: bool
    parts: TileParts
    left: bool = False
    copies: int = 0

    def stmt(self, stmt: Stmt, ranges: Ranges) -> Stmt:
        """The statement with loops that end where the points do."""
        match stmt:
            case For() if stmt.kind is not ForKind.VECTORIZED:
                return self._loop(_tested_first(stmt, ranges) if self.left else stmt, ranges)
            case Seq():
                return seq(*(self.stmt(child, ranges) for child in stmt.body))
            case Alloc():
                return Alloc(stmt.buffer, self.stmt(stmt.body, ranges))
            case If():
                orelse = None if stmt.orelse is None else self.stmt(stmt.orelse, ranges)
                return If(stmt.condition, self.stmt(stmt.then, ranges), orelse)
        return stmt

    def _loop(self, loop: For, outer: Ranges) -> Stmt:
        ranges = {**outer, loop.var: (0, loop.extent - 1)}
        inner = replace(self, copies=self.copies + (loop.kind is ForKind.UNROLLED))
        tests = _shared(loop.body, loop.var, ranges)
        in_order = loop.kind is ForKind.SERIAL and not self.on_grid
        if tests is None or not tests.tiled or not in_order:
            return replace(loop, body=inner._inside(loop.body, loop, ranges))
        whole = self._inside(_without(loop.body, tests.of), loop, ranges)
        left = self._left(loop.body, tests, ranges)
        rest = If(tests.some, If(_negated(tests.every), left))
        return seq(replace(loop, body=If(tests.every, whole)), fresh_copy(replace(loop, body=rest)))

    def _inside(self, body: Stmt, loop: For, ranges: Ranges) -> Stmt:
        """The body of a loop below the tests that its blocks share."""
        tests = _shared(body, loop.var, ranges)
        if tests is None:
            match body:
                case If() if (some := _whole_test(body, loop, ranges)) is not None:
                    assert body.orelse is not None
                    then = self._inside(body.then, loop, ranges)
                    orelse = self.stmt(body.orelse, ranges)
                    return If(some, If(body.condition, then, orelse))
                case Seq():
                    return seq(*(self._inside(child, loop, ranges) for child in body.body))
                case Alloc():
                    return Alloc(body.buffer, self._inside(body.body, loop, ranges))
            return self.stmt(body, ranges)
        free = _without(body, tests.of)
        if tests.some == tests.every:
            return If(tests.every, self._inside(free, loop, ranges))
        if self.on_grid or (tests.tiled and loop.kind is ForKind.PARALLEL):
            left = self.stmt(body, ranges) if self.on_grid else self._left(body, tests, ranges)
            whole = self._inside(fresh_copy(free), loop, ranges)
            return If(tests.some, If(tests.every, whole, left))
        kept = replace(self, left=self.left or tests.tiled).stmt(body, ranges)
        return kept if self.copies > 1 else If(tests.some, kept)

    def _left(self, body: Stmt, tests: _Tests, ranges: Ranges) -> Stmt:
        """What runs of a tile that is not whole, in smaller tiles where it can be."""
        at_once = tile_of_rows_left(body, tests.of, self.parts.rows)
        smaller = at_once or smaller_tiles(body, tests.of, self.parts.count) or body
        return replace(self, left=True).stmt(smaller, ranges)


def _shared(body: Stmt, var: Var, ranges: Ranges) -> _Tests | None:
    """The tests of the first condition that has its like in each block, one that says the same of
    all points before others; None where none has.
    """
    found = blocks(body)
    loops = {n.var: n for n in walk(body) if isinstance(n, For)}
    inner: Ranges = {loop.var: (0, loop.extent - 1) for loop in loops.values()}
    known = [
        {c: t for c in conjuncts(b.predicate) if (t := _tests(c, var, ranges, inner))}
        for b in found
    ]
    own = known[0].values() if known else ()
    for some, every in sorted(own, key=lambda tests: tests[0] != tests[1]):
        like = [next((c for c, t in of.items() if t == (some, every)), None) for of in known]
        of = {b: c for b, c in zip(found, like, strict=True) if c is not None}
        if len(of) == len(found):
            moving = [loops[v] for c in of.values() for v in free_vars(c) if v in loops]
            forwards = all(_compared(c).coefficient(var) > 0 for c in of.values())
            tiled = some != every and all(loop.kind in IN_TILES for loop in moving)
            return _Tests(some, every, of, tiled and forwards)
    return None


def _whole_test(body: If, loop: For, ranges: Ranges) -> Expr | None:
    """Where something runs in a loop whose last iteration stands apart; None where not all blocks
    test the same.

    if i < 9: for j: if i*72 + j < n: s  else: for j: if j + 648 < n: t   ->   i*72 < n
    """
    last = index(loop.extent - 1)
    if body.orelse is None or body.condition != LT(loop.var, last):
        return None
    tests = _shared(body.then, loop.var, ranges)
    if tests is None:
        return None
    wanted = simplify(substitute(tests.some, {loop.var: last}), ranges)
    inner: Ranges = {n.var: (0, n.extent - 1) for n in walk(body.orelse) if isinstance(n, For)}
    tested = (
        [_ends(c, ranges, inner) for c in conjuncts(block.predicate)]
        for block in blocks(body.orelse)
    )
    whole = all(any(e is not None and e[0] == wanted for e in ends) for ends in tested)
    return tests.some if whole else None


def _compared(condition: Expr) -> Linear:
    """The left side of a comparison less its right side."""
    assert isinstance(condition, LT | LE)
    return linear(condition.a) - linear(condition.b)


def _tests(condition: Expr, var: Var, ranges: Ranges, inner: Ranges) -> tuple[Expr, Expr] | None:
    """The `_ends` of a condition that is one on `var`, too."""
    ends = _ends(condition, ranges, inner) if var in free_vars(condition) else None
    return ends if ends is not None and var in free_vars(ends[1]) else None


def _ends(condition: Expr, ranges: Ranges, inner: Ranges) -> tuple[Expr, Expr] | None:
    """Where a condition on a dim holds for some values of the loops inside, and where for all; None
    for another condition, and where these loops run through all there can be.
    """
    if not isinstance(condition, LT | LE) or not names_dim(condition) or loads(condition):
        return None
    form = _compared(condition)
    moving = tuple(t for t in form.terms if free_vars(t[0]) & inner.keys())
    still = tuple(t for t in form.terms if t not in moving)
    low, high = bounds(expression(Linear(moving, 0)), {**ranges, **inner})
    if low is None or high is None:
        return None
    some, every = (
        simplify(type(condition)(expression(Linear(still, form.constant + end)), index(0)), ranges)
        for end in (low, high)
    )
    return some, every


def _tested_first(loop: For, ranges: Ranges) -> For:
    """Two loops that are written out around one block, exchanged where the inner one alone has
    tests: one stands around all copies of the other.
    """
    inner = loop.body
    if not (isinstance(inner, For) and loop.kind is inner.kind is ForKind.UNROLLED):
        return loop
    known = {**ranges, **{n.var: (0, n.extent - 1) for n in (loop, inner)}}
    if _shared(inner, loop.var, known) or not _shared(inner.body, inner.var, known):
        return loop
    below: Stmt = inner
    while isinstance(below, For):
        below = below.body
    if not isinstance(below, Block) or any(
        it.kind is not IterKind.SPATIAL and free_vars(binding) & {loop.var, inner.var}
        for it, binding in zip(below.iters, below.bindings, strict=True)
    ):
        return loop
    return replace(inner, body=replace(loop, body=inner.body))


def _negated(condition: Expr) -> Expr:
    """Where a comparison does not hold, as one."""
    assert isinstance(condition, LT | LE)
    opposite = LE if isinstance(condition, LT) else LT
    return opposite(condition.b, condition.a)


def _without(stmt: Stmt, gone: Mapping[Block, Expr]) -> Stmt:
    """The statement whose blocks do not test these conditions."""

    def drop(node: Node) -> Node:
        if not isinstance(node, Block) or node not in gone:
            return node
        kept = (c for c in conjuncts(node.predicate) if c != gone[node])
        return replace(node, predicate=all_of(*kept))

    return transform(stmt, drop)
