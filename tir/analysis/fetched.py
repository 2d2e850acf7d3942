"""What the body of a loop fetches into shared memory before it computes."""

from __future__ import annotations

from dataclasses import dataclass

from ..buffer import Buffer, Load
from ..stmt import Alloc, Block, For, ForKind, IterKind, Seq, Stmt
from ..visit import accesses, blocks, statements, stores


@dataclass(frozen=True, slots=True)
class Fetched:
    """A loop's body in parts.

    buffers: of shared memory, which `copies` alone fill. held: what else is allocated around both;
    rest: what comes after the copies.
    """

    buffers: tuple[Buffer, ...]
    held: tuple[Buffer, ...]
    copies: tuple[Stmt, ...]
    rest: tuple[Stmt, ...]


def fetched(loop: For) -> Fetched | str:
    """The parts of a loop's body; what is wrong with it where it does not fetch first."""
    if loop.kind is not ForKind.SERIAL:
        return f"it is {loop.kind.value}"
    allocated: list[Buffer] = []
    body = loop.body
    while isinstance(body, Alloc):
        allocated.append(body.buffer)
        body = body.body
    shared = {buffer for buffer in allocated if buffer.scope == "shared"}
    if not shared:
        return "no shared memory is its own"
    listed = body.body if isinstance(body, Seq) else (body,)
    outside = _written(loop.body) - shared
    count = 0
    for stmt in listed:
        read = {access.buffer for access in accesses(stmt) if isinstance(access, Load)}
        if not _written(stmt) <= shared or read & (shared | outside) or _reduces(stmt):
            break
        count += 1
    copies, rest = listed[:count], listed[count:]
    if not copies:
        return "it does not begin with copies into shared memory"
    if not rest:
        return "it does nothing but copy"
    filled = frozenset[Buffer]().union(*map(_written, copies))
    both = filled & frozenset[Buffer]().union(*map(_written, rest))
    if both:
        return f"'{min(buffer.name for buffer in both)}' is written after it was fetched, too"
    buffers = tuple(buffer for buffer in allocated if buffer in filled)
    held = tuple(buffer for buffer in allocated if buffer not in filled)
    return Fetched(buffers, held, copies, rest)


def _written(stmt: Stmt) -> frozenset[Buffer]:
    own = {node.buffer for node in statements(stmt) if isinstance(node, Alloc)}
    inside = own if not isinstance(stmt, Alloc) else set()
    return frozenset(store.buffer for store in stores(stmt)) - inside


def _reduces(stmt: Stmt) -> bool:
    found: tuple[Block, ...] = blocks(stmt)
    return any(it.kind is not IterKind.SPATIAL for block in found for it in block.iters)
