"""The nest that initialises a reduction's accumulators: used by a schedule that places it, by
lowering, which must, and by the interpreter where a reduction has no points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .conditions import all_of, conjuncts
from .expr import EQ, LE, LT, TRUE, Expr, Var, index
from .func import PrimFunc
from .linear import Linear, linear
from .node import Node
from .simplify import simplify
from .stmt import Alloc, Block, For, ForKind, IterKind, Role, Seq, Stmt, seq
from .visit import free_vars, substitute, walk


def spatial_loops(block: Block, loops: Sequence[For]) -> tuple[For, ...]:
    """Those of `loops` that a spatial variable of the block runs over."""
    used = frozenset[Var]().union(
        *(
            free_vars(binding)
            for it, binding in zip(block.iters, block.bindings, strict=True)
            if it.kind is IterKind.SPATIAL
        )
    )
    return tuple(loop for loop in loops if loop.var in used)


def outer_condition(block: Block, inner_loops: Sequence[For]) -> Expr | None:
    """Where the block runs in some iteration of those of the loops around it, `inner_loops`, that
    none of its spatial variables runs over; None where that cannot be said.

    What its predicate says of reduction loops is left out: a reduction begins with points that run.
    """
    reduced = frozenset[Var]().union(
        *(
            free_vars(binding)
            for it, binding in zip(block.iters, block.bindings, strict=True)
            if it.kind is IterKind.REDUCE
        )
    )
    kept = [c for c in conjuncts(block.predicate) if not free_vars(c) & reduced]
    spatial = spatial_loops(block, inner_loops)
    for loop in inner_loops:
        if loop not in spatial:
            remaining = _some_iteration(kept, loop)
            if remaining is None:
                return None
            kept = remaining
    return all_of(*kept)


def _some_iteration(conditions: list[Expr], loop: For) -> list[Expr] | None:
    """What remains of conditions when they need to hold in some iteration of a loop only."""
    mine = [c for c in conditions if loop.var in free_vars(c)]
    if not mine:
        return conditions
    value = _best_value(mine, loop)
    if value is None:
        return None
    point: dict[Var, Expr] = {loop.var: value}
    return [simplify(substitute(c, point)) for c in conditions]


def _best_value(conditions: list[Expr], loop: For) -> Expr | None:
    """The value of a loop's variable with which conditions hold if they do with any."""
    if loop.extent == 1:
        return index(0)
    for condition in conditions:
        if isinstance(condition, EQ):
            return _digit(linear(condition.a) - linear(condition.b), loop)
    signs = set()
    for condition in conditions:
        if not isinstance(condition, LT | LE):
            return None
        form = linear(condition.a) - linear(condition.b)
        if any(loop.var in free_vars(a) for a, _ in form.without(loop.var).terms):
            return None
        signs.add(form.coefficient(loop.var) > 0)
    return None if len(signs) != 1 else index(0 if signs.pop() else loop.extent - 1)


def _digit(form: Linear, loop: For) -> Expr | None:
    """The value with which a form of loop variables can be 0, where it writes a number in digits:
    each loop's coefficient is above all that those with smaller coefficients add up to.
    """
    step = form.coefficient(loop.var)
    number = -form.constant if step > 0 else form.constant
    steps = [c for _, c in form.terms]
    plain = all(isinstance(atom, Var) for atom, _ in form.terms)
    if not plain or step == 0 or any((c > 0) != (step > 0) for c in steps):
        return None
    if any(abs(c) > abs(step) for c in steps) or not 0 <= number < abs(step) * loop.extent:
        return None
    return index(number // abs(step))


_COPIED = {ForKind.BLOCKIZED: ForKind.SERIAL, ForKind.TENSORIZED: ForKind.VECTORIZED}


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
    for loop in reversed(loops):
        variable = values[loop.var]
        assert isinstance(variable, Var)
        nest = For(variable, loop.extent, _COPIED.get(loop.kind, loop.kind), nest, loop.tail)
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
        f"{block.name}_init",
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
    if not any(isinstance(node, Block) and _is_empty(node) for node in walk(func.body)):
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
