"""Primitive swizzle: rows of shared memory whose pieces lie in another order in each."""

from __future__ import annotations

from dataclasses import replace

from ....tir.buffer import Buffer
from ....tir.func import PrimFunc
from ....tir.visit import replace_buffers
from ...drawing import draw_intermediate
from ...errors import Kind, refuse
from ...nest import Rewrite
from ..parameters import TENSOR
from ..primitive import Primitive, nothing


def swizzle(func: PrimFunc, buffer: Buffer) -> Rewrite:
    """Let pieces of 16 bytes of a row lie in an order that changes from row to row.

    P = alloc(float16[64, 32], "shared")   ->   P = alloc(float16[64, 32], "shared", swizzle=True)

    Piece p of the 128 bytes that the banks of shared memory hold beside each other lies where
    p ^ (row of 128 bytes) % pieces says, so that the same piece of eight rows, which a warp loads
    at once, meets no bank twice, and no memory is left between rows. No value changes. Requires: a
    tensor in scope "shared" with dense rows; lowering asks that they are, in the storage that
    is left, a power of two of pieces, two or more. Raises: ScheduleError.
    """
    if buffer not in func.allocations or buffer.scope != "shared":
        raise refuse(
            func,
            f"swizzle: '{buffer.name}' is in scope '{buffer.scope}'; expected 'shared', memory "
            "the threads of a block share.",
            code="swizzle-scope",
            kind=Kind.ARGUMENT,
            hints=(f"sch.set_scope('{buffer.name}', 'shared') first.",),
        )
    if buffer.aligned:
        raise refuse(
            func,
            f"swizzle: the rows of '{buffer.name}' lie apart; expected dense ones.",
            code="swizzle-aligned",
            kind=Kind.LIMIT,
            hints=("leave out storage_align: either one keeps rows out of each other's banks.",),
        )
    moved = replace(buffer, swizzled=True)
    return Rewrite(func.with_body(replace_buffers(func.body, {buffer: moved})))


SWIZZLE = Primitive("swizzle", swizzle, {"buffer": TENSOR}, gives=nothing, draw=draw_intermediate)
