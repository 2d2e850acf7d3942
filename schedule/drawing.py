"""Random arguments for primitives: what a draw sees of a schedule, and the choices that several
primitives share. Most arguments are sensible; some are not, so that refusals are met too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

from ..tir.buffer import Buffer
from ..tir.func import PrimFunc
from ..tir.stmt import Block, IterKind
from .nest import readers, target_of
from .trace.references import LoopRef

Arguments = Mapping[str, object]


class ScheduleView(Protocol):
    """What a draw sees of a schedule."""

    @property
    def func(self) -> PrimFunc: ...
    def blocks(self) -> tuple[str, ...]: ...
    def loops(self, block: str) -> tuple[LoopRef, ...]: ...
    def extent(self, loop: LoopRef) -> int: ...


Draw = Callable[[ScheduleView, Random], Arguments]


class NothingToTry(Exception):
    """There is nothing that the primitive could be tried on."""


# -- one argument ---------------------------------------------------------------------------------


def choose_block(sch: ScheduleView, rng: Random) -> str:
    """Any block."""
    return rng.choice(sch.blocks())


def choose_reduction(sch: ScheduleView, rng: Random) -> str:
    """A block with a reduction. Raises: NothingToTry, seldom also where there is one."""
    found = [
        block.name
        for block in sch.func.blocks
        if any(it.kind is IterKind.REDUCE for it in block.iters)
    ]
    if not found or rng.random() < 0.05:
        raise NothingToTry
    return rng.choice(found)


def choose_pair(sch: ScheduleView, rng: Random) -> tuple[str, str]:
    """A block and one that reads what it makes. Raises: NothingToTry."""
    pairs = computed_and_used(sch)
    if not pairs:
        raise NothingToTry
    return rng.choice(pairs)


def computed_and_used(sch: ScheduleView) -> list[tuple[str, str]]:
    """Each block with each one that reads what it makes."""
    return [
        (block.name, user.name)
        for block in sch.func.blocks
        for user in readers(sch.func, target_of(block))
        if user.name != block.name
    ]


def choose_nest(sch: ScheduleView, rng: Random, least: int = 1) -> tuple[LoopRef, ...]:
    """The loops around a block, `least` or more. Raises: NothingToTry."""
    loops = sch.loops(choose_block(sch, rng))
    if len(loops) < least:
        raise NothingToTry
    return loops


def choose_loop(sch: ScheduleView, rng: Random, block: str) -> LoopRef:
    """A loop around a block. Raises: NothingToTry."""
    loops = sch.loops(block)
    if not loops:
        raise NothingToTry
    return rng.choice(loops)


def choose_any_loop(sch: ScheduleView, rng: Random) -> LoopRef:
    """A loop around any block. Raises: NothingToTry."""
    return choose_loop(sch, rng, choose_block(sch, rng))


def buffers(sch: ScheduleView) -> list[Buffer]:
    """The parameters, and all that is allocated."""
    return [*(p.buffer for p in sch.func.parameters), *sch.func.allocations]


def names_read(sch: ScheduleView, block: Block) -> list[str]:
    """The names of the buffers that a block reads from others."""
    return [b.name for b in buffers(sch) if any(u is block for u in readers(sch.func, b))]


def choose_tensor(sch: ScheduleView, rng: Random) -> str:
    """Any buffer."""
    return rng.choice(buffers(sch)).name


def choose_intermediate(sch: ScheduleView, rng: Random) -> Buffer:
    """An intermediate tensor that is no staged part of another one. Raises: NothingToTry."""
    inner = [buffer for buffer in sch.func.allocations if buffer.origin is None]
    if not inner:
        raise NothingToTry
    return rng.choice(inner)


# -- all arguments of a primitive -----------------------------------------------------------------


def draw_block(sch: ScheduleView, rng: Random) -> Arguments:
    """Any block."""
    return {"block": choose_block(sch, rng)}


def draw_loop(sch: ScheduleView, rng: Random) -> Arguments:
    """Any loop."""
    return {"loop": choose_any_loop(sch, rng)}


def draw_intermediate(sch: ScheduleView, rng: Random) -> Arguments:
    """Any intermediate tensor."""
    return {"buffer": choose_intermediate(sch, rng).name}


def draw_reduction(sch: ScheduleView, rng: Random) -> Arguments:
    """A block with a reduction, and a loop around it."""
    block = choose_reduction(sch, rng)
    return {"block": block, "loop": choose_loop(sch, rng, block)}
