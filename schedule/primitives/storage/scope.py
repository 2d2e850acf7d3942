"""Primitive set_scope: where the elements of an intermediate tensor live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from ....tir.buffer import Buffer
from ....tir.func import PrimFunc
from ....tir.stmt import For, ForKind, IterKind
from ....tir.visit import blocks, replace_buffers
from ...drawing import Arguments, ScheduleView, choose_intermediate
from ...errors import Kind, ScheduleError, refuse
from ...legality import grid
from ...legality.conflict import witness, written_twice
from ...legality.loops import check_no_parallel_inside, runs_over
from ...legality.recurrence import carried
from ...legality.tensors import check_intermediate, check_not_staged
from ...nest import Rewrite, allocate_below, loops_around, readers, writers
from ..parameters import SCOPE, TENSOR
from ..primitive import Primitive, nothing

Scope = Literal["register", "thread", "shared", "global"]
SCOPES = ("register", "thread", "shared", "global")


def set_scope(func: PrimFunc, buffer: Buffer, scope: Scope) -> Rewrite:
    """Keep an intermediate tensor in `scope`: registers, memory of the thread, memory that the
    threads of a block share ("shared"), or memory that all share.

    P = alloc("global"); for y: { P; C(P) }   ->   for y: { P = alloc("register"); P; C(P) }

    What belongs to a thread has storage of its own in each iteration of the innermost loop around
    all its accesses; lowering folds it to what one iteration touches. Prefetches of the tensor are
    dropped, in registers its alignment, and its swizzle where threads share nothing. Requires: such
    a loop, over which nothing is accumulated and below which none is parallel. Raises:
    ScheduleError.
    """
    check_scope("set_scope", scope, SCOPES)
    check_intermediate(func, buffer, "set_scope")
    check_not_staged(func, buffer, "set_scope")
    aligned = () if scope == "register" else buffer.aligned
    swizzled = buffer.swizzled and scope == "shared"
    moved = replace(buffer, scope=scope, aligned=aligned, swizzled=swizzled)
    if scope != "global":
        loop = _check_one_loop(func, buffer, "set_scope")
        if scope == "shared":
            grid.check_shared(func, buffer, loop, "set_scope")
        check_no_parallel_inside(func, loop, buffer.name, "set_scope")
        func = allocate_below(func, loop.var, buffer)
    return Rewrite(func.with_body(replace_buffers(func.body, {buffer: moved})))


def check_scope(primitive: str, scope: str, known: Sequence[str]) -> None:
    """The scope is one that the primitive knows. Raises: ScheduleError."""
    if scope not in known:
        raise ScheduleError(
            f"{primitive}: scope is {scope!r}; expected one of {', '.join(map(repr, known))}.",
            code="stage-scope",
        )


def _check_one_loop(func: PrimFunc, tensor: Buffer, primitive: str) -> For:
    """A loop holds all accesses to the tensor, and no block accumulates into it over that loop or
    one outside of it, nor reads what it computes in another iteration of one. Returns the
    innermost.
    """
    made = writers(func, tensor)
    users = (*made, *readers(func, tensor))
    free: list[For] = []
    for loop in loops_around(func, users[0]):
        below = set(map(id, blocks(loop)))
        if not all(id(b) in below for b in users):
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
    conflict = carried(func, loop, primitive, tensor)
    if conflict is None:
        reduced = any(runs_over(b, loop.var, IterKind.REDUCE) for b in writers(func, tensor))
        if not reduced or loop.extent < 2:
            return None
        conflict = witness(func, written_twice(tensor, (loop,)))
    return () if conflict is None else (conflict.note(),)


def draw_set_scope(sch: ScheduleView, rng: Random) -> Arguments:
    """Any intermediate tensor, in any scope that needs no grid."""
    buffer = choose_intermediate(sch, rng)
    return {"buffer": buffer.name, "scope": rng.choice(("register", "thread", "global"))}


SET_SCOPE = Primitive(
    "set_scope",
    set_scope,
    {"buffer": TENSOR, "scope": SCOPE},
    gives=nothing,
    draw=draw_set_scope,
)
