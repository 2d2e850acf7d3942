"""Cut loops where the predicates below them change: late, so that every variant shares all the
steps of the schedule.

A loop is cut where a predicate is decided differently on the two sides: a loop that a split marked
"partition" or "mask" at its incomplete iteration, and a reduction loop at the iterations that a
guard names (first K block, last K block). An unrolled loop that is marked "partition" ends in a
copy of its own, whose vectors are as long as what is left. The loops of an instruction are not cut.
A loop is cut where the padding inside of a sum begins and ends. So is the loop over the steps of a
scan, behind the first ones: where its values choose the initial part. A serial loop falls into
several loops, a parallel loop gets an If, so that its share-out stays whole. A loop all of whose
blocks are off from some iteration on becomes shorter. What stays undecided remains a predicate, and
what a call decides cuts nothing here (fit_dims.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....tir.analysis.bounds import bounds
from ....tir.analysis.iterations import iterations
from ....tir.analysis.linear import Interval, expression, linear
from ....tir.analysis.simplify import simplify, simplify_stmt
from ....tir.conditions import conjuncts, names_dim
from ....tir.expr import EQ, LE, LT, Compare, Expr, Select, Var, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import (
    NOTHING,
    UNITS,
    Alloc,
    Block,
    For,
    ForKind,
    If,
    IterKind,
    Seq,
    Stmt,
    Tail,
    seq,
)
from ....tir.visit import blocks, free_vars, fresh_copy, statements, stores, substitute, walk
from .hoist_guards import mixed

Ranges = dict[Var, Interval]
MAX_PIECES = 8
MAX_BORDER = 3  # iterations of a loop that a border is in


@dataclass(frozen=True, slots=True)
class Partition:
    """Cut marked loops and reduction loops at the points where predicates change.

    Requires: stage CONTRACTED, inits placed. Ensures: stage NEST; no loop carries a tail mark or is
    blockized.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = _visit(simplify_stmt(func.body), {})
        return func.with_body(simplify_stmt(_unmarked(body)))


def _unmarked(stmt: Stmt) -> Stmt:
    def visit(node: Node) -> Node:
        inner = node.map_children(visit) if isinstance(node, Stmt) else node
        if not isinstance(inner, For) or (inner.tail is None and inner.kind not in UNITS):
            return inner
        blockized = inner.kind is ForKind.BLOCKIZED
        return replace(inner, tail=None, kind=ForKind.SERIAL if blockized else inner.kind)

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result


def _visit(stmt: Stmt, ranges: Ranges) -> Stmt:
    match stmt:
        case For():
            return _loop(stmt, ranges)
        case Seq():
            return seq(*(_visit(child, ranges) for child in stmt.body))
        case Alloc():
            return Alloc(stmt.buffer, _visit(stmt.body, ranges))
        case If():
            orelse = None if stmt.orelse is None else _visit(stmt.orelse, ranges)
            return If(stmt.condition, _visit(stmt.then, ranges), orelse)
    return stmt


def _loop(loop: For, ranges: Ranges) -> Stmt:
    if loop.kind is ForKind.TENSORIZED:  # an instruction's own loops are whole, whatever is off
        return loop
    if loop.kind is ForKind.BOUND:  # each iteration is a thread's: all run one text
        inner = {**ranges, loop.var: (0, loop.extent - 1)}
        return replace(loop, body=_visit(loop.body, inner), tail=None)
    edges = _edges(loop, ranges)
    if loop.kind is ForKind.PARALLEL:
        return replace(loop, body=_branches(loop, edges, ranges))
    pieces = [_piece(loop, start, stop, ranges, first=start == 0) for start, stop in edges]
    return seq(*pieces) if pieces else NOTHING


