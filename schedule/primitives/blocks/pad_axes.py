"""Primitive pad_axes: let a block run over whole tiles, where its tensors have room for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer, Load
from ....tir.expr import TRUE, Add, Cast, Const, Expr, Mul, Select, Var, is_const
from ....tir.func import PrimFunc
from ....tir.stmt import Block, For, ForKind, IterKind, IterVar, Stmt
from ....tir.visit import free_vars, loads, replace_buffers, replace_stmt, stores
from ...drawing import Arguments, ScheduleView, choose_block, choose_intermediate
from ...errors import Kind, refuse
from ...legality import recurrence
from ...legality.blocks import check_compute, check_single, check_unstaged
from ...legality.tensors import check_fixed_size, check_intermediate, check_not_staged
from ...nest import (
    Rewrite,
    loops_around,
    root_statement,
    target_of,
    without_prefetches,
    write_indices,
    writers,
)
from ..parameters import BLOCK, PLAIN
from ..primitive import Primitive, all_loops


def pad_axes(func: PrimFunc, block: str, multiples: Sequence[int]) -> Rewrite:
    """Let `block` run up to a multiple of `multiples[d]` along each of its axes d.

    for i in range(13): for k in range(5): C[i] += A[i, k] * B[k]
    ->  for i in range(16): for k in range(8): C[i] += A[i, k] * B[k]

    Its tensor gets room for what is new, which nobody reads. Along a reduction the block adds
    products of zeros there. Requires: an intermediate tensor; a nest of plain loops over the axes;
    tensors that are read at plain axes and reach as far, as `pad` leaves them; along a reduction
    that grows, a sum of what is 0 where they are. Returns the new loops. Raises: ScheduleError.
    """
    whole = func.block(block)
    check_single(func, whole, "pad_axes")
    recurrence.check_no_recurrence(func, whole, "pad_axes")
    check_compute(func, whole, "pad_axes")
    check_unstaged(func, whole, "pad_axes")
    tensor = target_of(whole)
    check_intermediate(func, tensor, "pad_axes")
    check_fixed_size(func, tensor, "pad_axes")
    check_not_staged(func, tensor, "pad_axes")
    _check_multiples(func, whole, multiples)
    chain = _check_plain(func, whole)
    extents = [-(-it.extent // m) * m for it, m in zip(whole.iters, multiples, strict=True)]
    grown = {
        it.var: (it, extent)
        for it, extent in zip(whole.iters, extents, strict=True)
        if extent > it.extent
    }
    for load in (*loads(whole.body), Load(tensor, write_indices(whole, tensor)[0])):
        _check_room(func, whole, load, tensor, grown)
    for it, _ in grown.values():
        if it.kind is IterKind.REDUCE:
            _check_zeros(func, whole, tensor, it)
    return _rewritten(func, whole, chain, extents, tensor)


def _check_multiples(func: PrimFunc, block: Block, multiples: Sequence[int]) -> None:
    """A positive number for each axis."""
    numbers = all(type(m) is int and m >= 1 for m in multiples)
    if numbers and len(multiples) == len(block.iters):
        return
    raise refuse(
        func,
        f"pad_axes: multiples ({', '.join(map(str, multiples))}) of block '{block.name}', which "
        f"has {len(block.iters)} axes; expected a positive integer for each.",
        code="pad-axes-multiples",
        kind=Kind.ARGUMENT,
        hints=("1 leaves an axis as it is.",),
    )


def _check_plain(func: PrimFunc, block: Block) -> tuple[For, ...]:
    """A serial loop for each axis and nothing else around the block. Returns the loops."""
    around = loops_around(func, block)
    plain = (
        block.bindings == tuple(loop.var for loop in around)
        and all(loop.kind is ForKind.SERIAL for loop in around)
        and block.predicate == TRUE
        and block.counts == TRUE
        and len(writers(func, target_of(block))) == 1
    )
    inner: Stmt = root_statement(func, block)
    while isinstance(inner, For):
        inner = inner.body
    if plain and inner is block:
        return around
    raise refuse(
        func,
        f"pad_axes: block '{block.name}' does not stand in a nest of its own, of one serial loop "
        "for each axis.",
        code="pad-axes-loops",
        kind=Kind.LIMIT,
        hints=("call pad_axes before split, fuse, reorder and compute_at.",),
    )


def _check_room(
    func: PrimFunc,
    block: Block,
    load: Load,
    tensor: Buffer,
    grown: Mapping[Var, tuple[IterVar, int]],
) -> None:
    """What is accessed at axes that grow is accessed at them plainly, and reaches as far."""
    for axis, item in enumerate(load.indices):
        mentioned = free_vars(item) & grown.keys()
        if not mentioned:
            continue
        plain = isinstance(item, Var)
        needed = max(grown[var][1] for var in mentioned)
        if plain and (load.buffer is tensor or load.buffer.shape[axis] >= needed):
            continue
        what = f"{load.buffer.shape[axis]} elements there" if plain else "an index of several terms"
        raise refuse(
            func,
            f"pad_axes: block '{block.name}' reads '{load.buffer.name}' along dimension {axis}, "
            f"with {what}; expected one of its axes, and {needed} elements or more.",
            code="pad-axes-room",
            kind=Kind.ARGUMENT,
            hints=(f"cache_read('{block.name}', '{load.buffer.name}'), then pad the copy.",),
        )


def _check_zeros(func: PrimFunc, block: Block, tensor: Buffer, axis: IterVar) -> None:
    """Beyond the end of a reduction the block adds 0, because what it reads there is 0."""

    def is_zero(expr: Expr) -> bool:
        match expr:
            case Load() if axis.var in expr.indices:
                place = expr.indices.index(axis.var)
                return _is_zero_from(func, expr.buffer, place, axis.extent)
            case Cast():
                return is_zero(expr.value)
            case Mul():  # with a number that is no zero it may be NaN
                return is_zero(expr.a) and is_zero(expr.b)
        return _is_zero(expr)

    (store,) = stores(block.body)
    value = store.value
    if isinstance(value, Add):
        own = [x for x in (value.a, value.b) if isinstance(x, Load) and x.buffer is tensor]
        added = [x for x in (value.a, value.b) if x not in own]
        if len(own) == 1 and is_zero(added[0]):
            return
    raise refuse(
        func,
        f"pad_axes: block '{block.name}' would go on over '{axis.var.name}' beyond "
        f"{axis.extent - 1}; expected a sum of products of tensors that are 0 there.",
        code="pad-axes-zeros",
        kind=Kind.LIMIT,
        hints=("cache_read and pad both factors, or leave the reduction as it is: 1.",),
    )


def _is_zero_from(func: PrimFunc, buffer: Buffer, axis: int, start: int) -> bool:
    """Whether a tensor has only zeros from `start` on along an axis."""
    found = writers(func, buffer)
    if len(found) != 1 or len(stores(found[0].body)) != 1:
        return False
    value, indices = stores(found[0].body)[0].value, write_indices(found[0], buffer)[0]
    if isinstance(value, Load) and value.indices == indices:  # a copy
        return _is_zero_from(func, value.buffer, axis, start)
    if not isinstance(value, Select) or not _is_zero(value.on_false):
        return False
    known = {it.var: (0, it.extent - 1) for it in found[0].iters}
    beyond: Expr = indices[axis]
    if not isinstance(beyond, Var):
        return False
    known[beyond] = (start, buffer.shape[axis] - 1)
    return is_const(simplify(value.condition, known), 0)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0


def _rewritten(
    func: PrimFunc, block: Block, chain: Sequence[For], extents: Sequence[int], tensor: Buffer
) -> Rewrite:
    """The function with the block's nest, and its tensor, as large as `extents`."""
    sizes = {it.var: extent for it, extent in zip(block.iters, extents, strict=True)}
    iters = tuple(
        replace(it, extent=extent) for it, extent in zip(block.iters, extents, strict=True)
    )
    indices = write_indices(block, tensor)[0]
    shape = tuple(
        sizes[item] if isinstance(item, Var) and item in sizes else size
        for item, size in zip(indices, tensor.shape, strict=True)
    )
    nest: Stmt = replace(block, iters=iters, padded=block.padded or extents != _sizes(block))
    for loop, extent in zip(reversed(chain), reversed(extents), strict=True):
        nest = replace(loop, extent=extent, body=nest)
    body = replace_stmt(func.body, root_statement(func, block), nest)
    moved = replace(tensor, shape=shape, aligned=())
    body = replace_buffers(without_prefetches(body, tensor), {tensor: moved})
    return Rewrite(func.with_body(body), tuple(loop.var for loop in chain))


def _sizes(block: Block) -> list[int]:
    return [it.extent for it in block.iters]


def draw_pad_axes(sch: ScheduleView, rng: Random) -> Arguments:
    """Mostly as far as the tensors that the block reads have room."""
    buffer = choose_intermediate(sch, rng)
    block = rng.choice(writers(sch.func, buffer) or (sch.func.block(choose_block(sch, rng)),))
    multiples = []
    for axis in block.iters:
        read = [load for load in loads(block.body) if load.buffer is not buffer]
        rooms = [
            room
            for load in read
            for item, room in zip(load.indices, load.buffer.shape, strict=True)
            if axis.var in free_vars(item)
        ]
        most = min(rooms, default=2 * axis.extent)
        fit = [m for m in range(1, axis.extent + 4) if -(-axis.extent // m) * m <= most]
        multiples.append(rng.choice(fit or (1,)) if rng.random() < 0.9 else rng.randint(1, 3))
    return {"block": block.name, "multiples": tuple(multiples)}


PAD_AXES = Primitive(
    "pad_axes",
    pad_axes,
    {"block": BLOCK, "multiples": PLAIN},
    gives=all_loops,
    draw=draw_pad_axes,
    weight=2,
)
