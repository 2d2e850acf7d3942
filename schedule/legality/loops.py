"""What a step may do: checks that either return what they proved or raise a ScheduleError. Nothing
here rewrites.

te is pure and reductions commute, so most steps need little. The theorems are: iterations of a
parallel or vectorized loop are independent (`check_independent`), a moved block finds its operands
complete (`check_complete`), and a staged tile keeps the indices that its copies were made for
(`check_not_mirrored`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...tir.analysis.simplify import provable
from ...tir.buffer import Buffer
from ...tir.expr import Expr, Var, index
from ...tir.func import PrimFunc
from ...tir.stmt import Alloc, Block, For, ForKind, IterKind, Role, Stmt
from ...tir.text.printer import print_expr
from ...tir.visit import blocks, enclosing_path, free_vars, statements, walk
from ..errors import Kind, ScheduleError, refuse
from ..nest import (
    bound,
    buffers_read,
    loops_around,
    loops_below,
    read_indices,
    readers,
    reads,
    target_of,
    targets_of,
    write_indices,
    writers,
    writes,
)
from .conflict import SEEN, clash_notes, witness, written_twice
from .dependence import writes_apart
from .recurrence import check_carries_nothing, check_no_recurrence

UNROLL_LIMIT = 512


def check_serial(func: PrimFunc, loop: For, primitive: str, also: Sequence[ForKind] = ()) -> None:
    """The loop has no kind yet, or one of those that the step keeps."""
    if loop.kind in (ForKind.SERIAL, *also):
        return
    raise refuse(
        func,
        f"{primitive}: loop '{loop.var.name}' is {loop.kind.value}; expected a serial loop.",
        code="loop-kind",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before the step that made it {loop.kind.value}.",),
    )


def check_factors(func: PrimFunc, loop: For, factors: Sequence[int | None]) -> tuple[int, ...]:
    """The factors cover the extent; at most one is None. Returns the extents of the new loops."""
    known = [factor for factor in factors if factor is not None]
    shown = ", ".join(map(str, factors))
    numbers = all(type(factor) is int and factor >= 1 for factor in known)
    if not factors or not numbers or len(factors) - len(known) > 1:
        raise refuse(
            func,
            f"split: factors ({shown}) of loop '{loop.var.name}'; expected positive integers, "
            "at most one None.",
            code="split-factors",
            kind=Kind.ARGUMENT,
        )
    product = math.prod(known)
    if len(known) < len(factors):
        missing = -(-loop.extent // product)
        return tuple(missing if factor is None else factor for factor in factors)
    if product < loop.extent:
        formula = " * ".join(map(str, known))
        raise refuse(
            func,
            f"split: factors ({shown}) do not cover loop '{loop.var.name}': "
            f"{formula} = {product}, extent {loop.extent}.",
            code="split-cover",
            kind=Kind.ARGUMENT,
            hints=(f"leave one factor None to have it inferred: factors=(None, {known[-1]}).",),
        )
    return tuple(known)


def check_points(func: PrimFunc, loop: For, points: Sequence[int]) -> None:
    """The points rise and lie inside of the loop, so that no part is empty."""
    numbers = all(type(point) is int for point in points)
    if points and numbers and all(a < b for a, b in itertools.pairwise((0, *points, loop.extent))):
        return
    raise refuse(
        func,
        f"loop_partition: points ({', '.join(map(str, points))}) of loop '{loop.var.name}'; "
        f"expected rising integers between 0 and its extent, {loop.extent}.",
        code="partition-points",
        kind=Kind.ARGUMENT,
        hints=(f"loop_partition({loop.var.name}, (p,)) makes loops of p and of the rest.",),
    )


def check_directly_nested(func: PrimFunc, loops: Sequence[For]) -> None:
    """Each loop is the whole body of the one before it."""
    if not loops:
        raise refuse(
            func,
            "fuse: no loop is named; expected one or more.",
            code="fuse-none",
            kind=Kind.ARGUMENT,
            hints=("i_j = sch.fuse(i, j)",),
        )
    for outer, inner in itertools.pairwise(loops):
        if outer.body is not inner:
            raise refuse(
                func,
                f"fuse: loop '{inner.var.name}' is not directly inside loop '{outer.var.name}'.",
                code="fuse-nested",
                kind=Kind.LIMIT,
                hints=("name the loops from the outermost inwards; reorder brings them together.",),
            )


def check_chain(func: PrimFunc, loops: Sequence[For]) -> list[For]:
    """The loops lie on one chain of loops with nothing beside them. Returns the chain, outermost
    first.
    """
    names = [loop.var.name for loop in loops]
    if len(set(names)) < len(names) and len({loop.var for loop in loops}) < len(loops):
        raise refuse(
            func,
            f"reorder: a loop is named twice: {', '.join(names)}.",
            code="reorder-twice",
            kind=Kind.ARGUMENT,
        )
    depth = {loop.var: len(enclosing_path(func.body, loop)) for loop in loops}
    outer = min(loops, key=lambda loop: depth[loop.var])
    missing = {loop.var for loop in loops}
    chain: list[For] = []
    node = outer
    while True:
        chain.append(node)
        missing.discard(node.var)
        if not missing:
            return chain
        if not isinstance(node.body, For):
            break
        node = node.body
    stray = next(loop for loop in loops if loop.var in missing)
    raise refuse(
        func,
        f"reorder: loop '{stray.var.name}' is not on one chain with loop '{outer.var.name}': "
        f"loop '{node.var.name}' holds other statements.",
        code="reorder-chain",
        kind=Kind.LIMIT,
        hints=(
            "reorder before the step that put another statement there (stage, compute_at, "
            "prefetch).",
        ),
    )


def check_kinds_in_order(func: PrimFunc, chain: Sequence[For]) -> None:
    """In a chain of loops, outermost first, no loop of several iterations stands outside of a
    parallel one, and none inside of a vectorized one.
    """
    for outer, inner in itertools.combinations(chain, 2):
        outermost = inner.kind is ForKind.PARALLEL or (
            inner.is_of_blocks and not outer.is_of_blocks
        )
        parallel = outermost and outer.extent != 1
        if parallel or outer.kind is ForKind.VECTORIZED:
            kind, place = (inner.kind.value, inner) if parallel else ("vectorized", outer)
            raise refuse(
                func,
                f"reorder: loop '{outer.var.name}' would stand outside of loop '{inner.var.name}'; "
                f"expected {kind} loop '{place.var.name}' to stay "
                f"{'outermost' if parallel else 'innermost'}.",
                code="reorder-kind",
                kind=Kind.LIMIT,
                hints=(f"reorder before the step that made '{place.var.name}' {kind}.",),
            )


def check_innermost(func: PrimFunc, loop: For) -> None:
    """No loop stands inside the loop."""
    inner = loops_below(loop.body)
    if inner:
        raise refuse(
            func,
            f"vectorize: loop '{loop.var.name}' holds loop '{inner[0].var.name}'; expected an "
            "innermost loop.",
            code="vectorize-innermost",
            kind=Kind.LIMIT,
            hints=(
                f"reorder '{loop.var.name}' inside '{inner[-1].var.name}', or vectorize that one.",
            ),
        )


def check_unrollable(func: PrimFunc, loop: For) -> None:
    """The copies of the body stay few."""
    if loop.extent > UNROLL_LIMIT:
        raise refuse(
            func,
            f"unroll: loop '{loop.var.name}' has {loop.extent} iterations; expected at most "
            f"{UNROLL_LIMIT}.",
            code="unroll-limit",
            kind=Kind.LIMIT,
            hints=(
                f"split it first and unroll the inner part: split({loop.var.name}, (None, 8)).",
            ),
        )


def check_independent(func: PrimFunc, loop: For, primitive: str) -> tuple[Buffer, ...]:
    """No two iterations of the loop touch one element, one of them writing.

    A recurrence is asked about what it reads. Else a point of a block runs once, so two iterations
    write one element only where they differ in a reduction variable alone, or where the block is
    recomputed. A parallel loop may give each
    iteration a tensor of its own where all accesses to it stand below the loop: returns those.
    """
    check_carries_nothing(func, loop, primitive)
    private: list[Buffer] = []
    for block in blocks(loop.body):
        if _reduces_over(block, loop.var) and loop.extent > 1:
            raise _clash(func, loop, block, primitive)
        for target in targets_of(block):
            if allocated_in(loop, target):
                continue
            mentioned = loop.var in free_vars(_written_element(block))
            if mentioned and (not block.recomputed or _writes_apart(func, loop, target)):
                continue
            if primitive in ("parallel", "bind") and is_private(func, loop, target):
                private.append(target)
            elif loop.extent > 1:
                raise _clash(func, loop, block, primitive)
    return tuple(dict.fromkeys(private))


def _writes_apart(func: PrimFunc, loop: For, target: Buffer) -> bool:
    """Whether different iterations of a loop write different elements, by boxes or, exactly, by
    isl.
    """
    return writes_apart(func, loop, target) or (
        clash_notes(func, written_twice(target, (loop,))) is None
    )


def allocated_in(loop: Stmt, buffer: Buffer) -> bool:
    """Whether a buffer's storage stands below a loop, anew in each iteration, or a statement."""
    return any(isinstance(node, Alloc) and node.buffer is buffer for node in statements(loop))


