"""Primitives join_axes and split_axis: how a block counts its points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random

from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer, Load
from ....tir.expr import TRUE, Expr, Var
from ....tir.func import PrimFunc
from ....tir.node import Node, NodeT
from ....tir.stmt import Alloc, Block, For, ForKind, IterKind, IterVar, Stmt, Store
from ....tir.visit import replace_stmt, substitute, transform
from ...drawing import Arguments, NothingToTry, ScheduleView, choose_block
from ...errors import Kind, refuse
from ...legality import recurrence
from ...legality.blocks import check_compute, check_init_inside, check_unstaged
from ...legality.tensors import check_not_staged
from ...nest import (
    Rewrite,
    loops_around,
    map_blocks,
    ranges_of,
    reads,
    root_statement,
    targets_of,
    without_prefetches,
    write_indices,
)
from ..parameters import BLOCK, PLAIN
from ..primitive import Primitive, all_loops

Renewed = Callable[[Sequence[Expr]], tuple[Expr, ...]]


def join_axes(func: PrimFunc, block: str, groups: Sequence[Sequence[int]]) -> Rewrite:
    """Let a block count several of its iteration variables as one, the last of a group fastest.

    C[i, j] = sum over k: A[i, j, k]   ->   C[m] = sum over k: A[m // 5, m % 5, k]
    with groups ((0, 1), (2,)), where j counts to 5; who read C[i, j] reads C[i*5 + j]

    groups: the numbers of the variables, each once, in the order that the block then has.
    An intermediate tensor that the block stores at its own variables takes their new order, and its
    readers follow; an output keeps its form, and the block stores at digits.
    A block alone in one plain loop over each of its axes gets loops over the new variables. Any
    other keeps its loops: each point has one number in either count, and runs when it ran.
    Requires: the variables of a group are of one kind, not ordered, of sizes that no call decides;
    nothing of the tensor is staged. Returns the new loops; none where they stay. Raises:
    ScheduleError.
    """
    whole = func.block(block)
    _check_free(func, whole, "join_axes")
    _check_numbers(func, whole, "join_axes")
    _check_groups(func, whole, groups)
    return _counted(func, whole, _joined(whole.iters, groups))


def split_axis(func: PrimFunc, block: str, axis: int, factor: int) -> Rewrite:
    """Let a block count one of its iteration variables as two digits, the second one to `factor`.

    C[i] = f(i)   ->   C[a, b] = f(a*5 + b), by 5; who read C[i] reads C[i // 5, i % 5]

    Tensors, loops and what is returned as for join_axes. Requires: as join_axes; `factor` divides
    the extent. Raises: ScheduleError.
    """
    whole = func.block(block)
    _check_free(func, whole, "split_axis")
    _check_numbers(func, whole, "split_axis")
    _check_digits(func, whole, axis, factor)
    return _counted(func, whole, _taken_apart(whole.iters, axis, factor))


@dataclass(frozen=True, slots=True)
class _Count:
    """How a block counts: by `iters`. values: of each of the old variables; renewed: of old spatial
    indices, or of what all variables are bound to, the new ones.
    """

    iters: tuple[IterVar, ...]
    values: Mapping[Var, Expr]
    renewed: Renewed


def _joined(iters: Sequence[IterVar], groups: Sequence[Sequence[int]]) -> _Count:
    new: list[IterVar] = []
    values: dict[Var, Expr] = {}
    for group in groups:
        own = [iters[number] for number in group]
        if len(own) == 1:
            new.append(own[0])
            continue
        name = "v" + "_".join(it.var.name.removeprefix("v") for it in own)
        total = Var(name)
        new.append(IterVar(total, prod(it.extent for it in own), own[0].kind))
        weight = 1
        for it in reversed(own):
            digit = total // weight if weight > 1 else total
            values[it.var] = digit if it is own[0] else digit % it.extent
            weight *= max(1, it.extent)

    def renewed(old: Sequence[Expr]) -> tuple[Expr, ...]:
        found = []
        for group in groups:
            if group[0] >= len(old):
                continue
            item = old[group[0]]
            for number in group[1:]:
                item = item * iters[number].extent + old[number]
            found.append(item)
        return tuple(found)

    return _Count(tuple(new), values, renewed)


def _taken_apart(iters: Sequence[IterVar], axis: int, factor: int) -> _Count:
    own = iters[axis]
    high, low = Var(f"{own.var.name}_0"), Var(f"{own.var.name}_1")
    pair = (
        IterVar(high, own.extent // factor, own.kind),
        IterVar(low, factor, own.kind),
    )

    def renewed(old: Sequence[Expr]) -> tuple[Expr, ...]:
        if axis >= len(old):
            return tuple(old)
        return (*old[:axis], old[axis] // factor, old[axis] % factor, *old[axis + 1 :])

    new = (*iters[:axis], *pair, *iters[axis + 1 :])
    return _Count(new, {own.var: high * factor + low}, renewed)


def _check_free(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block is whole: no other one computes, initialises or keeps a part of its tensors."""
    check_compute(func, block, primitive)
    recurrence.check_no_recurrence(func, block, primitive)
    check_init_inside(func, block, primitive)
    check_unstaged(func, block, primitive)
    for tensor in targets_of(block):
        check_not_staged(func, tensor, primitive)


def _is_alone(func: PrimFunc, block: Block) -> bool:
    """Whether the block stands at the root in one plain loop over each whole axis."""
    around = loops_around(func, block)
    plain = [(x.var, x.extent, x.kind) for x in around] == [
        (binding, it.extent, ForKind.SERIAL)
        for binding, it in zip(block.bindings, block.iters, strict=True)
    ]
    alone = not around or root_statement(func, block) is around[0]
    inside = all(isinstance(x.body, For) or x.body is block for x in around)
    return plain and alone and inside and block.predicate == TRUE


def _check_groups(func: PrimFunc, block: Block, groups: Sequence[Sequence[int]]) -> None:
    """Each variable stands in one group, with others of its kind."""
    listed = [number for group in groups for number in group]
    once = sorted(listed) == list(range(len(block.iters))) and all(groups)
    for group in groups if once else ():
        own = [block.iters[number] for number in group]
        kinds = {it.kind for it in own}
        if len(kinds) > 1:
            names = ", ".join(f"'{it.var.name}'" for it in own)
            raise refuse(
                func,
                f"join_axes: {names} of block '{block.name}' cannot be counted as one; expected "
                "variables that are all kept, or all reduced over, in any order.",
                code="axes-kinds",
                kind=Kind.ARGUMENT,
            )
    spatial = [it.kind is IterKind.SPATIAL for it in block.iters]
    kept = [spatial[group[0]] for group in groups] if once else []
    summed = [tuple(group) for group in groups if once and not spatial[group[0]]]
    ordered = summed == sorted(summed) or any(len(group) > 1 for group in summed)
    if once and kept == sorted(kept, reverse=True) and ordered:
        return
    names = ", ".join(f"'{it.var.name}'" for it in block.iters) or "none"
    raise refuse(
        func,
        f"join_axes: groups {tuple(map(tuple, groups))!r} for block '{block.name}' of "
        f"{len(block.iters)} variables; expected the number of each variable once, those that it "
        "keeps first; those of a sum change their order only where some are joined.",
        code="axes-groups",
        kind=Kind.ARGUMENT,
        hints=(f"its variables are {names}.",),
    )


def _check_digits(func: PrimFunc, block: Block, axis: int, factor: int) -> None:
    """There is such a variable, and the factor divides its extent."""
    numbers = type(axis) is int and type(factor) is int
    known = numbers and 0 <= axis < len(block.iters) and factor > 0
    if known and block.iters[axis].extent % factor == 0:
        return
    sizes = ", ".join(f"'{it.var.name}' of {it.extent}" for it in block.iters) or "none"
    raise refuse(
        func,
        f"split_axis: variable {axis!r} by {factor!r} of block '{block.name}'; expected the number "
        "of a variable and a divisor of its extent.",
        code="axes-factor",
        kind=Kind.ARGUMENT,
        hints=(f"its variables are {sizes}.",),
    )


def _check_numbers(func: PrimFunc, block: Block, primitive: str) -> None:
    """No call decides how many values a variable has."""
    for it in block.iters:
        if it.dim is not None:
            raise refuse(
                func,
                f"{primitive}: a call decides the size '{it.dim.name}' of '{it.var.name}' of block "
                f"'{block.name}'; expected variables whose sizes are numbers.",
                code="axes-dim",
                kind=Kind.LIMIT,
                hints=("split and fuse take the block's loops.",),
            )


def _counted(func: PrimFunc, block: Block, count: _Count) -> Rewrite:
    """The function with a block, and what it stores at its own variables, counted anew."""
    own = tuple(it.var for it in block.iters if it.kind is IterKind.SPATIAL)
    shape = tuple(it.extent for it in count.iters if it.kind is IterKind.SPATIAL)
    moved = {
        tensor: replace(tensor, shape=shape, dims=(), aligned=())
        for tensor in targets_of(block)
        if tensor in func.allocations and all(at == own for at in write_indices(block, tensor))
    }
    counted = _by(block, count, moved)
    variables: tuple[Var, ...] = ()
    forward: dict[Var, tuple[Var, ...]] | None = None
    if _is_alone(func, block):
        nest, variables = _over(counted)
        forward = {loop.var: variables for loop in loops_around(func, block)}
        body = replace_stmt(func.body, root_statement(func, block), nest)
    else:
        ranges = ranges_of(loops_around(func, block))
        places = tuple(simplify(at, ranges) for at in count.renewed(block.bindings))
        body = replace_stmt(func.body, block, replace(counted, bindings=places))

    def follow(other: Block) -> Stmt:
        if other.name == block.name or not any(reads(other, tensor) for tensor in moved):
            return other
        return _followed(other, moved, count.renewed, other.iters)

    def allocate(node: Node) -> Node:
        if isinstance(node, Alloc) and node.buffer in moved:
            return replace(node, buffer=moved[node.buffer])
        return node

    changed = map_blocks(body, follow)
    for tensor in moved:
        changed = without_prefetches(changed, tensor)
    return Rewrite(func.with_body(transform(changed, allocate)), variables, forward=forward)


def _by(block: Block, count: _Count, moved: Mapping[Buffer, Buffer]) -> Block:
    """The block of the new variables, not bound yet."""
    values = count.values
    own = tuple(it.var for it in count.iters if it.kind is IterKind.SPATIAL)
    kept = _followed(block, moved, lambda _: own, block.iters)
    init = None if kept.init is None else _plain(substitute(kept.init, values), count.iters)
    return replace(
        kept,
        iters=count.iters,
        body=_plain(substitute(kept.body, values), count.iters),
        init=init,
        counts=substitute(kept.counts, values),
    )


def _over(block: Block) -> tuple[Stmt, tuple[Var, ...]]:
    """The block in loops over its variables, and the loops."""
    variables = tuple(Var(it.var.name.removeprefix("v")) for it in block.iters)
    nest: Stmt = replace(block, bindings=variables)
    for variable, it in zip(reversed(variables), reversed(block.iters), strict=True):
        nest = For(variable, it.extent, ForKind.SERIAL, nest)
    return nest, variables


def _followed(
    block: Block, moved: Mapping[Buffer, Buffer], renewed: Renewed, iters: Sequence[IterVar]
) -> Block:
    """A block of the variables `iters` that finds moved tensors as they are now."""

    def rule(item: Node) -> Node:
        if isinstance(item, Load | Store) and item.buffer in moved:
            found = replace(item, buffer=moved[item.buffer], indices=renewed(item.indices))
            return _plain(found, iters)
        return item

    return transform(block, rule)


def _plain(node: NodeT, iters: Sequence[IterVar]) -> NodeT:
    """What is in a block, its indices as simple as the extents of its variables allow; one of a
    single value stays a variable.
    """
    ranges = {it.var: (0, max(1, it.extent - 1)) for it in iters}

    def rule(item: Node) -> Node:
        if not isinstance(item, Load | Store):
            return item
        found = tuple(simplify(index, ranges) for index in item.indices)
        return item if found == item.indices else replace(item, indices=found)

    return transform(node, rule)


def draw_join_axes(sch: ScheduleView, rng: Random) -> Arguments:
    """Neighbours of one kind, nearly always."""
    iters = sch.func.block(name := choose_block(sch, rng)).iters
    groups: list[tuple[int, ...]] = []
    for n, it in enumerate(iters):
        alike = n > 0 and (iters[n - 1].kind is it.kind or rng.random() < 0.05)
        last = groups.pop() if alike and rng.random() < 0.5 else ()
        groups.append((*last, n))
    return {"block": name, "groups": tuple(groups)}


def draw_split_axis(sch: ScheduleView, rng: Random) -> Arguments:
    """Any axis and a number up to its extent."""
    iters = sch.func.block(name := choose_block(sch, rng)).iters
    if not iters:
        raise NothingToTry
    axis = rng.randrange(len(iters))
    return {"block": name, "axis": axis, "factor": rng.randint(1, max(1, iters[axis].extent))}


JOIN_AXES = Primitive(
    "join_axes",
    join_axes,
    {"block": BLOCK, "groups": PLAIN},
    gives=all_loops,
    draw=draw_join_axes,
)
SPLIT_AXIS = Primitive(
    "split_axis",
    split_axis,
    {"block": BLOCK, "axis": PLAIN, "factor": PLAIN},
    gives=all_loops,
    draw=draw_split_axis,
    weight=3,
)
