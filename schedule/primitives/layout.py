"""Primitive transform_layout: store an intermediate tensor in another order of its elements."""

from __future__ import annotations

from dataclasses import replace

from ...tir.expr import TRUE, Buffer, Expr, Load, Select, Var, all_of, const
from ...tir.func import PrimFunc
from ...tir.linear import Interval
from ...tir.node import Node
from ...tir.simplify import provable, simplify
from ...tir.stmt import Alloc, Block, For, ForKind, IterKind, IterVar, Stmt, Store
from ...tir.visit import replace_stmt, stores, substitute, transform
from .. import legality, placement
from ..errors import refuse
from ..index_map import IndexMap
from ..nest import (
    Rewrite,
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
    block is marked padded. Prefetches of the tensor are dropped.
    Requires: an intermediate tensor, written by one block of one expression per element in a nest
    of its own.
    Returns the new loops. Raises: ScheduleError.
    """
    legality.check_intermediate(func, buffer, "transform_layout")
    writer = _sole_writer(func, buffer)
    legality.check_pointwise(func, writer, "transform_layout")
    placement.check_not_staged(func, buffer, "transform_layout")
    shape = index_map.shape(buffer.shape)
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
    return Rewrite(func.with_body(transform(changed, allocate)), variables)


def _sole_writer(func: PrimFunc, buffer: Buffer) -> Block:
    found = writers(func, buffer)
    alone = len(found) == 1 and all(
        isinstance(node, For | Block) for node in _chain(root_statement(func, found[0]))
    )
    if not alone:
        raise refuse(
            func,
            f"transform_layout: '{buffer.name}' is not written by one block in a nest of its own.",
            code="layout-writer",
            hints=("call transform_layout right after cache_read or cache_write.",),
        )
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