def is_private(func: PrimFunc, loop: For, tensor: Buffer) -> bool:
    """Whether all accesses to an intermediate tensor stand below the loop: an iteration reads only
    what it has written itself, since only the accumulation of a reduction carries over.
    """
    inside = blocks(loop.body)
    everyone = (*writers(func, tensor), *readers(func, tensor))
    return tensor in func.allocations and all(any(b is x for x in inside) for b in everyone)


def runs_over(block: Block, var: Var, kind: IterKind) -> bool:
    """Whether one of the block's iteration variables of a kind depends on a loop's variable."""
    return any(
        it.kind is kind and var in free_vars(binding)
        for it, binding in zip(block.iters, block.bindings, strict=True)
    )


def _reduces_over(block: Block, var: Var) -> bool:
    return runs_over(block, var, IterKind.REDUCE)


def _written_element(block: Block) -> Expr:
    total: Expr = index(0)
    for item in write_indices(block, target_of(block))[0]:
        total = total + bound(block, item)
    return total


def _clash(func: PrimFunc, loop: For, block: Block, primitive: str) -> ScheduleError:
    found = witness(func, written_twice(target_of(block), (loop,)))
    notes = []
    if found is not None:
        both = f"iterations {found.first.run.place} and {found.second.run.place}"
        notes.append(f"{both} both write {found.element}.")
    why = "does not depend on it"
    if _reduces_over(block, loop.var):
        why = "reduces over it"
    elif block.recomputed:
        why = "computes parts that overlap"
    return refuse(
        func,
        f"{primitive}: iterations of loop '{loop.var.name}' write the same element"
        f"{'' if notes else SEEN}: block '{block.name}' {why}.",
        code="loop-clash",
        kind=Kind.CONFLICT,
        notes=notes,
        hints=(f"choose a loop over an axis of '{block.name}' that is not reduced.",),
    )


