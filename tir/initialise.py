"""The nest that initialises a reduction's accumulators: used by a schedule that places it and by
lowering, which must.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .expr import Expr, Var, all_of, conjuncts
from .stmt import Block, For, IterKind, Role, Stmt
from .visit import free_vars, substitute


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


def mirrored(block: Block, loops: Sequence[For], make: Block) -> Stmt:
    """`make` below copies of `loops`: the same extents, kinds and tails, new variables.

    The predicate of `block` holds for `make` as well, as far as it speaks of these loops and those
    further out.
    """
    reduced = frozenset[Var]().union(
        *(
            free_vars(binding)
            for it, binding in zip(block.iters, block.bindings, strict=True)
            if it.kind is IterKind.REDUCE
        )
    )
    kept = [c for c in conjuncts(block.predicate) if not free_vars(c) & reduced]
    values: dict[Var, Expr] = {loop.var: Var(loop.var.name) for loop in loops}
    made = replace(make, predicate=all_of(*kept, make.predicate))
    nest: Stmt = replace(
        made,
        bindings=tuple(substitute(b, values) for b in made.bindings),
        predicate=substitute(made.predicate, values),
    )
    for loop in reversed(loops):
        variable = values[loop.var]
        assert isinstance(variable, Var)
        nest = For(variable, loop.extent, loop.kind, nest, loop.tail)
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
    return mirrored(block, spatial_loops(block, inner_loops), init)