def _piece(loop: For, start: int, stop: int, ranges: Ranges, *, first: bool) -> Stmt:
    """The iterations start .. stop-1 of a loop."""
    body = loop.body if first else fresh_copy(loop.body)
    var = loop.var if first else Var(loop.var.name, loop.var.type)
    value: Expr = index(start) if stop - start == 1 else var + start
    piece = replace(loop, var=var, extent=stop - start, tail=None)
    inner = {**ranges, var: iterations(piece)}
    body = simplify_stmt(substitute(body, {loop.var: value}), inner)
    body = _visit(body, inner)
    if _is_unrolled_apart(loop):
        body = _shorter(body, inner)
    return body if stop - start == 1 else replace(piece, body=body)


def _shorter(body: Stmt, ranges: Ranges) -> Stmt:
    """A body whose vectors end where all its blocks do, so that they may be narrower ones."""

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or node.kind is not ForKind.VECTORIZED:
            return node.map_children(visit) if isinstance(node, Stmt) else node
        inner = {**ranges, node.var: (0, node.extent - 1)}
        stop = max(
            (
                min((d.off_from for d in _decisions(block, node.var, inner)), default=node.extent)
                for block in blocks(node)
            ),
            default=node.extent,
        )
        if not 0 < stop < node.extent:
            return node
        known = {**ranges, node.var: (0, stop - 1)}
        return replace(node, extent=stop, body=simplify_stmt(node.body, known))

    result = visit(body)
    assert isinstance(result, Stmt)
    return result


def _branches(loop: For, edges: list[tuple[int, int]], ranges: Ranges) -> Stmt:
    """The pieces of a parallel loop as branches on its variable."""
    result: Stmt | None = None
    for position, (start, stop) in reversed(list(enumerate(edges))):
        inner = {**ranges, loop.var: (start, stop - 1)}
        body = loop.body if position == 0 else fresh_copy(loop.body)
        if stop - start == 1:
            body = substitute(body, {loop.var: index(start)})
        body = _visit(simplify_stmt(body, inner), inner)
        result = body if result is None else If(loop.var < stop, body, result)
    return NOTHING if result is None else result


def _edges(loop: For, ranges: Ranges) -> list[tuple[int, int]]:
    """The pieces (start, stop) of a loop, in order; what no block needs is left out at the end."""
    below = blocks(loop.body)
    inner = {**ranges, **{n.var: (0, n.extent - 1) for n in statements(loop) if isinstance(n, For)}}
    cuts = {0, loop.extent}
    last = 0
    for block in below:
        stop = loop.extent
        for decided in _decisions(block, loop.var, inner):
            stop = min(stop, decided.off_from)
            if _cuts(loop, block) and not decided.mixed:
                cuts |= {max(0, min(loop.extent, point)) for point in decided.points}
        for decided in _begun(block, loop.var, inner):
            cuts |= {max(0, min(loop.extent, point)) for point in decided.points}
        cuts |= _borders(block, loop, inner)
        last = max(last, stop)
    if not below or loop.kind is ForKind.PARALLEL or _is_masked(loop):
        last = loop.extent
    cuts = {0, last, *(cut for cut in cuts if cut < last)}
    whole = loop.kind is ForKind.UNROLLED and not _is_unrolled_apart(loop)
    if whole or loop.kind is ForKind.VECTORIZED or len(cuts) > MAX_PIECES:
        cuts = {0, last}
    ordered = sorted(cuts)
    return list(itertools.pairwise(ordered))


def _is_masked(loop: For) -> bool:
    return loop.kind is ForKind.VECTORIZED


def _is_unrolled_apart(loop: For) -> bool:
    """Whether the last one of the copies of a body is to have loops of its own length."""
    return loop.kind is ForKind.UNROLLED and loop.tail is Tail.PARTITION


def _cuts(loop: For, block: Block) -> bool:
    """Whether the loop is one to cut: marked, or a reduction loop that is not marked "guard"."""
    if loop.tail is not None:
        return loop.tail is not Tail.GUARD
    return any(it.kind is IterKind.REDUCE for it in block.iters) or _is_guarded(loop, block)


