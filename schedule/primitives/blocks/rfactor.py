"""Primitive rfactor: reduce in parts, then reduce the parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....tir.analysis.bounds import bounds
from ....tir.analysis.linear import Linear, Ranges, expression, linear
from ....tir.analysis.narrow import narrowed
from ....tir.analysis.simplify import provable
from ....tir.analysis.update import Update, read_update
from ....tir.buffer import Buffer, Load, array
from ....tir.conditions import all_of, conjuncts
from ....tir.expr import LT, Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, IterKind, IterVar, Stmt, Store, seq
from ....tir.visit import free_vars, replace_stmt, stores, substitute, transform
from ...drawing import draw_reduction
from ...errors import Kind, refuse
from ...legality import completeness
from ...legality.blocks import check_compute, check_holds
from ...legality.loops import runs_over
from ...nest import (
    Rewrite,
    insert_beside,
    loop_of,
    loops_around,
    ranges_of,
    root_statement,
    targets_of,
    unique_name,
)
from ..parameters import BLOCK, LOOP
from ..primitive import Primitive, one_block


def rfactor(func: PrimFunc, block: str, loop: Var) -> Rewrite:
    """Let a reduction leave one partial result per iteration of `loop`, and reduce those in a block
    of its own.

    C[i] = sum over q, k: x   ->   C_rf[q, i] = sum over k: x;  C[i] = sum over q: C_rf[q, i]

    The number of parts is a constant of the schedule, so the result has the same bits on any number
    of threads. Shorter sums round less: the error of a part grows with the root of its length.
    Parts of an outer loop of a split are contiguous pieces; parts of its innermost loop of n
    iterations take every n-th term each, which makes them the lanes of a vector; where n does not
    divide the terms, what lies beyond them does not count, in the last round.
    Requires: a loop over a reduction axis, the outermost loop of an exact split of one or the
    innermost of any; nothing staged yet; the result is read after the nest. The old nest computes
    the parts.
    Returns the loops of the new nest and the block of the parts. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    whole = func.block(block)
    check_holds(func, node, whole, "rfactor")
    check_compute(func, whole, "rfactor")
    cut = _cut(func, whole, node)
    update = _combination(func, whole)
    targets = targets_of(whole)
    for target in targets:
        completeness.check_readers_after(func, whole, target, "rfactor")
    name = unique_name(func, f"{block}_rf")
    names = (name, *(unique_name(func, f"{target.name}_rf") for target in targets[1:]))
    parts = {
        target: array(own, target.type, (node.extent, *target.extents))
        for own, target in zip(names, targets, strict=True)
    }
    part = _part(whole, name, cut, node, parts)
    changed = func.with_body(replace_stmt(func.body, whole, part))
    nest, variables = _final(whole, update, node, parts)
    changed = insert_beside(changed, root_statement(changed, changed.block(name)), nest, after=True)
    body = changed.body
    for made in reversed(parts.values()):
        body = Alloc(made, body)
    return Rewrite(changed.with_body(body), variables, (name,))


def _combination(func: PrimFunc, block: Block) -> Update:
    """How the block combines its values."""
    update = read_update(block)
    if update is None:
        raise refuse(
            func,
            f"rfactor: block '{block.name}' does not show what it combines; expected a sum, "
            "product, minimum, maximum, any, all, or the Lets of a reducer around its values.",
            code="rfactor-update",
            kind=Kind.LIMIT,
            hints=("call rfactor before the steps that rewrite the block's expressions.",),
        )
    return update


@dataclass(frozen=True, slots=True)
class _Cut:
    """How a loop cuts a reduction axis: its point is part * step + rest * stride, for `part` the
    loop's variable, and `rest` an expression of the other loops with `extent` values from 0.

    tail: the conditions of the block, in terms of its loops, under which the point is one of the
    axis; none where all are.
    """

    axis: IterVar
    step: int
    rest: Expr
    stride: int
    extent: int
    tail: tuple[Expr, ...] = ()


