"""Calls of C functions, which steps leave as they are.

`check_calls` holds for every step: a call still stands at the root, with the tensors that it had,
whole, after what makes its inputs and before what reads its outputs. So no other check needs to
know of calls; a step that names the block of one is refused before it begins.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..tir.buffer import Buffer
from ..tir.func import PrimFunc
from ..tir.stmt import Alloc, Block, Extern, Seq, Stmt
from ..tir.visit import loads, stores
from .errors import ScheduleError, refuse


def extern_of(block: Block) -> Extern | None:
    """The call that a block makes; None for a block of loops."""
    return block.body if isinstance(block.body, Extern) else None


def check_loops(func: PrimFunc, name: str, primitive: str) -> None:
    """The block is one of loops."""
    call = extern_of(func.block(name))
    if call is not None:
        raise refuse(
            func,
            f"{primitive}: block '{name}' calls the C function '{call.function.symbol}', which is "
            "one step; expected a block of loops.",
            code="extern-block",
            hints=("the blocks before and after it can be scheduled.",),
        )


def check_no_calls(func: PrimFunc) -> None:
    """The function calls no C function, so a rule may schedule it. Raises: ScheduleError."""
    for block in func.blocks:
        call = extern_of(block)
        if call is not None:
            raise ScheduleError(
                f"rule: tensor '{call.outputs[0].name}' of '{func.name}' is what the C function "
                f"'{call.function.symbol}' makes, and no rule schedules around one; expected a "
                "schedule of your own.",
                code="extern-rule",
                hints=("tw.build(tw.Schedule(func)) builds it as it stands, to begin with.",),
            )


def check_calls(before: PrimFunc, after: PrimFunc, primitive: str) -> None:
    """The calls of a function are as they were before a step."""
    for block in before.blocks:
        call = extern_of(block)
        lost = None if call is None else _lost(after, block.name, call)
        if call is not None and lost is not None:
            raise refuse(
                before,
                f"{primitive}: block '{block.name}' calls the C function "
                f"'{call.function.symbol}', and the step would change '{lost}' there; expected "
                "its tensors whole, made before it and read after it.",
                code="extern-changed",
                hints=(
                    "cache_read and cache_write give other blocks a copy that a schedule may "
                    "rearrange.",
                ),
            )


def _lost(func: PrimFunc, name: str, call: Extern) -> str | None:
    """The tensor, or the block itself, that a call does not find as it should; None when all is
    well.
    """
    roots = tuple(_roots(func.body))
    found = [n for n, root in enumerate(roots) if isinstance(root, Block) and root.name == name]
    if not found or extern_of(func.block(name)) != call:
        return name
    around = {root.buffer for root in roots if isinstance(root, Alloc)}
    around.update(parameter.buffer for parameter in func.parameters)
    for n, root in enumerate(roots):
        if not isinstance(root, Alloc) and n != found[0]:
            early = set(call.outputs) & _touched(root) if n < found[0] else set()
            late = set(call.inputs) & {s.buffer for s in stores(root)} if n > found[0] else set()
            around -= early | late
    return next((b.name for b in (*call.inputs, *call.outputs) if b not in around), None)


def _roots(stmt: Stmt) -> Iterator[Stmt]:
    """The statements at the root in order, allocations among them."""
    match stmt:
        case Alloc():
            yield stmt
            yield from _roots(stmt.body)
        case Seq():
            for child in stmt.body:
                yield from _roots(child)
        case _:
            yield stmt


def _touched(stmt: Stmt) -> set[Buffer]:
    return {load.buffer for load in loads(stmt)} | {store.buffer for store in stores(stmt)}