def _is_guarded(loop: For, block: Block) -> bool:
    """Whether a predicate of the block is a guard: it speaks of this loop and of others around the
    block's tile only.
    """
    return any(free_vars(c) == {loop.var} for c in conjuncts(block.predicate))


@dataclass(frozen=True, slots=True)
class _Decided:
    """Where a condition of one loop variable changes: the points, and the value from which on it is
    false.

    mixed: whether it changes with the loops of both kinds, over more than one iteration, so that
    no cut decides it.
    """

    points: tuple[int, ...]
    off_from: int
    mixed: bool = False


NEVER = 1 << 62


def _decisions(block: Block, var: Var, ranges: Ranges) -> Iterator[_Decided]:
    for condition in conjuncts(simplify(block.predicate, ranges)):
        if isinstance(condition, Compare) and var in free_vars(condition):
            found = _decide(condition, var, ranges)
            if found is not None and names_dim(condition):
                yield replace(found, points=())
            elif found is not None:
                sharp = max(found.points) - min(found.points) <= 1
                yield replace(found, mixed=not sharp and mixed(block, condition))


def _begun(block: Block, var: Var, ranges: Ranges) -> Iterator[_Decided]:
    """Where a recurrence goes on from its first steps: the conditions on its ordered variable by
    which its values choose.
    """
    ordered = {
        it.var: binding
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if it.kind is IterKind.ORDERED
    }
    values = [store.value for store in stores(block.body)] if ordered else []
    for value in values:
        while isinstance(value, Select):
            condition = simplify(substitute(value.condition, ordered), ranges)
            if isinstance(condition, Compare) and free_vars(value.condition) <= ordered.keys():
                found = _decide(condition, var, ranges)
                if found is not None:
                    yield found
            value = value.on_false


def _borders(block: Block, loop: For, ranges: Ranges) -> set[int]:
    """The iterations at which what a reduction reads begins or ceases to be padding: each of those
    that are in doubt stands alone, so that its taps are decided where they are unrolled.
    """
    if not any(it.kind is IterKind.REDUCE for it in block.iters):
        return set()
    bound = dict(zip((it.var for it in block.iters), block.bindings, strict=True))
    found: set[int] = set()
    for node in (n for store in stores(block.body) for n in walk(store.value)):
        for part in conjuncts(node.condition) if isinstance(node, Select) else ():
            condition = simplify(substitute(part, bound), ranges)
            decided = (
                _decide(condition, loop.var, ranges) if isinstance(condition, Compare) else None
            )
            if decided is None:
                continue
            first, last = (max(0, min(loop.extent, p)) for p in sorted(decided.points))
            if last - first <= MAX_BORDER:
                found |= {*range(first, last + 1)}
    return found


def _decide(condition: Compare, var: Var, ranges: Ranges) -> _Decided | None:
    """Where coefficient * var + rest < 0 (or <= 0, == 0) is true for all, for some, or for no value
    of the rest; None where that depends on more, or floats are compared.
    """
    if not condition.a.dtype.is_integer:
        return None
    form = linear(condition.a) - linear(condition.b)
    coefficient = form.coefficient(var)
    rest = form.without(var)
    if coefficient == 0 or any(var in free_vars(atom) for atom, _ in rest.terms):
        return None
    low, high = bounds(expression(rest), ranges)
    if low is None or high is None:
        return None
    if isinstance(condition, EQ) and not rest.terms and abs(coefficient) == 1:
        point = -low // coefficient
        return _Decided((point, point + 1), point + 1)
    if not isinstance(condition, LT | LE):
        return None
    slack = 1 if isinstance(condition, LT) else 0
    if (
        coefficient > 0
    ):  # true for all below (-high - slack)//c + 1, false from (-low - slack)//c + 1 on
        sure, off = (-high - slack) // coefficient + 1, (-low - slack) // coefficient + 1
        return _Decided((sure, off), max(off, 0))
    # false below, true above: the loop is cut but not shortened
    first, sure = -((-low - slack) // -coefficient), -((-high - slack) // -coefficient)
    return _Decided((first, sure), NEVER)