def check_not_mirrored(func: PrimFunc, loop: For, primitive: str) -> None:
    """The loop has not been copied by a stage: the copies repeat the loops that stood there when it
    was called.
    """
    for node in enclosing_path(func.body, loop):
        if not isinstance(node, Alloc) or node.buffer.origin is None:
            continue
        for block in blocks(loop):
            if block.role is not Role.COMPUTE or not writes(block, node.buffer):
                continue
            spatial = (
                binding
                for it, binding in zip(block.iters, block.bindings, strict=True)
                if it.kind is IterKind.SPATIAL
            )
            if any(loop.var in free_vars(binding) for binding in spatial):
                raise refuse(
                    func,
                    f"{primitive}: loop '{loop.var.name}' is repeated by the copies of staged "
                    f"'{node.buffer.name}'.",
                    code="stage-mirrored",
                    kind=Kind.LIMIT,
                    hints=(
                        f"call {primitive} before stage: the copies take over the loops as "
                        "they are then.",
                    ),
                )


def check_holds(func: PrimFunc, loop: For, block: Block, primitive: str) -> None:
    """The block stands inside the loop."""
    if not any(node is block for node in statements(loop)):
        around = ", ".join(f"'{x.var.name}'" for x in loops_around(func, block)) or "none"
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' is not inside loop '{loop.var.name}'.",
            code="block-outside",
            kind=Kind.ARGUMENT,
            hints=(f"its loops are {around}.",),
        )


