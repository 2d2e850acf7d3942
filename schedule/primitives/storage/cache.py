"""Primitives cache_read, cache_write and reindex: a copy of a tensor, as a block of its own at the
root.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import dropwhile
from random import Random

from ....tir.analysis.simplify import provable
from ....tir.buffer import Buffer, Load, array
from ....tir.conditions import dims_below
from ....tir.dim import Dim, Extent
from ....tir.expr import Expr, Var
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, ForKind, Stmt, Store, elements_of
from ....tir.text.printer import print_expr
from ....tir.visit import free_vars, replace_buffers, replace_stmt, substitute, transform
from ...drawing import Arguments, NothingToTry, ScheduleView, draw_block, names_read
from ...errors import Kind, refuse
from ...legality import completeness
from ...legality.blocks import check_compute, check_single, check_unstaged
from ...nest import (
    Rewrite,
    buffers_read,
    insert_beside,
    map_blocks,
    read_indices,
    readers,
    reads,
    root_statement,
    target_of,
    unique_name,
    write_indices,
    writes,
)
from ..parameters import BLOCK, OPTIONAL, PLAIN, TENSOR
from ..primitive import Primitive, one_block


def cache_read(
    func: PrimFunc,
    block: str,
    buffer: Buffer,
    name: str | None = None,
    *,
    everyone: bool = False,
) -> Rewrite:
    """Let `block` read a copy of `buffer`, made by a new block before it.

    C(A)   ->   for i: A_cache[i] = A[i]; C(A_cache)

    everyone: the blocks behind it that read the buffer read the copy, too. Requires: the tensor is
    complete before the block's nest begins, and stored whole, no part of it in a staged copy alone.
    Returns the new block, whose tensor may be given another layout or moved by compute_at. Raises:
    ScheduleError.
    """
    reader = func.block(block)
    check_compute(func, reader, "cache_read")
    _check_reads(func, reader, buffer, "cache_read")
    completeness.check_before(func, reader, buffer, "cache_read")
    _check_stored(func, buffer)
    copy_name = unique_name(func, name or f"{buffer.name}_cache")
    copy = array(copy_name, buffer.type, buffer.extents)
    users = dropwhile(lambda other: other is not reader, readers(func, buffer))
    body = func.body
    for user in users if everyone else (reader,):
        body = replace_stmt(body, user, replace_buffers(user, {buffer: copy}))
    changed = func.with_body(body)
    anchor = root_statement(changed, changed.block(block))
    nest, variables = _whole(copy_name, buffer, copy)
    changed = insert_beside(changed, anchor, nest, after=False)
    return Rewrite(changed.with_body(Alloc(copy, changed.body)), variables, (copy_name,))


def cache_write(func: PrimFunc, block: str, name: str | None = None) -> Rewrite:
    """Let `block` write a new tensor, which a new block after it copies to the old one.

    C   ->   C_cache; for i: C[i] = C_cache[i]

    The block goes on under the name of the new tensor; the new block takes its old name. Requires:
    the tensor is read after the block's nest only. Returns the new block. Raises: ScheduleError.
    """
    writer = func.block(block)
    check_compute(func, writer, "cache_write")
    check_single(func, writer, "cache_write")
    target = target_of(writer)
    check_unstaged(func, writer, "cache_write")
    completeness.check_readers_after(func, writer, target, "cache_write")
    _check_own_places(func, writer, target)
    cache_name = unique_name(func, name or f"{target.name}_cache")
    cache = array(cache_name, target.type, target.extents)

    def redirect(other: Block) -> Stmt:
        if not writes(other, target):
            return other
        own = replace_buffers(other, {target: cache})
        return replace(own, name=cache_name if other is writer else own.name, family=cache_name)

    changed = func.with_body(map_blocks(func.body, redirect))
    anchor = root_statement(changed, changed.block(cache_name))
    nest, variables = _whole(block, cache, target)
    changed = insert_beside(changed, anchor, nest, after=True)
    changed = changed.with_body(Alloc(cache, changed.body))
    return Rewrite(changed, variables, (block,), renamed={block: cache_name})


def reindex(func: PrimFunc, block: str, buffer: Buffer, name: str | None = None) -> Rewrite:
    """Let `block` read `buffer` from a dense copy that its own iteration variables index.

    C[i, j] = sum over k: f(X[g(i, k)])   ->   X_re[i, k] = X[g(i, k)]; C[i, j] = ... f(X_re[i, k])

    The copy has an axis for each iteration variable of the block that the access mentions, in their
    order: of a convolution it is the matrix of its windows. Requires: one access, which stays
    inside the tensor; the tensor is complete before the block's nest begins. Returns the new block.
    Raises: ScheduleError.
    """
    reader = func.block(block)
    check_compute(func, reader, "reindex")
    _check_reads(func, reader, buffer, "reindex")
    completeness.check_before(func, reader, buffer, "reindex")
    access = _check_one_access(func, reader, buffer)
    mentioned = frozenset[Var]().union(*(free_vars(item) for item in access))
    own = [it for it in reader.iters if it.var in mentioned]
    copy_name = unique_name(func, name or f"{buffer.name}_reindexed")
    ends = _ends(reader)
    copy = array(copy_name, buffer.type, tuple(ends[it.var] for it in own))
    element = tuple(it.var for it in own)

    def redirect(node: Node) -> Node:
        if isinstance(node, Load) and node.buffer is buffer:
            return Load(copy, element)
        return node

    changed = func.with_body(replace_stmt(func.body, reader, transform(reader, redirect)))
    anchor = root_statement(changed, changed.block(block))
    fresh = tuple(Var(var.name) for var in element)
    values: dict[Var, Expr] = dict(zip(element, fresh, strict=True))
    source = Load(buffer, tuple(substitute(item, values) for item in access))
    nest, variables = _copy(copy_name, source, copy, fresh)
    changed = insert_beside(changed, anchor, nest, after=False)
    return Rewrite(changed.with_body(Alloc(copy, changed.body)), variables, (copy_name,))


def _check_stored(func: PrimFunc, tensor: Buffer) -> None:
    """No part of the tensor is kept in a staged copy alone, as one that nobody reads is."""
    for staged, block in completeness.kept_in_stages(func, tensor).items():
        raise refuse(
            func,
            f"cache_read: '{tensor.name}' lacks the part that block '{block.name}' computes, "
            f"which stays in '{staged.name}'; expected a tensor that is stored whole.",
            code="cache-part",
            kind=Kind.LIMIT,
            hints=("call cache_read before the stage.",),
        )


def _check_own_places(func: PrimFunc, writer: Block, target: Buffer) -> None:
    """The block stores each element at variables of its own, as what moves an intermediate tensor
    expects.
    """
    if all(isinstance(item, Var) for at in write_indices(writer, target) for item in at):
        return
    raise refuse(
        func,
        f"cache_write: block '{writer.name}' stores '{target.name}' at digits of its variables; "
        "expected each index to be one of them.",
        code="cache-digits",
        kind=Kind.LIMIT,
        hints=("call cache_write before join_axes and split_axis.",),
    )


def _whole(name: str, source: Buffer, target: Buffer) -> tuple[Stmt, tuple[Var, ...]]:
    """The nest that copies each element of `source` to the same one of `target`, and its loops."""
    element = tuple(Var(f"v{axis}") for axis in range(len(source.shape)))
    return _copy(name, Load(source, element), target, element)


def _copy(
    name: str, source: Load, target: Buffer, element: tuple[Var, ...]
) -> tuple[Stmt, tuple[Var, ...]]:
    """The nest that stores `source`, an expression of `element`, at each `element` of `target`."""
    iters = elements_of(target, element)
    variables = tuple(Var(f"{source.buffer.name}_{axis}") for axis in range(len(iters)))
    nest: Stmt = Block(name, iters, variables, Store(target, element, source), family=name)
    for variable, it in zip(reversed(variables), reversed(iters), strict=True):
        nest = For(variable, it.extent, ForKind.SERIAL, nest)
    return nest, variables


def _check_reads(func: PrimFunc, block: Block, buffer: Buffer, primitive: str) -> None:
    """The block reads the buffer, as an operand."""
    if not reads(block, buffer) or writes(block, buffer):
        names = ", ".join(repr(b.name) for b in buffers_read(block)) or "nothing"
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' does not read '{buffer.name}'; it reads {names}.",
            code="block-reads",
            kind=Kind.ARGUMENT,
        )


def _ends(block: Block) -> dict[Var, Extent]:
    """How many values of each iteration variable a block combines: a number, or a dim."""
    return {**{it.var: it.domain for it in block.iters}, **dims_below(block.counts)}


def _check_one_access(func: PrimFunc, block: Block, buffer: Buffer) -> tuple[Expr, ...]:
    """The block reads the buffer at one place, inside of it at each point of its iteration
    variables. Returns the indices.
    """
    found = list(dict.fromkeys(read_indices(block, buffer)))
    ranges = {it.var: (0, it.extent - 1) for it in block.iters}
    ends = _ends(block)

    def is_inside(item: Expr, extent: Extent) -> bool:
        if isinstance(item, Var) and ends.get(item) is extent:  # a dim, whatever a call makes of it
            return True
        least = extent.low if isinstance(extent, Dim) else extent
        return provable(item >= 0, ranges) and provable(item < least, ranges)

    if len(found) == 1 and all(map(is_inside, found[0], buffer.extents)):
        return found[0]
    what = "at several places" if len(found) > 1 else "beyond its edges"
    shown = "; ".join(f"[{', '.join(map(print_expr, access))}]" for access in found)
    raise refuse(
        func,
        f"reindex: block '{block.name}' reads '{buffer.name}' {what}: {shown}.",
        code="reindex-access",
        kind=Kind.LIMIT,
        hints=("cache_read copies the tensor as it is.",),
    )


def draw_cache_read(sch: ScheduleView, rng: Random) -> Arguments:
    """Any block and a buffer that it reads."""
    block = rng.choice(sch.func.blocks)
    read = names_read(sch, block)
    if not read:
        raise NothingToTry
    return {"block": block.name, "buffer": rng.choice(read)}


def draw_reindex(sch: ScheduleView, rng: Random) -> Arguments:
    """Any block and a buffer that it reads, its own one too."""
    block = rng.choice(sch.func.blocks)
    read = buffers_read(block)
    if not read:
        raise NothingToTry
    return {"block": block.name, "buffer": rng.choice(read).name}


CACHE_READ = Primitive(
    "cache_read",
    cache_read,
    {"block": BLOCK, "buffer": TENSOR, "name": PLAIN, "everyone": OPTIONAL},
    gives=one_block,
    draw=draw_cache_read,
)
CACHE_WRITE = Primitive(
    "cache_write",
    cache_write,
    {"block": BLOCK, "name": PLAIN},
    gives=one_block,
    draw=draw_block,
)
REINDEX = Primitive(
    "reindex",
    reindex,
    {"block": BLOCK, "buffer": TENSOR, "name": PLAIN},
    gives=one_block,
    draw=draw_reindex,
)
