"""Primitives transform_layout and pad: store an intermediate tensor in another order of its
elements, or with room around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...tir.buffer import Buffer, Load
from ...tir.conditions import all_of
from ...tir.expr import TRUE, Expr, Select, Var, const
from ...tir.func import PrimFunc
from ...tir.linear import Interval
from ...tir.node import Node
from ...tir.simplify import provable, simplify
from ...tir.stmt import Alloc, Block, For, ForKind, IterKind, IterVar, Stmt, Store
from ...tir.visit import replace_stmt, stores, substitute, transform
from .. import legality, placement
from ..errors import Kind, refuse
from ..index_map import IndexMap
from ..nest import (
    Rewrite,
    loops_around,
    map_blocks,
    reads,
    root_statement,
    without_prefetches,
    write_indices,
    writers,
)


def transform_layout(func: PrimFunc, buffer: Buffer, index_map: IndexMap) -> Rewrite:
    """Store `buffer` in the layout that `index_map` gives; its block runs over the new indices.

    P[k, n]   ->   P[n // 48, k, n % 48]

    Where the new layout has cells for no old element (incomplete panels), they are set to 0 and the
    block is marked padded. Prefetches and the alignment of the tensor are dropped.
    Requires: an intermediate tensor, written by one block of one expression per element in a nest
    of its own.
    Returns the new loops. Raises: ScheduleError.
    """
    writer = _sole_writer(func, buffer, "transform_layout")
    return _stored(func, writer, buffer, index_map.shape(buffer.shape), index_map)


def pad(func: PrimFunc, buffer: Buffer, multiples: Sequence[int]) -> Rewrite:
    """Give an intermediate tensor room up to a multiple of `multiples[d]` along each axis d.

    for i in range(13): P[i] = x   ->   for i in range(16): P[i] = select(i < 13, x, 0)

    What is new is set to 0, and nobody reads it; the block is marked padded, and vectors over it
    need no masks. Prefetches and the alignment of the tensor are dropped.
    Requires: as transform_layout; a positive number for each axis. Returns the new loops. Raises:
    ScheduleError.
    """
    writer = _sole_writer(func, buffer, "pad")
    _check_multiples(func, buffer, multiples)
    shape = tuple(-(-n // m) * m for n, m in zip(buffer.shape, multiples, strict=True))
    axes = tuple(Var(f"i{d}") for d in range(len(shape)))
    return _stored(func, writer, buffer, shape, IndexMap(axes, axes))


def _check_multiples(func: PrimFunc, buffer: Buffer, multiples: Sequence[int]) -> None:
    """A positive number for each axis."""
    numbers = all(type(m) is int and m >= 1 for m in multiples)
    if numbers and len(multiples) == len(buffer.shape):
        return
    raise refuse(
        func,
        f"pad: multiples ({', '.join(map(str, multiples))}) of '{buffer.name}', which has "
        f"{len(buffer.shape)} axes; expected a positive integer for each.",
        code="pad-multiples",
        kind=Kind.ARGUMENT,
        hints=("1 leaves an axis as it is.",),
    )


def _stored(
    func: PrimFunc, writer: Block, buffer: Buffer, shape: tuple[int, ...], index_map: IndexMap
) -> Rewrite:
    """The function with `buffer`, which `writer` alone writes, stored in `shape` by `index_map`."""
    moved = Buffer(buffer.name, buffer.type, shape, buffer.scope)
    nest, variables = _rewritten(writer, buffer, moved, index_map)
    anchor = root_statement(func, writer)
    body = replace_stmt(func.body, anchor, nest)

    def redirect(block: Block) -> Stmt:
        return transform(block, access) if reads(block, buffer) else block

    def access(node: Node) -> Node:
        if isinstance(node, Load) and node.buffer is buffer:
            return Load(moved, index_map.apply(node.indices))
        return node

    def allocate(node: Node) -> Node:
        return (
            replace(node, buffer=moved)
            if isinstance(node, Alloc) and node.buffer is buffer
            else node
        )

    changed = without_prefetches(map_blocks(body, redirect), buffer)
    forward = {loop.var: variables for loop in loops_around(func, writer)}
    return Rewrite(func.with_body(transform(changed, allocate)), variables, forward=forward)


def _sole_writer(func: PrimFunc, buffer: Buffer, primitive: str) -> Block:
    """The one block that writes an intermediate tensor, in a nest of its own, by one expression per
    element.
    """
    legality.check_intermediate(func, buffer, primitive)
    legality.check_fixed_size(func, buffer, primitive)
    found = writers(func, buffer)
    alone = len(found) == 1 and all(
        isinstance(node, For | Block) for node in _chain(root_statement(func, found[0]))
    )
    if not alone:
        raise refuse(
            func,
            f"{primitive}: '{buffer.name}' is not written by one block in a nest of its own.",
            code="layout-writer",
            kind=Kind.LIMIT,
            hints=(f"call {primitive} right after cache_read or cache_write.",),
        )
    legality.check_pointwise(func, found[0], primitive)
    placement.check_not_staged(func, buffer, primitive)
    return found[0]


def _chain(stmt: Stmt) -> list[Stmt]:
    found = [stmt]
    while isinstance(found[-1], For):
        found.append(found[-1].body)
    return found


def _rewritten(
    writer: Block, old: Buffer, new: Buffer, index_map: IndexMap
) -> tuple[Stmt, tuple[Var, ...]]:
    """The writer's nest over the new indices."""
    iters = tuple(
        IterVar(Var(f"v{d}"), extent, IterKind.SPATIAL) for d, extent in enumerate(new.shape)
    )
    point = tuple(it.var for it in iters)
    ranges: dict[Var, Interval] = {it.var: (0, it.extent - 1) for it in iters}
    origin = tuple(simplify(i, ranges) for i in index_map.inverse(point))
    values: dict[Var, Expr] = {}
    for item, at in zip(write_indices(writer, old)[0], origin, strict=True):
        assert isinstance(item, Var)
        values[item] = at
    value = substitute(stores(writer.body)[0].value, values)
    inside = [
        c
        for c in (at < n for at, n in zip(origin, old.shape, strict=True))
        if not provable(c, ranges)
    ]
    if inside:
        value = Select(all_of(*inside), value, const(0, old.type))
    variables = tuple(Var(f"{old.name}_{d}") for d in range(len(iters)))
    nest: Stmt = replace(
        writer,
        iters=iters,
        bindings=variables,
        body=Store(new, point, value),
        predicate=TRUE,
        padded=bool(inside) or writer.padded,
    )
    for variable, it in zip(reversed(variables), reversed(iters), strict=True):
        nest = For(variable, it.extent, ForKind.SERIAL, nest)
    return nest, variables
