"""Primitives transform_layout and pad: store an intermediate tensor in another order of its
elements, or with room around them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ....tir.analysis.linear import Interval, Ranges
from ....tir.analysis.simplify import provable, simplify
from ....tir.buffer import Buffer, Load
from ....tir.conditions import all_of
from ....tir.expr import TRUE, Expr, Select, Var, const
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, IterKind, IterVar, Stmt, Store
from ....tir.visit import replace_stmt, stores, substitute, transform
from ...drawing import Arguments, NothingToTry, ScheduleView, buffers, choose_intermediate
from ...errors import Kind, refuse
from ...index_map import IndexMap
from ...legality.tensors import check_fixed_size, check_intermediate, check_not_staged
from ...nest import (
    Rewrite,
    loops_around,
    map_blocks,
    ranges_of,
    read_indices,
    reads,
    root_statement,
    targets_of,
    without_prefetches,
    write_indices,
    writers,
    writes,
)
from ..parameters import PLAIN, TENSOR
from ..primitive import Primitive, all_loops


def transform_layout(func: PrimFunc, buffer: Buffer, index_map: str) -> Rewrite:
    """Store `buffer` in the layout that `index_map` gives; its blocks count their points by the new
    indices.

    P[k, n]   ->   P[n // 48, k, n % 48]

    index_map: the text of an IndexMap.
    One block of one expression per element in a nest of its own gets loops over the new indices.
    Where the new layout has cells for no old element (incomplete panels), they are set to 0 and the
    block is marked padded. Any other writers keep their loops: each point has one number in the old
    count and one in the new, and runs when it ran. Prefetches and the alignment of the tensor are
    dropped. Requires: an intermediate tensor; a nest as above, or a cell for each old element and
    no other. Returns the new loops; none where they stay. Raises: ScheduleError.
    """
    parsed = IndexMap.parse(index_map)
    _check_free(func, buffer, "transform_layout")
    shape = parsed.shape(buffer.shape)
    writer = _sole_writer(func, buffer)
    if writer is not None:
        return _stored(func, writer, buffer, shape, parsed)
    _check_counted(func, buffer, shape)
    return _recounted(func, buffer, shape, parsed)


def pad(func: PrimFunc, buffer: Buffer, multiples: Sequence[int]) -> Rewrite:
    """Give an intermediate tensor room up to a multiple of `multiples[d]` along each axis d.

    for i in range(13): P[i] = x   ->   for i in range(16): P[i] = select(i < 13, x, 0)

    What is new is set to 0, and nobody reads it; the block is marked padded, and vectors over it
    need no masks. Prefetches and the alignment of the tensor are dropped.
    Requires: an intermediate tensor, written by one block of one expression per element in a nest
    of its own; a positive number for each axis. Returns the new loops. Raises: ScheduleError.
    """
    _check_free(func, buffer, "pad")
    _check_multiples(func, buffer, multiples)
    writer = _sole_writer(func, buffer)
    if writer is None:
        raise refuse(
            func,
            f"pad: '{buffer.name}' is not written by one block of one expression per element in a "
            "nest of its own.",
            code="pad-writer",
            kind=Kind.LIMIT,
            hints=("cache_read makes a copy for a reader; pad that one.",),
        )
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
    changed = _followed(
        func.with_body(replace_stmt(func.body, anchor, nest)), buffer, moved, index_map
    )
    forward = {loop.var: variables for loop in loops_around(func, writer)}
    return Rewrite(changed, variables, forward=forward)


def _recounted(
    func: PrimFunc, buffer: Buffer, shape: tuple[int, ...], index_map: IndexMap
) -> Rewrite:
    """The function with `buffer` stored in `shape`, its writers in the loops that they had."""
    moved = Buffer(buffer.name, buffer.type, shape, buffer.scope)

    def recount(block: Block) -> Stmt:
        if not writes(block, buffer):
            return block
        around = ranges_of(loops_around(func, block))
        return _counted(block, around, buffer, moved, index_map)

    return Rewrite(
        _followed(func.with_body(map_blocks(func.body, recount)), buffer, moved, index_map)
    )


def _counted(block: Block, around: Ranges, old: Buffer, new: Buffer, index_map: IndexMap) -> Block:
    """A block that writes `old` at its own variables, as one that writes `new` at its own."""
    element = write_indices(block, old)[0]
    places = {it.var: binding for it, binding in zip(block.iters, block.bindings, strict=True)}
    iters = tuple(IterVar(Var(f"v{d}"), n, IterKind.SPATIAL) for d, n in enumerate(new.shape))
    point = tuple(it.var for it in iters)
    ranges: dict[Var, Interval] = {it.var: (0, it.extent - 1) for it in (*iters, *block.iters)}
    values: dict[Var, Expr] = {}
    bound_at: list[Expr] = []
    for item, at in zip(element, index_map.inverse(point), strict=True):
        assert isinstance(item, Var)
        values[item] = simplify(at, ranges)
        bound_at.append(places.pop(item))
    bindings = tuple(simplify(at, around) for at in index_map.apply(bound_at))

    def own(node: Node) -> Node:
        if isinstance(node, Load | Store) and node.buffer is old:
            return replace(node, buffer=new, indices=point)
        return node

    def counted(stmt: Stmt) -> Stmt:
        return substitute(transform(stmt, own), values)

    return replace(
        block,
        iters=(*iters, *(it for it in block.iters if it.var in places)),
        bindings=(*bindings, *places.values()),
        body=counted(block.body),
        init=None if block.init is None else counted(block.init),
        counts=substitute(block.counts, values),
    )


def _followed(func: PrimFunc, old: Buffer, new: Buffer, index_map: IndexMap) -> PrimFunc:
    """The function whose readers find a tensor in its new layout."""

    def redirect(block: Block) -> Stmt:
        return transform(block, access) if reads(block, old) else block

    def access(node: Node) -> Node:
        if isinstance(node, Load) and node.buffer is old:
            return Load(new, index_map.apply(node.indices))
        return node

    def allocate(node: Node) -> Node:
        return replace(node, buffer=new) if isinstance(node, Alloc) and node.buffer is old else node

    changed = without_prefetches(map_blocks(func.body, redirect), old)
    return func.with_body(transform(changed, allocate))


def _check_free(func: PrimFunc, buffer: Buffer, primitive: str) -> None:
    """The tensor is an intermediate one of fixed size, of which no copy is staged."""
    check_intermediate(func, buffer, primitive)
    check_fixed_size(func, buffer, primitive)
    check_not_staged(func, buffer, primitive)


def _check_counted(func: PrimFunc, buffer: Buffer, shape: Sequence[int]) -> None:
    """Old and new elements are as many, and each writer stores one at its own kept variables."""
    exact = math.prod(shape) == math.prod(buffer.shape)
    if exact and all(_at_own_point(block, buffer) for block in writers(func, buffer)):
        return
    wrong = "its blocks do not store it alone at their own variables"
    if not exact:
        wrong = f"{math.prod(shape)} elements are to hold its {math.prod(buffer.shape)}"
    raise refuse(
        func,
        f"transform_layout: '{buffer.name}' is not written by one block of one expression per "
        f"element in a nest of its own, and {wrong}.",
        code="layout-writer",
        kind=Kind.LIMIT,
        hints=(
            "cache_read makes a copy for a reader, which takes any layout; one of as many "
            "elements, such as by divisors of the extents, is taken anywhere.",
        ),
    )


def _at_own_point(block: Block, buffer: Buffer) -> bool:
    """Whether the block stores to the buffer alone, at all of its kept variables, each once, and
    reads there only what it goes on with.
    """
    kept = [it.var for it in block.iters if it.kind is not IterKind.REDUCE]
    element = write_indices(block, buffer)[0]
    once = len(element) == len(kept) and set(element) == set(kept)
    goes_on = all(at == element for at in read_indices(block, buffer))
    return targets_of(block) == (buffer,) and not block.is_ordered and once and goes_on


def _sole_writer(func: PrimFunc, buffer: Buffer) -> Block | None:
    """The one block that writes a tensor, if it does so in a nest of its own, by one expression per
    element.
    """
    found = writers(func, buffer)
    if len(found) != 1 or not _at_own_point(found[0], buffer) or reads(found[0], buffer):
        return None
    chain = _chain(root_statement(func, found[0]))
    return found[0] if all(isinstance(node, For | Block) for node in chain) else None


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


def draw_transform_layout(sch: ScheduleView, rng: Random) -> Arguments:
    """Axes in any order, one of them as two digits more often than not."""
    often = rng.random() < 0.95
    buffer = choose_intermediate(sch, rng) if often else rng.choice(buffers(sch))
    axes = [f"i{n}" for n in range(len(buffer.shape))]
    if not axes:
        raise NothingToTry
    parts = list(axes)
    if rng.random() < 0.7:
        split, width = rng.choice(axes), rng.randint(1, 4)
        parts = [axis for axis in axes if axis != split]
        parts += [f"{split} // {width}", f"{split} % {width}"]
    rng.shuffle(parts)
    index_map = f"lambda {', '.join(axes)}: ({', '.join(parts)},)"
    return {"buffer": buffer.name, "index_map": index_map}


def draw_pad(sch: ScheduleView, rng: Random) -> Arguments:
    """A small number for each axis of an intermediate tensor."""
    buffer = choose_intermediate(sch, rng)
    return {"buffer": buffer.name, "multiples": tuple(rng.randint(1, 4) for _ in buffer.shape)}


TRANSFORM_LAYOUT = Primitive(
    "transform_layout",
    transform_layout,
    {"buffer": TENSOR, "index_map": PLAIN},
    gives=all_loops,
    draw=draw_transform_layout,
    weight=2,
)
PAD = Primitive(
    "pad",
    pad,
    {"buffer": TENSOR, "multiples": PLAIN},
    gives=all_loops,
    draw=draw_pad,
    weight=2,
)
