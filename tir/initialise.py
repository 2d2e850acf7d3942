"""The nest that initialises a reduction's accumulators: used by a schedule that places it, by
lowering, which must, and by the interpreter where a reduction has no points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .analysis.bounds import bounds
from .analysis.exists import in_some_iteration
from .analysis.linear import Linear, Ranges, expression, linear
from .conditions import all_of, conjuncts
from .expr import LE, LT, TRUE, Expr, Var, index
from .func import PrimFunc
from .instructions.warp_products import WARP_PRODUCTS
from .node import Node
from .stmt import Alloc, Block, For, ForKind, IterKind, Role, Seq, Stmt, seq
from .visit import free_vars, statements, substitute

INIT_SUFFIX = "_init"  # of the name of a block, for that of the block which initialises its sum


def spatial_loops(block: Block, loops: Sequence[For]) -> tuple[For, ...]:
    """Those of `loops` that a variable of the block which is not reduced over runs with."""
    used = _bound(block, reduced=False)
    return tuple(loop for loop in loops if loop.var in used)


def outer_condition(block: Block, inner_loops: Sequence[For]) -> Expr | None:
    """Where the block runs in some iteration of those of the loops around it, `inner_loops`, that
    none of its spatial variables runs over; None where that cannot be said.

    What its predicate says of reduction loops is left out, since a reduction begins with points
    that run; but for what it asks of other loops, as where one of both is fused with one of these.
    """
    reduced = _bound(block, reduced=True)
    inner = {loop.var for loop in inner_loops}
    ranges = {loop.var: (0, loop.extent - 1) for loop in inner_loops if loop.var in reduced}
    kept = []
    for condition in conjuncts(block.predicate):
        part = _needed(condition, ranges) if free_vars(condition) & reduced else condition
        used = free_vars(part)
        if not used & reduced or (used - reduced and not used & reduced & inner):
            kept.append(part)
    spatial = spatial_loops(block, inner_loops)
    others = [loop for loop in inner_loops if loop not in spatial]
    remaining = in_some_iteration(kept, others)
    return None if remaining is None else all_of(*remaining)


def _bound(block: Block, *, reduced: bool) -> frozenset[Var]:
    """The variables of loops that those of the block which are reduced over, or not, run with."""
    pairs = zip(block.iters, block.bindings, strict=True)
    mine = (binding for it, binding in pairs if (it.kind is IterKind.REDUCE) is reduced)
    return frozenset[Var]().union(*map(free_vars, mine))


def _needed(condition: Expr, ranges: Ranges) -> Expr:
    """What a condition asks of the variables that `ranges` lack, whatever the others are; TRUE
    where nothing is seen.

    i + k // 2 < 1, for k in 0 .. 3   ->   i < 1
    """
    if not isinstance(condition, LT | LE):
        return TRUE
    form = linear(condition.a) - linear(condition.b)
    free = tuple((a, n) for a, n in form.terms if free_vars(a).isdisjoint(ranges))
    inner = tuple((a, n) for a, n in form.terms if not free_vars(a).isdisjoint(ranges))
    least, _ = bounds(expression(Linear(inner, form.constant)), ranges)
    if not free or least is None:
        return TRUE
    return type(condition)(expression(Linear(free, 0)), index(-least))


_COPIED = {ForKind.BLOCKIZED: ForKind.SERIAL, ForKind.TENSORIZED: ForKind.VECTORIZED}


def _kinds(loops: Sequence[For]) -> list[ForKind]:
    """The kinds of copies of loops that stand in each other. Lanes of an instruction become those
    of vectors; what a thread holds of a product of its warp is touched element by element.
    """
    held = next((n for n, loop in enumerate(loops) if loop.intrinsic in WARP_PRODUCTS), len(loops))
    own = [ForKind.UNROLLED for _ in loops[held:]]
    return [*(_COPIED.get(loop.kind, loop.kind) for loop in loops[:held]), *own]


def mirrored(block: Block, inner_loops: Sequence[For], make: Block) -> Stmt:
    """`make` below copies of the block's spatial loops among `inner_loops`, the loops around it
    below some statement: the same extents, kinds and tails, new variables. What an instruction
    does along its lanes, vectors do in the copy.

    It runs where `block` runs in some iteration of the others (`outer_condition`, which exists).
    """
    kept = outer_condition(block, inner_loops)
    assert kept is not None
    loops = spatial_loops(block, inner_loops)
    values: dict[Var, Expr] = {loop.var: Var(loop.var.name) for loop in loops}
    made = replace(make, predicate=all_of(*conjuncts(kept), make.predicate))
    nest: Stmt = replace(
        made,
        bindings=tuple(substitute(b, values) for b in made.bindings),
        predicate=substitute(made.predicate, values),
    )
    for loop, kind in zip(reversed(loops), reversed(_kinds(loops)), strict=True):
        variable = values[loop.var]
        assert isinstance(variable, Var)
        nest = For(variable, loop.extent, kind, nest, loop.tail, axis=loop.axis)
    return nest


def init_nest(block: Block, inner_loops: Sequence[For], guard: Expr) -> Stmt:
    """The INIT block of a reduction below copies of its spatial loops among `inner_loops`, under
    `guard`.
    """
    assert block.init is not None
    spatial = [
        (it, binding)
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if it.kind is IterKind.SPATIAL
    ]
    fresh = tuple(replace(it, var=Var(it.var.name)) for it, _ in spatial)
    body = substitute(
        block.init, {it.var: new.var for (it, _), new in zip(spatial, fresh, strict=True)}
    )
    init = Block(
        f"{block.name}{INIT_SUFFIX}",
        fresh,
        tuple(binding for _, binding in spatial),
        body,
        predicate=guard,
        role=Role.INIT,
        family=block.family,
    )
    return mirrored(block, inner_loops, init)


def begin_empty(func: PrimFunc) -> PrimFunc:
    """Where a reduction has no points, its initialisation in place of the loop over them; the same
    function where all have points.

    for k in range(0): C[i] = C[i] + A[i, k]   ->   C[i] = 0
    """
    if not any(isinstance(node, Block) and _is_empty(node) for node in statements(func.body)):
        return func

    def rule(node: Node) -> Node:
        if isinstance(node, For) and node.extent == 0:
            return _beginnings(node.body, node) or node
        return node.map_children(rule) if isinstance(node, Stmt) else node

    body = rule(func.body)
    assert isinstance(body, Stmt)
    return func.with_body(body)


def _is_empty(block: Block) -> bool:
    """Whether a block reduces over no points."""
    empty = any(it.extent == 0 for it in block.iters if it.kind is IterKind.REDUCE)
    return empty and block.init is not None


def _beginnings(stmt: Stmt, *around: For) -> Stmt | None:
    """What initialises the accumulators of empty reductions below the loops `around`; None where
    there are none.
    """
    match stmt:
        case Block() if _is_empty(stmt) and outer_condition(stmt, around) is not None:
            return init_nest(stmt, around, TRUE)
        case For():
            return _beginnings(stmt.body, *around, stmt)
        case Alloc():
            inner = _beginnings(stmt.body, *around)
            return None if inner is None else Alloc(stmt.buffer, inner)
        case Seq():
            parts = [part for child in stmt.body if (part := _beginnings(child, *around))]
            return seq(*parts) if parts else None
    return None
