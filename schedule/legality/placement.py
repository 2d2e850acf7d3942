"""What a block, a tensor or a loop must be so that a step may move it: checks, as in `legality`.

The theorems: storage that lives below a loop is not used outside of it (`check_unstaged`,
`check_not_staged`), and only loops at the root are shared out (`check_root`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.buffer import Buffer
from ...tir.func import PrimFunc
from ...tir.initialise import outer_condition
from ...tir.stmt import Alloc, Block, For, ForKind, IterKind, Role
from ...tir.text.printer import print_expr
from ...tir.visit import accesses, blocks, enclosing_path, statements
from ..errors import Kind, refuse
from ..nest import (
    buffers_read,
    is_reduction,
    loops_around,
    loops_below,
    readers,
    target_of,
    targets_of,
    writers,
)
from .conflict import flow_notes, witness, written_twice
from .loops import allocated_in, reduction_loops, runs_over
from .recurrence import carried


def check_compute(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes a whole tensor: it is neither a copy nor an initialisation that a step
    made, nor a part of a block.
    """
    check_role(func, block, primitive)
    check_whole(func, block, primitive)


def check_role(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes a tensor, or a part of one."""
    if block.role is Role.COMPUTE:
        return
    verb = "copies" if block.role is Role.COPY else "initialises"
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' {verb} '{block.family}'; expected a block that "
        "computes a tensor.",
        code="block-role",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before the step that made it.",),
    )


def check_whole(func: PrimFunc, block: Block, primitive: str) -> None:
    """No other block computes a part of the same tensor."""
    family = [b.name for b in func.blocks if b.role is block.role and b.family == block.family]
    if len(family) > 1:
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' computes a part of its tensor only; its parts are "
            f"{', '.join(map(repr, family))}.",
            code="block-part",
            kind=Kind.LIMIT,
            hints=(
                "decompose_padding and loop_partition come after the steps that take a whole "
                "block.",
            ),
        )


def check_part_alone(func: PrimFunc, block: Block, loop: For, primitive: str) -> None:
    """No other part of the block's tensor is computed below the loop, or goes on with the block's
    accumulators.
    """
    parts = [b for b in func.blocks if b.role is block.role and b.family == block.family]
    together = any(part is not block and part in blocks(loop) for part in parts)
    if together or (is_reduction(block) and any(part.init is None for part in parts)):
        check_whole(func, block, primitive)


def check_init_inside(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block holds its initialisation: where it goes, the initialisation goes along."""
    if block.init is not None or not is_reduction(block):
        return
    raise refuse(
        func,
        f"{primitive}: the initialisation of block '{block.name}' has been placed already.",
        code="init-placed",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before decompose_reduction.",),
    )


def check_begins_once(func: PrimFunc, block: Block, loop: For) -> None:
    """No loop outside of the one at which a reduction is initialised is reduced over."""
    around = loops_around(func, loop)
    outside = [x for x in reduction_loops(func, block) if x in around and x.extent > 1]
    if not outside:
        return
    found = witness(func, written_twice(target_of(block), outside))
    raise refuse(
        func,
        f"decompose_reduction: loop '{outside[0].var.name}' outside of loop '{loop.var.name}' "
        "is reduced over; "
        "the accumulators would start anew in each of its iterations.",
        code="init-inside",
        kind=Kind.CONFLICT,
        notes=()
        if found is None
        else (
            f"what iteration {found.first.run.place} adds to {found.element} would be lost before "
            f"iteration {found.second.run.place}.",
        ),
        hints=(f"place it before loop '{outside[0].var.name}'.",),
    )


def check_unstaged(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block uses no staged buffer: one lives below the loop that it was staged at."""
    for access in accesses(block):
        if access.buffer.origin is not None:
            raise refuse(
                func,
                f"{primitive}: block '{block.name}' uses staged '{access.buffer.name}', which "
                "exists below one loop only.",
                code="block-staged",
                kind=Kind.LIMIT,
                hints=(f"call {primitive} before stage.",),
            )


def check_not_staged(func: PrimFunc, tensor: Buffer, primitive: str) -> None:
    """No staged buffer keeps elements of the tensor."""
    for staged in func.allocations:
        if staged.origin is tensor:
            raise refuse(
                func,
                f"{primitive}: '{tensor.name}' is staged as '{staged.name}'.",
                code="tensor-staged",
                kind=Kind.LIMIT,
                hints=(f"call {primitive} before stage.",),
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


def check_root(func: PrimFunc, loop: For) -> None:
    """The loop stands at the root: loops around it, if any, run once, and hold no storage of a
    thread.
    """
    for outer in loops_around(func, loop):
        if outer.extent != 1:
            raise refuse(
                func,
                f"parallel: loop '{loop.var.name}' stands inside loop '{outer.var.name}'; expected "
                "an outermost loop: only those are shared out among threads.",
                code="parallel-inside",
                kind=Kind.LIMIT,
                hints=(f"reorder '{loop.var.name}' outside of '{outer.var.name}' first.",),
            )
    for node in enclosing_path(func.body, loop):
        if isinstance(node, Alloc) and node.buffer.scope != "global":
            raise refuse(
                func,
                f"parallel: the iterations of loop '{loop.var.name}' share "
                f"'{node.buffer.name}', which belongs to one thread.",
                code="parallel-staged",
                kind=Kind.LIMIT,
                hints=("stage, or set_scope, below the parallel loop.",),
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


def check_allocated_outside(func: PrimFunc, loop: For, tensor: Buffer, primitive: str) -> None:
    """The tensor's storage does not begin anew in each iteration of the loop."""
    if not allocated_in(loop, tensor):
        return
    raise refuse(
        func,
        f"{primitive}: '{tensor.name}' has storage of its own in each iteration of loop "
        f"'{loop.var.name}' already.",
        code="stage-inside",
        kind=Kind.LIMIT,
        hints=(
            "stage it at a loop further in."
            if primitive == "stage"
            else f"call {primitive} before the step that made it (set_scope, parallel).",
        ),
    )


def check_nothing_allocated(func: PrimFunc, loop: For, primitive: str) -> None:
    """No storage begins anew in each iteration of the loop, so its body may stand in two places."""
    inner = next((node for node in statements(loop.body) if isinstance(node, Alloc)), None)
    if inner is None:
        return
    raise refuse(
        func,
        f"{primitive}: '{inner.buffer.name}' has storage of its own below loop "
        f"'{loop.var.name}'; expected a loop that holds none.",
        code="partition-storage",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before the step that made it (stage, set_scope, parallel).",),
    )


def check_one_loop(func: PrimFunc, tensor: Buffer, primitive: str) -> For:
    """A loop holds all accesses to the tensor, and no block accumulates into it over that loop or
    one outside of it, nor reads what it computes in another iteration of one. Returns the
    innermost.
    """
    made = writers(func, tensor)
    users = (*made, *readers(func, tensor))
    free: list[For] = []
    for loop in loops_around(func, users[0]):
        if not all(b in blocks(loop) for b in users):
            break
        notes = _goes_on(func, tensor, loop, primitive)
        if notes is not None and free:
            break
        if notes is not None:
            raise refuse(
                func,
                f"{primitive}: iterations of loop '{loop.var.name}', the outermost that holds all "
                f"accesses to '{tensor.name}', go on with the same elements.",
                code="scope-carries",
                kind=Kind.CONFLICT,
                notes=notes,
                hints=(f"reorder '{loop.var.name}' inside of a loop over the elements.",),
            )
        if loop.kind is not ForKind.VECTORIZED:
            free.append(loop)
    if free:
        return free[-1]
    names = ", ".join(f"'{block.name}'" for block in users)
    raise refuse(
        func,
        f"{primitive}: no loop holds all accesses to '{tensor.name}' and gives it new elements in "
        f"each iteration; blocks {names} touch it.",
        code="scope-loop",
        kind=Kind.ARGUMENT,
        hints=("compute_at moves the block that writes it below a loop of its reader.",),
    )


def _goes_on(func: PrimFunc, tensor: Buffer, loop: For, primitive: str) -> tuple[str, ...] | None:
    """None where each iteration of the loop makes new elements of the tensor; else a witness, if
    one is found.
    """
    clash = carried(func, loop, primitive, tensor)
    if clash is None:
        reduced = any(runs_over(b, loop.var, IterKind.REDUCE) for b in writers(func, tensor))
        if not reduced or loop.extent < 2:
            return None
        clash = witness(func, written_twice(tensor, (loop,)))
    return () if clash is None else (str(clash),)


def check_storage_around(
    func: PrimFunc, block: Block, place: For | Block, primitive: str, *, read: bool = False
) -> None:
    """What the block computes, or what it reads, lives around the place that it moves to."""
    moved = buffers_read(block) if read else targets_of(block)
    holders = [n for n in statements(func.body) if isinstance(n, Alloc) and n.buffer in moved]
    for holder in holders:
        if any(node is place for node in statements(holder)):
            continue
        name = f"loop '{place.var.name}'" if isinstance(place, For) else f"block '{place.name}'"
        raise refuse(
            func,
            f"{primitive}: '{holder.buffer.name}' has storage of its own in each iteration of a "
            f"loop that does not hold {name}.",
            code="storage-elsewhere",
            kind=Kind.CONFLICT,
            notes=flow_notes(func, holder.buffer, (block,), readers(func, holder.buffer)),
            hints=(f"call {primitive} before the step that made it (set_scope, parallel).",),
        )


def check_unmixed(func: PrimFunc, loops: Sequence[For]) -> None:
    """No block reduces over one of the loops to fuse and keeps another: a loop's first and last
    iterations stay those of the reduction.
    """
    for block in blocks(loops[0]):
        reduced = [x for x in loops if runs_over(block, x.var, IterKind.REDUCE)]
        kept = [x for x in loops if runs_over(block, x.var, IterKind.SPATIAL)]
        if reduced and kept:
            raise refuse(
                func,
                f"fuse: block '{block.name}' reduces over loop '{reduced[0].var.name}' and not "
                f"over loop '{kept[0].var.name}'; expected loops over kept axes, or over reduced "
                "ones.",
                code="fuse-mixed",
                kind=Kind.LIMIT,
                hints=("fuse the kept loops and the reduced ones apart.",),
            )


def check_kept_or_reduced(
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


def check_once(func: PrimFunc, block: Block, primitive: str) -> None:
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


def check_predicate(
    func: PrimFunc, block: Block, inside: Sequence[For], primitive: str, where: str
) -> None:
    """Where the block runs can be said without those of the loops `inside` that its kept axes do
    not run over: `initialise.mirrored` needs it.
    """
    if outer_condition(block, inside) is None:
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' runs where {print_expr(block.predicate)}, which "
            f"cannot be told apart outside of its loops below loop '{where}'.",
            code="predicate-open",
            kind=Kind.LIMIT,
            hints=("choose a loop further in.",),
        )
