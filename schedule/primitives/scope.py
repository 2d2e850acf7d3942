"""Primitive set_scope: where the elements of an intermediate tensor live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from ...tir.buffer import Buffer
from ...tir.func import PrimFunc
from ...tir.visit import replace_buffers
from ..drawing import Arguments, View, choose_intermediate
from ..errors import ScheduleError
from ..legality import grid, placement
from ..legality import loops as legality
from ..nest import Rewrite, allocate_below
from .parameters import PLAIN, TENSOR
from .primitive import Primitive, nothing

Scope = Literal["register", "thread", "team", "global"]
SCOPES = ("register", "thread", "team", "global")


def set_scope(func: PrimFunc, buffer: Buffer, scope: Scope) -> Rewrite:
    """Keep an intermediate tensor in `scope`: registers, memory of the thread, memory that the
    threads of a block share ("team"), or memory that all share.

    P = alloc("global"); for y: { P; C(P) }   ->   for y: { P = alloc("register"); P; C(P) }

    What belongs to a thread has storage of its own in each iteration of the innermost loop around
    all its accesses; lowering folds it to what one iteration touches. Prefetches of the tensor are
    dropped, in registers its alignment, and its swizzle where threads share nothing. Requires: such
    a loop, over which nothing is accumulated and below which none is parallel. Raises:
    ScheduleError.
    """
    check_scope("set_scope", scope, SCOPES)
    legality.check_intermediate(func, buffer, "set_scope")
    placement.check_not_staged(func, buffer, "set_scope")
    aligned = () if scope == "register" else buffer.aligned
    swizzled = buffer.swizzled and scope == "team"
    moved = replace(buffer, scope=scope, aligned=aligned, swizzled=swizzled)
    if scope != "global":
        loop = placement.check_one_loop(func, buffer, "set_scope")
        if scope == "team":
            grid.check_team(func, buffer, loop, "set_scope")
        placement.check_no_parallel_inside(func, loop, buffer.name, "set_scope")
        func = allocate_below(func, loop.var, buffer)
    return Rewrite(func.with_body(replace_buffers(func.body, {buffer: moved})))


def check_scope(primitive: str, scope: str, known: Sequence[str]) -> None:
    """The scope is one that the primitive knows. Raises: ScheduleError."""
    if scope not in known:
        raise ScheduleError(
            f"{primitive}: scope is {scope!r}; expected one of {', '.join(map(repr, known))}.",
            code="stage-scope",
        )


def draw_set_scope(sch: View, rng: Random) -> Arguments:
    """Any intermediate tensor, in any scope that needs no grid."""
    buffer = choose_intermediate(sch, rng)
    return {"buffer": buffer.name, "scope": rng.choice(("register", "thread", "global"))}


SET_SCOPE = Primitive(
    "set_scope",
    set_scope,
    {"buffer": TENSOR, "scope": PLAIN},
    gives=nothing,
    draw=draw_set_scope,
)
