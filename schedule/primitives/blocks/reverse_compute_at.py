"""Primitive reverse_compute_at: run a block below a loop of its producer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from ....tir.analysis.regions import Span, region
from ....tir.analysis.simplify import provable
from ....tir.buffer import Buffer
from ....tir.conditions import all_of, conjuncts
from ....tir.expr import EQ, TRUE, Expr, Var, compare, index
from ....tir.func import PrimFunc
from ....tir.initialise import spatial_loops
from ....tir.stmt import SHARED_OUT, Alloc, Block, For, IterKind, Role, Stmt
from ....tir.visit import (
    blocks,
    enclosing_path,
    free_vars,
    loads,
    loops_below,
    replace_buffers,
    replace_stmt,
    stores,
    substitute,
)
from ...drawing import Arguments, ScheduleView, choose_loop, choose_pair
from ...errors import Kind, ScheduleError, refuse
from ...legality import completeness, recurrence
from ...legality.blocks import check_compute, check_init_inside, check_unstaged, check_whole
from ...legality.conflict import witness, written_twice
from ...legality.loops import check_independent, check_not_vectorized, reduction_loops, runs_over
from ...legality.tensors import check_storage_around
from ...nest import (
    Rewrite,
    bound,
    copies_of,
    loop_of,
    loops_around,
    ranges_of,
    read_indices,
    readers,
    root_statement,
    target_of,
    targets_of,
    writes,
)
from ..parameters import BLOCK, LOOP, PLAIN
from ..primitive import Primitive, all_loops
from .moved_blocks import check_one_form, forward_loops, move_block, put_below, without_block

At = Literal["each", "last"]


def reverse_compute_at(func: PrimFunc, block: str, loop: Var, at: At = "each") -> Rewrite:
    """Run a consumer right after the part of its producer that one iteration of `loop` completes.

    for i: P; for y: C(P)   ->   for i: { P; for y in what P wrote: C(P) }

    at="each": after every iteration; the producer's reductions must end inside `loop`.
    at="last": only in the last iteration of the reduction loops at and above `loop`: the epilogue
    of a blocked reduction. Where the producer's tile is staged there, and holds its last update,
    the consumer reads it, and a copy out that nobody else needs goes. Requires: iterations complete
    separate parts; the consumer reduces over no loop around that is parallel, or that its kept axes
    run over; its other operands are complete before. Raises: ScheduleError.
    """
    _check_at(at)
    node = loop_of(func, loop)
    consumer = func.block(block)
    check_compute(func, consumer, "reverse_compute_at")
    check_init_inside(func, consumer, "reverse_compute_at")
    check_unstaged(func, consumer, "reverse_compute_at")
    _check_once(func, consumer, "reverse_compute_at")
    check_not_vectorized(func, node, "reverse_compute_at")
    check_storage_around(func, consumer, node, "reverse_compute_at")
    producer = _producer_below(func, consumer, node)
    check_whole(func, producer, "reverse_compute_at")
    check_one_form(func, producer, "reverse_compute_at")
    tensors = _tensors(producer)
    read = {load.buffer for load in loads(consumer.body)}
    tensor = next(one for one in tensors if one in read)
    if at == "each":
        _check_reductions_end_below(func, producer, node, "reverse_compute_at")
    root = root_statement(func, node)
    completeness.check_operands(func, consumer, root, "reverse_compute_at", given=tensors)
    open_loops = reduction_loops(func, producer, node)
    guard = all_of(*(compare(EQ, x.var, index(x.extent - 1)) for x in open_loops))
    around = (*loops_around(func, node), node)
    still = ranges_of(around)
    spatial = spatial_loops(producer, loops_below(node.body))
    written = [tuple(bound(producer, i) for i in stores(producer.body)[0].indices)]
    conditions = conjuncts(producer.predicate)
    box = region(written, ranges_of(spatial), still, tensor.shape, conditions)
    outer = [x for x in around if x not in open_loops]
    spans = _consumer_spans(func, consumer, tensors, box)
    moved, variables = move_block(consumer, spans, still, recomputed=False)
    _check_kept_or_reduced(func, blocks(moved)[0], around, "reverse_compute_at")
    moved = _guarded(moved, guard)
    changed = put_below(without_block(func, consumer), loop, moved, first=False)
    completeness.check_parts(func, changed, consumer, tensor, box, outer)
    recurrence.check_order(func, changed, (consumer,), "reverse_compute_at")
    for shared in (x for x in around if x.kind in SHARED_OUT):
        check_independent(changed, loop_of(changed, shared.var), "reverse_compute_at")
    for made in tensors if _runs_in_last(func, producer, open_loops) else ():
        changed = _closer(changed, block, producer.name, made)
    return Rewrite(changed, variables, forward=forward_loops(func, consumer, variables))


def _check_at(at: str) -> None:
    """The consumer runs after each iteration, or after the last one."""
    if at not in ("each", "last"):
        raise ScheduleError(
            f"reverse_compute_at: at is {at!r}; expected 'each' or 'last'.",
            code="reverse-compute-at",
        )


def _tensors(producer: Block) -> tuple[Buffer, ...]:
    return tuple(target.origin or target for target in targets_of(producer))


def _producer_below(func: PrimFunc, consumer: Block, node: For) -> Block:
    read = {load.buffer for load in loads(consumer.body)}
    found = [b for b in blocks(node) if b.role is Role.COMPUTE and read & {*_tensors(b)}]
    if consumer in blocks(node) or len(found) != 1:
        names = ", ".join(f"'{b.name}'" for b in found) or "none"
        raise refuse(
            func,
            f"reverse_compute_at: block '{consumer.name}' needs one producer below loop "
            f"'{node.var.name}'; "
            f"expected exactly one, got {names}.",
            code="producer-below",
            kind=Kind.ARGUMENT,
            hints=("choose a loop around the block that computes what it reads.",),
        )
    return found[0]


def _consumer_spans(
    func: PrimFunc, consumer: Block, tensors: tuple[Buffer, ...], box: tuple[Span, ...]
) -> dict[Expr, Span]:
    spans: dict[Expr, Span] = {}
    along: dict[int, Expr] = {}  # the index along each dimension, the same in every access
    # a reduction may be taken in parts: each iteration adds its own
    extents = {it.var: it.extent for it in consumer.iters}
    read = [(tensor, access) for tensor in tensors for access in read_indices(consumer, tensor)]
    for tensor, access in read:
        for d, (item, span, size) in enumerate(zip(access, box, tensor.shape, strict=True)):
            whole = span.extent == size
            axis = extents.get(item, size + 1) if isinstance(item, Var) else size + 1
            one = along.setdefault(d, item) == item and spans.get(item, span) == span
            if not whole and (axis > size or not one):
                raise refuse(
                    func,
                    f"reverse_compute_at: block '{consumer.name}' does not read "
                    f"'{tensor.name}' element by element; "
                    "expected each index to be one spatial axis of at most its extent.",
                    code="not-elementwise",
                    kind=Kind.LIMIT,
                    hints=("compute_at moves the producer below a loop of this block instead.",),
                )
            if isinstance(item, Var) and not whole:
                spans[item] = span
    return spans


def _guarded(nest: Stmt, guard: Expr) -> Stmt:
    if guard == TRUE:
        return nest
    block = blocks(nest)[0]
    return replace_stmt(nest, block, replace(block, predicate=all_of(guard, block.predicate)))


def _runs_in_last(func: PrimFunc, producer: Block, open_loops: tuple[For, ...]) -> bool:
    """Whether the producer runs in the last iteration of the reduction loops that are open: a split
    may leave none of its points there.
    """
    inner = (x for x in reduction_loops(func, producer) if x not in open_loops)
    values: dict[Var, Expr] = {x.var: index(0) for x in inner}
    values |= {x.var: index(x.extent - 1) for x in open_loops}
    ranges = ranges_of(loops_around(func, producer))
    return all(
        provable(substitute(condition, values), ranges)
        for condition in conjuncts(producer.predicate)
        if free_vars(condition) & values.keys()
    )


def _closer(func: PrimFunc, name: str, producer: str, tensor: Buffer) -> PrimFunc:
    """Let the moved block read the staged tile that is live where it stands; drop the copy out that
    nobody needs any more.
    """
    block = func.block(name)
    allocated = [n.buffer for n in enclosing_path(func.body, block) if isinstance(n, Alloc)]
    staged = next((b for b in reversed(allocated) if b.origin is tensor), None)
    if staged is None:
        return func
    changed = func.with_body(
        replace_stmt(func.body, block, replace_buffers(block, {tensor: staged}))
    )
    copies = copies_of(changed, staged)
    others = [b for b in readers(changed, tensor) if b not in copies]
    outs = [b for b in copies if writes(b, tensor)]
    if others or tensor in func.outputs or not outs:
        return changed
    path = enclosing_path(changed.body, outs[0])
    outside = [node for node in path if isinstance(node, For)]
    reduced = reduction_loops(changed, changed.block(producer))
    open_loops = [loop for loop in outside if any(loop is x for x in reduced)]
    if not open_loops:
        return without_block(changed, outs[0])
    steps: Expr = index(0)
    for loop in open_loops:
        steps = steps + loop.var
    limit = steps < sum(loop.extent - 1 for loop in open_loops)
    kept = replace(outs[0], predicate=all_of(limit, outs[0].predicate))
    return changed.with_body(replace_stmt(changed.body, outs[0], kept))


def _check_reductions_end_below(func: PrimFunc, producer: Block, loop: For, primitive: str) -> None:
    """The elements that `producer` writes below `loop` are complete when an iteration of the loop
    ends.
    """
    unfinished = [x for x in reduction_loops(func, producer, loop) if x.extent > 1]
    if not unfinished:
        return
    found = witness(func, written_twice(target_of(producer), unfinished))
    raise refuse(
        func,
        f"{primitive}: block '{producer.name}' is not complete in one iteration of loop "
        f"'{loop.var.name}': "
        f"it reduces over loop '{unfinished[0].var.name}' outside.",
        code="reduction-open",
        kind=Kind.CONFLICT,
        notes=()
        if found is None
        else (
            found.note(
                f"after iteration {found.first.run.place}, iteration {found.second.run.place} "
                f"still updates {found.element}."
            ),
        ),
        hints=('at="last" runs the consumer in the last iteration of the reduction loops above.',),
    )


def _check_kept_or_reduced(
    func: PrimFunc, block: Block, loops: Sequence[For], primitive: str
) -> None:
    """None of the loops would be reduced over and kept by the block at once: its elements begin
    where the reduced loops do.
    """
    for loop in loops:
        if runs_over(block, loop.var, IterKind.REDUCE) and runs_over(
            block, loop.var, IterKind.SPATIAL
        ):
            raise refuse(
                func,
                f"{primitive}: block '{block.name}' would reduce over loop '{loop.var.name}', "
                "which a kept axis runs over as well; expected loops over kept axes, or over "
                "reduced ones.",
                code="loop-mixed",
                kind=Kind.LIMIT,
                hints=(f"call {primitive} before the fuse that made '{loop.var.name}'.",),
            )


def _check_once(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes each of its elements once."""
    if not block.recomputed:
        return
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' computes elements more than once since compute_at "
        "moved it.",
        code="block-recomputed",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before that compute_at.",),
    )


def draw_reverse_compute_at(sch: ScheduleView, rng: Random) -> Arguments:
    """A block and a loop around one that makes what it reads."""
    block, user = choose_pair(sch, rng)
    loop = choose_loop(sch, rng, block)
    return {"block": user, "loop": loop, "at": rng.choice(("each", "last"))}


REVERSE_COMPUTE_AT = Primitive(
    "reverse_compute_at",
    reverse_compute_at,
    {"block": BLOCK, "loop": LOOP, "at": PLAIN},
    gives=all_loops,
    draw=draw_reverse_compute_at,
    weight=4,
)
