"""What loops must be so that a step may change them. Nothing here rewrites.

te is pure and reductions commute, so most steps need little. The theorems are: iterations of a
parallel or vectorized loop are independent (`check_independent`), and a staged tile keeps the
indices that its copies were made for (`check_not_mirrored`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.buffer import Buffer
from ...tir.expr import Expr, Var, index
from ...tir.func import PrimFunc
from ...tir.stmt import Alloc, Block, For, ForKind, IterKind, Role
from ...tir.visit import blocks, enclosing_path, free_vars, loops_below
from ..errors import Kind, ScheduleError, refuse
from ..nest import bound, loops_around, target_of, targets_of, write_indices, writes
from .conflict import SEEN, conflict_notes, witness, written_twice
from .dependence import writes_apart
from .recurrence import check_carries_nothing
from .tensors import allocated_in, is_private


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


def check_not_vectorized(func: PrimFunc, loop: For, primitive: str) -> None:
    """The loop may hold more than one block: neither it nor one around it is a vector's lanes."""
    lanes = [x for x in (*loops_around(func, loop), loop) if x.kind is ForKind.VECTORIZED]
    if not lanes:
        return
    raise refuse(
        func,
        f"{primitive}: loop '{lanes[0].var.name}' is vectorized; expected a loop that may hold "
        "other statements.",
        code="loop-vectorized",
        kind=Kind.LIMIT,
        hints=("choose the loop around it.",),
    )


def check_no_parallel_inside(func: PrimFunc, loop: For, tensor: str, primitive: str) -> None:
    """No parallel loop stands inside the loop: what is staged belongs to one thread."""
    for inner in loops_below(loop.body):
        if inner.kind is ForKind.PARALLEL:
            raise refuse(
                func,
                f"{primitive}: '{tensor}' would be shared by the iterations of parallel loop "
                f"'{inner.var.name}'; expected a loop at or below it.",
                code="stage-parallel",
                kind=Kind.LIMIT,
                hints=(
                    f"stage at '{inner.var.name}' or at a loop inside it."
                    if primitive == "stage"
                    else f"keep the accesses to '{tensor}' below '{inner.var.name}'.",
                ),
            )


def check_independent(func: PrimFunc, loop: For, primitive: str) -> tuple[Buffer, ...]:
    """No two iterations of the loop touch one element, one of them writing.

    A recurrence is asked about what it reads. Else a point of a block runs once, so two iterations
    write one element only where they differ in a reduction variable alone, where the block is
    recomputed, or where two blocks write it, the parts of one sum. A parallel loop may give each
    iteration a tensor of its own where all accesses to it stand below the loop: returns those.
    """
    check_carries_nothing(func, loop, primitive)
    private: list[Buffer] = []
    for block in blocks(loop.body):
        if _reduces_over(block, loop.var) and loop.extent > 1:
            raise _conflict(func, loop, block, primitive)
        for target in targets_of(block):
            if allocated_in(loop, target):
                continue
            mentioned = loop.var in free_vars(_written_element(block))
            if mentioned and (not block.recomputed or _writes_apart(func, loop, target)):
                continue
            if primitive in ("parallel", "bind") and is_private(func, loop, target):
                private.append(target)
            elif loop.extent > 1:
                raise _conflict(func, loop, block, primitive)
    _check_parts_apart(func, loop, primitive)
    return tuple(dict.fromkeys(private))


def _check_parts_apart(func: PrimFunc, loop: For, primitive: str) -> None:
    """Where several blocks write a tensor, no two of them write one element in different iterations
    of the loop. What one block does is asked of it alone.
    """
    parts: dict[Buffer, list[Block]] = {}
    for block in blocks(loop.body):
        for target in () if block.role is Role.INIT or block.recomputed else targets_of(block):
            parts.setdefault(target, []).append(block)
    for target, makers in parts.items():
        together = len(makers) > 1 and not allocated_in(loop, target)
        if not together or writes_apart(func, loop, target):
            continue
        notes = conflict_notes(func, written_twice(target, (loop,)))
        if notes is None:
            continue
        names = ", ".join(f"'{block.name}'" for block in makers)
        raise refuse(
            func,
            f"{primitive}: iterations of loop '{loop.var.name}' write the same element"
            f"{'' if notes else SEEN}: blocks {names} write it in different ones.",
            code="loop-conflict",
            kind=Kind.CONFLICT,
            notes=notes,
            hints=(
                "merge loops whose iterations write the same elements, or leave this one serial.",
            ),
        )


def _writes_apart(func: PrimFunc, loop: For, target: Buffer) -> bool:
    """Whether different iterations of a loop write different elements, by boxes or, exactly, by
    isl.
    """
    return writes_apart(func, loop, target) or (
        conflict_notes(func, written_twice(target, (loop,))) is None
    )


def _conflict(func: PrimFunc, loop: For, block: Block, primitive: str) -> ScheduleError:
    found = witness(func, written_twice(target_of(block), (loop,)))
    notes = []
    if found is not None:
        both = f"iterations {found.first.run.place} and {found.second.run.place}"
        notes.append(found.note(f"{both} both write {found.element}."))
    why = "does not depend on it"
    if _reduces_over(block, loop.var):
        why = "reduces over it"
    elif block.recomputed:
        why = "computes parts that overlap"
    return refuse(
        func,
        f"{primitive}: iterations of loop '{loop.var.name}' write the same element"
        f"{'' if notes else SEEN}: block '{block.name}' {why}.",
        code="loop-conflict",
        kind=Kind.CONFLICT,
        notes=notes,
        hints=(f"choose a loop over an axis of '{block.name}' that is not reduced.",),
    )


def _written_element(block: Block) -> Expr:
    total: Expr = index(0)
    for item in write_indices(block, target_of(block))[0]:
        total = total + bound(block, item)
    return total


def runs_over(block: Block, var: Var, kind: IterKind) -> bool:
    """Whether one of the block's iteration variables of a kind depends on a loop's variable."""
    return any(
        it.kind is kind and var in free_vars(binding)
        for it, binding in zip(block.iters, block.bindings, strict=True)
    )


def _reduces_over(block: Block, var: Var) -> bool:
    return runs_over(block, var, IterKind.REDUCE)


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
