"""Primitives compute_inline and reverse_compute_inline: one expression takes another in, and a
tensor disappears.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

from ....tir.analysis.expr_size import MOST_HEIGHT, MOST_SIZE
from ....tir.buffer import Buffer, Load
from ....tir.expr import Expr, Var
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Block, IterKind, Role, Stmt, Store
from ....tir.visit import loads, replace_stmt, stores, substitute, transform
from ...drawing import Arguments, ScheduleView, choose_pair, computed_and_used
from ...errors import Kind, refuse
from ...legality import completeness
from ...legality.blocks import check_compute, check_pointwise, check_role, check_unstaged
from ...legality.inline_growth import outgrown
from ...legality.tensors import check_intermediate, check_not_staged, check_storage_around
from ...nest import (
    Rewrite,
    buffers_read,
    map_blocks,
    readers,
    reads,
    remove,
    root_statement,
    target_of,
    without_allocation,
    without_prefetches,
    write_indices,
    writers,
)
from ..parameters import BLOCK
from ..primitive import Primitive, nothing


def compute_inline(func: PrimFunc, block: str) -> Rewrite:
    """Put the expression of a tensor in the place of each read of it.

    P[i] = f(i); C[j] = g(P[h(j)])   ->   C[j] = g(f(h(j)))

    Where several blocks compute parts of the tensor, they are one family of one expression, and all
    of them go. A copy that `stage` made of a tensor that is only read goes in the same way: an
    element of the copy is that of the tensor, which is complete before the nest. Requires: the
    block is such a copy, or one expression per element of an intermediate tensor, and no reader
    becomes higher than the compiler takes. Raises: ScheduleError.
    """
    producer = func.block(block)
    target = target_of(producer)
    parts = writers(func, target)
    copied = producer.role is Role.COPY and target.origin is not None and len(parts) == 1
    if not copied:
        check_role(func, producer, "compute_inline")
        check_pointwise(func, producer, "compute_inline")
        check_intermediate(func, target, "compute_inline")
    check_not_staged(func, target, "compute_inline")
    for part, reader in product(parts, readers(func, target)):
        if not copied:
            check_unstaged(func, part, "compute_inline")
        root = root_statement(func, reader)
        completeness.check_operands(func, part, root, "compute_inline", same_points=not copied)
        check_storage_around(func, part, reader, "compute_inline", read=True)
    _check_growth(func, producer)
    indices = write_indices(producer, target)[0]
    value = stores(producer.body)[0].value

    def expand(node: Node) -> Node:
        if not isinstance(node, Load) or node.buffer is not target:
            return node
        point = {i: at for i, at in zip(indices, node.indices, strict=True) if isinstance(i, Var)}
        return substitute(value, point)

    def inline(consumer: Block) -> Stmt:
        return transform(consumer, expand) if reads(consumer, target) else consumer

    left = func.body
    for part in parts:
        kept = remove(left, part)
        assert kept is not None
        left = kept
    return Rewrite(func.with_body(_without(map_blocks(left, inline), target)))


def reverse_compute_inline(func: PrimFunc, block: str) -> Rewrite:
    """Let the producer store what its only consumer makes of each element.

    P[i] = f(i); C[i] = g(P[i])   ->   C[i] = g(f(i))

    Requires: both are one expression per element of tensors of one shape, no element is computed
    twice, the consumer reads the producer at its own element only, and its tensor lives around the
    producer. Raises: ScheduleError.
    """
    consumer = func.block(block)
    check_compute(func, consumer, "reverse_compute_inline")
    check_pointwise(func, consumer, "reverse_compute_inline")
    check_unstaged(func, consumer, "reverse_compute_inline")
    producer = _sole_producer(func, consumer)
    check_compute(func, producer, "reverse_compute_inline")
    check_pointwise(func, producer, "reverse_compute_inline")
    source, target = target_of(producer), target_of(consumer)
    check_intermediate(func, source, "reverse_compute_inline")
    check_not_staged(func, source, "reverse_compute_inline")
    check_storage_around(func, consumer, producer, "reverse_compute_inline")
    _check_own_element(func, producer, consumer, source)
    value = stores(producer.body)[0].value
    element = write_indices(producer, source)[0]
    own = {
        it: at
        for it, at in zip(write_indices(consumer, target)[0], element, strict=True)
        if isinstance(it, Var)
    }

    def expand(node: Node) -> Node:
        return value if isinstance(node, Load) and node.buffer is source else node

    result = transform(substitute(stores(consumer.body)[0].value, own), expand)
    made = replace(
        producer, name=consumer.name, family=consumer.family, body=Store(target, element, result)
    )
    left = remove(func.with_body(replace_stmt(func.body, producer, made)).body, consumer)
    assert left is not None
    return Rewrite(func.with_body(_without(left, source)))


def _check_growth(func: PrimFunc, producer: Block) -> None:
    reader = outgrown(func, producer)
    if reader is None:
        return
    raise refuse(
        func,
        f"compute_inline: with the expression of block '{producer.name}' that of '{reader.name}' "
        f"has more than {MOST_HEIGHT} levels or {MOST_SIZE} nodes; expected a smaller one.",
        code="inline-growth",
        kind=Kind.LIMIT,
        hints=(f"compute_at('{producer.name}', loop) keeps what a loop needs of it.",),
    )


def _without(stmt: Stmt, tensor: Buffer) -> Stmt:
    """The statement without a tensor that nobody reads any more."""
    return without_prefetches(without_allocation(stmt, tensor), tensor)


def _sole_producer(func: PrimFunc, consumer: Block) -> Block:
    found = [w for b in buffers_read(consumer) for w in writers(func, b)]
    if len(found) != 1:
        names = ", ".join(f"'{b.name}'" for b in found) or "none"
        raise refuse(
            func,
            f"reverse_compute_inline: block '{consumer.name}' needs one producer block, got "
            f"{names}.",
            code="inline-producer",
            kind=Kind.ARGUMENT,
            hints=("compute_inline of a producer takes it into all its consumers.",),
        )
    return found[0]


def _check_own_element(func: PrimFunc, producer: Block, consumer: Block, source: Buffer) -> None:
    stored: tuple[Expr, ...] = write_indices(consumer, target_of(consumer))[0]
    everywhere = [load.indices for load in _loads_of(consumer, source)]
    same = source.extents == target_of(consumer).extents and not producer.recomputed
    sole = len(readers(func, source)) == 1 and all(indices == stored for indices in everywhere)
    if same and sole:
        return
    if sole:
        what = "elements twice" if producer.recomputed else "more elements than its reader takes"
        raise refuse(
            func,
            f"reverse_compute_inline: block '{producer.name}' computes {what}; "
            f"expected each element of '{target_of(consumer).name}' once.",
            code="inline-shape",
            kind=Kind.LIMIT,
            hints=(f"compute_inline('{producer.name}') computes what is read.",),
        )
    raise refuse(
        func,
        f"reverse_compute_inline: block '{consumer.name}' is not the only reader of "
        f"'{source.name}' "
        "at its own element.",
        code="inline-element",
        kind=Kind.ARGUMENT,
        hints=(f"compute_inline('{producer.name}') copies the expression into every reader.",),
    )


def _loads_of(block: Block, buffer: Buffer) -> list[Load]:
    return [load for load in loads(block.body) if load.buffer is buffer]


def draw_compute_inline(sch: ScheduleView, rng: Random) -> Arguments:
    """A block that another one reads."""
    return {"block": choose_pair(sch, rng)[0]}


def draw_reverse_compute_inline(sch: ScheduleView, rng: Random) -> Arguments:
    """A block that does no more than map one tensor, where there is one."""
    plain = {
        block.name
        for block in sch.func.blocks
        if len(set(buffers_read(block))) == 1
        and not any(it.kind is IterKind.REDUCE for it in block.iters)
    }
    users = sorted({user for _, user in computed_and_used(sch) if user in plain})
    return {"block": rng.choice(users) if users else choose_pair(sch, rng)[1]}


COMPUTE_INLINE = Primitive(
    "compute_inline",
    compute_inline,
    {"block": BLOCK},
    gives=nothing,
    draw=draw_compute_inline,
    weight=2,
)
REVERSE_COMPUTE_INLINE = Primitive(
    "reverse_compute_inline",
    reverse_compute_inline,
    {"block": BLOCK},
    gives=nothing,
    draw=draw_reverse_compute_inline,
    weight=10,
)
