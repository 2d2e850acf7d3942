"""Cut off what depends on constants alone: it runs once, when a kernel is built, in a function of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...tir.buffer import Buffer, Load
from ...tir.dim import Dim
from ...tir.func import PrimFunc, split_allocations
from ...tir.node import Node
from ...tir.stmt import NOTHING, Alloc, Barrier, Parameter, Prefetch, Seq, Stmt, Store, seq
from ...tir.visit import (
    accesses,
    free_vars,
    fresh_copy,
    replace_buffers,
    statements,
    transform_statements,
    walk,
)
from .threads.place_barriers import PlaceBarriers


@dataclass(frozen=True, slots=True)
class Prepared:
    """A function in two parts.

    prepare: parameters are constants, then (role "output") the buffers that it computes; None when
    there is nothing to do.
    run: the rest; it takes those buffers, under the same names, as parameters of role "prepared",
    before its outputs. A constant that only `prepare` reads is no parameter of it.
    """

    prepare: PrimFunc | None
    run: PrimFunc


def split_prepare(func: PrimFunc) -> Prepared:
    """Move the statements at the root that compute allocations from constants alone into `prepare`.

    Requires: stage NEST. Ensures: stage NEST for both; run after prepare computes what `func` does.
    """
    allocated, statements = split_allocations(func.body)
    made = _made_from_constants(func, allocated, statements)
    if not made:
        return Prepared(None, func)
    moved = tuple(s for s in statements if not isinstance(s, Barrier) and _writes(s) & made)
    left = tuple(s for s in statements if not isinstance(s, Barrier) and s not in moved)
    read = frozenset[Buffer]().union(*(_reads(s) for s in left))
    results = tuple(b for b in allocated if b in made and b in read)
    run = _run(func, left, results)
    if not results:  # what is made is read by nobody
        return Prepared(None, run)
    return Prepared(_prepare(func, moved, results), run)


def _reads(stmt: Stmt) -> frozenset[Buffer]:
    own = {node.buffer for node in statements(stmt) if isinstance(node, Alloc)}
    return frozenset(a.buffer for a in accesses(stmt) if isinstance(a, Load)) - own


def _without_prefetches(stmt: Stmt, used: frozenset[Buffer]) -> Stmt:
    """The statement without prefetches of buffers of the other part."""
    known = used | {node.buffer for node in statements(stmt) if isinstance(node, Alloc)}

    def drop(node: Node) -> Node:
        if isinstance(node, Prefetch) and node.buffer not in known:
            return NOTHING
        return seq(*node.body) if isinstance(node, Seq) and NOTHING in node.body else node

    return transform_statements(stmt, drop)


def _writes(stmt: Stmt) -> frozenset[Buffer]:
    own = {node.buffer for node in statements(stmt) if isinstance(node, Alloc)}
    return frozenset(a.buffer for a in accesses(stmt) if isinstance(a, Store)) - own


def _made_from_constants(
    func: PrimFunc, allocated: Sequence[Buffer], statements: Sequence[Stmt]
) -> frozenset[Buffer]:
    """The allocations at the root all of whose writers read constants and other such allocations
    only.
    """
    made = frozenset(
        b for b in allocated if b.scope == "global" and any(b in _writes(s) for s in statements)
    )
    while True:
        known = made | frozenset(func.constants)
        lost = {
            buffer
            for buffer in made
            for stmt in statements
            if buffer in _writes(stmt)
            and not (_reads(stmt) <= known and _writes(stmt) <= made and not _has_dim(stmt))
        }
        if not lost:
            return made
        made -= lost


def _has_dim(stmt: Stmt) -> bool:
    """Whether what a statement does, or where it stores, depends on a size that a call decides."""
    buffers = (node for node in walk(stmt) if isinstance(node, Buffer))
    return any(buffer.dims for buffer in buffers) or any(
        isinstance(var, Dim) for var in free_vars(stmt)
    )


def _prepare(func: PrimFunc, moved: Sequence[Stmt], results: Sequence[Buffer]) -> PrimFunc:
    used = frozenset[Buffer]().union(*(_reads(s) | _writes(s) for s in moved))
    parameters = [p for p in func.parameters if p.buffer in used]
    parameters += [Parameter(buffer, "output") for buffer in results]
    body = seq(*(_without_prefetches(s, used) for s in moved))
    for buffer in sorted(used - {p.buffer for p in parameters}, key=lambda b: b.name):
        body = Alloc(buffer, body)
    body = fresh_copy(body)
    exchange = {b: Buffer(b.name, b.type, b.shape) for b in results}
    fresh = tuple(replace(p, buffer=exchange.get(p.buffer, p.buffer)) for p in parameters)
    whole = PrimFunc(f"{func.name}_prepare", fresh, replace_buffers(body, exchange))
    return PlaceBarriers()(whole)


def _run(func: PrimFunc, left: Sequence[Stmt], results: Sequence[Buffer]) -> PrimFunc:
    used = frozenset[Buffer]().union(*(_reads(s) | _writes(s) for s in left))
    exchange = {b: Buffer(b.name, b.type, b.shape) for b in results}
    kept = [p for p in func.parameters if p.role != "constant" or p.buffer in used]
    parameters = [p for p in kept if p.role != "output"]
    parameters += [Parameter(exchange[b], "prepared") for b in results]
    parameters += [p for p in kept if p.role == "output"]
    body = replace_buffers(seq(*(_without_prefetches(s, used) for s in left)), exchange)
    for buffer in reversed(split_allocations(func.body)[0]):
        if buffer in used and buffer not in results:
            body = Alloc(buffer, body)
    return PlaceBarriers()(PrimFunc(func.name, tuple(parameters), body, func.sizes, func.facts))