def _cut(func: PrimFunc, block: Block, node: For) -> _Cut:
    """The reduction axis that the loop steps through, and what is left of it in a part."""
    _check_reduces(func, block, node)
    around = ranges_of(loops_around(func, block))
    ranges = narrowed(around, block.predicate)
    count = node.extent
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it.kind is not IterKind.REDUCE or node.var not in free_vars(binding):
            continue
        form = linear(binding)
        step, rest = form.coefficient(node.var), form.without(node.var)
        if step * count == it.extent and _runs_to(rest, step, ranges):
            return _Cut(it, step, expression(rest), 1, step)
        factors = (rest.constant, *(factor for _, factor in rest.terms))
        if step != 1 or any(factor % count for factor in factors):
            continue
        rest = Linear(tuple((a, c // count) for a, c in rest.terms), rest.constant // count)
        rounds, tail = -(-it.extent // count), _tail(block, form, it, around)
        exact = it.extent % count == 0
        if _runs_to(rest, rounds, ranges if exact else around) and (exact or tail):
            return _Cut(it, 1, expression(rest), count, rounds, () if exact else tail)
    raise refuse(
        func,
        f"rfactor: loop '{node.var.name}' does not step through a reduction axis of block "
        f"'{block.name}' exactly.",
        code="rfactor-loop",
        kind=Kind.LIMIT,
        hints=(
            "split the reduction loop by a divisor of its extent and factor the outermost or the "
            "innermost part.",
        ),
    )


def _check_reduces(func: PrimFunc, block: Block, node: For) -> None:
    """The block reduces over the loop, and holds its initialisation; its tensors are not staged."""
    if not runs_over(block, node.var, IterKind.REDUCE):
        raise refuse(
            func,
            f"rfactor: block '{block.name}' does not reduce over loop '{node.var.name}'; expected "
            "a loop over a reduction axis.",
            code="rfactor-kept",
            kind=Kind.ARGUMENT,
        )
    staged = any(target.origin is not None for target in targets_of(block))
    if block.init is None or staged:
        raise refuse(
            func,
            f"rfactor: block '{block.name}' is not a reduction with its initialisation inside.",
            code="rfactor-block",
            kind=Kind.LIMIT,
            hints=("call rfactor before stage and decompose_reduction.",),
        )


def _tail(block: Block, form: Linear, axis: IterVar, around: Ranges) -> tuple[Expr, ...]:
    """The condition of a block that leaves out what a split has beyond the end of an axis, with
    those that it implies; none where another one leaves out more.
    """
    conditions = conjuncts(block.predicate)
    for condition in conditions:
        if isinstance(condition, LT):
            rest = linear(condition.a) - linear(condition.b) - form
            if not rest.terms and rest.constant == -axis.extent:
                inside, cut = narrowed(around, condition), free_vars(condition)
                others = [x for x in conditions if x is not condition and free_vars(x) & cut]
                implied = all(provable(x, inside) for x in others)
                return (condition, *others) if implied else ()
    return ()


def _runs_to(form: Linear, extent: int, ranges: Ranges) -> bool:
    """Whether 0 and extent - 1 are the bounds of a form."""
    return bounds(expression(form), ranges) == (0, extent - 1)


def _part(block: Block, name: str, cut: _Cut, node: For, parts: dict[Buffer, Buffer]) -> Block:
    """The block of the partial results, in the place of the old one."""
    part = IterVar(Var(f"v{node.var.name}"), node.extent, IterKind.SPATIAL)
    iters: list[IterVar] = [part]
    bindings: list[Expr] = [node.var]
    value: Expr = part.var * cut.step
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it is not cut.axis:
            iters.append(it)
            bindings.append(binding)
        elif cut.extent > 1:
            inner = IterVar(Var(it.var.name), cut.extent, IterKind.REDUCE)
            iters.append(inner)
            bindings.append(cut.rest)
            value = value + inner.var * cut.stride

    def redirect(tree: Node) -> Node:
        match tree:
            case Load() if tree.buffer in parts:
                return Load(parts[tree.buffer], (part.var, *tree.indices))
            case Store() if tree.buffer in parts:
                return Store(parts[tree.buffer], (part.var, *tree.indices), tree.value)
        return tree

    def moved(stmt: Stmt) -> Stmt:
        return transform(substitute(stmt, {cut.axis.var: value}), redirect)

    assert block.init is not None
    counts = conjuncts(substitute(block.counts, {cut.axis.var: value}))
    predicate = conjuncts(block.predicate)
    if cut.tail:
        counts = (LT(value, index(cut.axis.extent)), *counts)
        predicate = tuple(condition for condition in predicate if condition not in cut.tail)
    return replace(
        block,
        name=name,
        family=name,
        iters=tuple(iters),
        bindings=tuple(bindings),
        predicate=all_of(*predicate),
        body=moved(block.body),
        init=moved(block.init),
        counts=all_of(*counts),
    )


def _final(
    block: Block, update: Update, node: For, parts: dict[Buffer, Buffer]
) -> tuple[Stmt, tuple[Var, ...]]:
    """The nest that reduces the parts, under the old block's name."""
    kept = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    spatial = [replace(it, var=Var(it.var.name)) for it in kept]
    values: dict[Var, Expr] = {it.var: new.var for it, new in zip(kept, spatial, strict=True)}
    part = IterVar(Var(f"v{node.var.name}"), node.extent, IterKind.REDUCE)
    found = stores(block.body)
    places = [tuple(substitute(i, values) for i in store.indices) for store in found]
    own = [Load(store.buffer, at) for store, at in zip(found, places, strict=True)]
    new = [Load(parts[load.buffer], (part.var, *load.indices)) for load in own]
    body = seq(
        *(
            Store(load.buffer, load.indices, value)
            for load, value in zip(own, update.stored(own, new), strict=True)
        )
    )
    assert block.init is not None
    iters = (*spatial, part)
    variables = tuple(Var(it.var.name.removeprefix("v")) for it in iters)
    nest: Stmt = Block(
        block.name, iters, variables, body, substitute(block.init, values), family=block.family
    )
    for variable, it in zip(reversed(variables), reversed(iters), strict=True):
        nest = For(variable, it.extent, ForKind.SERIAL, nest)
    return nest, variables


RFACTOR = Primitive(
    "rfactor",
    rfactor,
    {"block": BLOCK, "loop": LOOP},
    gives=one_block,
    draw=draw_reduction,
    weight=3,
)
