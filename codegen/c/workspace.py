"""Where allocations live: slices of the scratch memory that a call is given, at 64-byte offsets
fixed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...tir.buffer import Buffer
from ...tir.func import PrimFunc
from ...tir.stmt import Alloc, For, If, Stmt

ALIGNMENT = 64
LARGEST_LOCAL = 1 << 14  # bytes of a tile that may be an array on the stack


@dataclass(frozen=True, slots=True)
class Workspace:
    """Offsets in bytes: `shared` from the start of the workspace, `own` from the start of the
    thread's slice.

    A buffer in neither is a local variable.
    """

    shared: Mapping[Buffer, int]
    own: Mapping[Buffer, int]
    shared_bytes: int
    own_bytes: int


def plan_workspace(func: PrimFunc) -> Workspace:
    """Give every allocation of a LOWERED function its place.

    One at the root is shared by the threads and has memory of its own; one inside a loop, and one
    of scope "thread", is private to a thread, and shares memory with those whose loops it is not
    in.
    """
    shared: dict[Buffer, int] = {}
    own: dict[Buffer, int] = {}
    total = 0
    most = 0

    def place(stmt: Stmt, inside: bool, used: int) -> None:
        nonlocal total, most
        if isinstance(stmt, Alloc) and not is_local(stmt.buffer):
            size = -(-stmt.buffer.bytes // ALIGNMENT) * ALIGNMENT
            if inside or stmt.buffer.scope != "global":
                own[stmt.buffer] = used
                used += size
                most = max(most, used)
            else:
                shared[stmt.buffer] = total
                total += size
        for child in stmt.children():
            if isinstance(child, Stmt):
                place(child, inside or isinstance(stmt, For | If), used)

    place(func.body, False, 0)
    return Workspace(shared, own, total, most)


def is_local(buffer: Buffer) -> bool:
    """Whether an allocation is a local variable: a register, or a small tile where there are no
    vector registers.
    """
    return buffer.scope == "register" and buffer.bytes <= LARGEST_LOCAL