def check_fixed_size(func: PrimFunc, buffer: Buffer, primitive: str) -> None:
    """No call decides how large the tensor is: its elements get other places."""
    for dim in buffer.dims:
        if dim is not None:
            raise refuse(
                func,
                f"{primitive}: a call decides the size '{dim.name}' of '{buffer.name}'; expected a "
                "tensor whose size is a number.",
                code="layout-dim",
                kind=Kind.LIMIT,
                hints=(f"{primitive} a tensor without '{dim.name}', such as the weights.",),
            )


def check_accesses(func: PrimFunc, block: Block, buffer: Buffer, primitive: str) -> None:
    """The block reads or writes the buffer."""
    if not reads(block, buffer) and not writes(block, buffer):
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' does not access '{buffer.name}'.",
            code="block-access",
            kind=Kind.ARGUMENT,
            hints=(f"it accesses {', '.join(sorted(repr(n) for n in accessed_names(block)))}.",),
        )


def check_reads(func: PrimFunc, block: Block, buffer: Buffer, primitive: str) -> None:
    """The block reads the buffer, as an operand."""
    if not reads(block, buffer) or writes(block, buffer):
        names = ", ".join(repr(b.name) for b in buffers_read(block)) or "nothing"
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' does not read '{buffer.name}'; it reads {names}.",
            code="block-reads",
            kind=Kind.ARGUMENT,
        )


def check_one_access(func: PrimFunc, block: Block, buffer: Buffer) -> tuple[Expr, ...]:
    """The block reads the buffer at one place, inside of it at each point of its iteration
    variables. Returns the indices.
    """
    found = list(dict.fromkeys(read_indices(block, buffer)))
    ranges = {it.var: (0, it.extent - 1) for it in block.iters}
    if len(found) == 1 and all(
        provable(item >= 0, ranges) and provable(item < extent, ranges)
        for item, extent in zip(found[0], buffer.shape, strict=True)
    ):
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


def accessed_names(block: Block) -> set[str]:
    """The names of the buffers that a block touches."""
    return {node.name for node in walk(block.body) if isinstance(node, Buffer)}


def reduction_loops(func: PrimFunc, block: Block, outermost: For | None = None) -> tuple[For, ...]:
    """The loops around a block that one of its reduction variables runs over; only those at or
    above `outermost`.
    """
    found = []
    for loop in loops_around(func, block):
        if _reduces_over(block, loop.var):
            found.append(loop)
        if loop is outermost:
            break
    return tuple(found)


def check_complete(func: PrimFunc, producer: Block, loop: For, primitive: str) -> None:
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
            f"after iteration {found.first.run.place}, iteration {found.second.run.place} still "
            f"updates {found.element}.",
        ),
        hints=('at="last" runs the consumer in the last iteration of the reduction loops above.',),
    )


def check_single(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes one tensor."""
    targets = targets_of(block)
    if len(targets) == 1:
        return
    names = ", ".join(f"'{(target.origin or target).name}'" for target in targets)
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' computes {names} together; expected a block of one "
        "tensor.",
        code="several-tensors",
        kind=Kind.LIMIT,
        hints=("stage, compute_at and reverse_compute_at take blocks of several tensors.",),
    )


def check_pointwise(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes one element by one expression: no reduction, one store at distinct
    iteration variables.
    """
    check_no_recurrence(func, block, primitive)
    check_single(func, block, primitive)
    target = target_of(block)
    stored = write_indices(block, target)
    plain = len(stored) == 1 and all(isinstance(i, Var) for i in stored[0])
    if plain and len(set(stored[0])) == len(stored[0]) and not reads(block, target):
        return
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' is not one expression per element (it reduces, or "
        "stores to other indices).",
        code="not-pointwise",
        kind=Kind.ARGUMENT,
        hints=("compute_at keeps the block and moves it below a loop of its consumer.",),
    )


def check_intermediate(func: PrimFunc, buffer: Buffer, primitive: str) -> None:
    """The buffer is neither a parameter nor staged."""
    if buffer in func.allocations and buffer.origin is None:
        return
    raise refuse(
        func,
        f"{primitive}: '{buffer.name}' is a parameter of the function or a staged copy; "
        "expected an intermediate tensor.",
        code="not-intermediate",
        kind=Kind.ARGUMENT,
        hints=("cache_read or cache_write makes an intermediate copy whose form is free.",),
    )
