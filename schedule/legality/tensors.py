"""What a tensor must be so that a step may change it, and where its storage is. Nothing here
rewrites.

The theorem: storage that lives below a loop is not used outside of it (`check_not_staged`,
`check_storage_around`).
"""

from __future__ import annotations

from ...tir.buffer import Buffer
from ...tir.func import PrimFunc
from ...tir.stmt import Alloc, Block, For, Stmt
from ...tir.visit import blocks, statements
from ..errors import Kind, refuse
from ..nest import buffers_read, readers, targets_of, writers
from .conflict import flow_notes


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
