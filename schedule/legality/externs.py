"""Calls of C functions, and scatters, which steps leave as they are.

`check_calls` holds for every step: a call still stands at the root, and the tensors that it had are
there as they were. A step that names the block of a call is refused before it begins, and to the
checks of all others it is a block that reads and writes, so none needs to know of calls.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...tir.extern import ExternFunction
from ...tir.func import PrimFunc
from ...tir.scatter import ScatterFunction
from ...tir.stmt import Alloc, Block, Extern, Seq, Stmt
from ...tir.target.target import Target
from ..errors import Kind, ScheduleError, refuse

_SEARCH = (
    "te.sum(te.select(te.eq(place[k], i), update[k], 0), axis=k) finds the updates of each element."
)


def extern_of(block: Block) -> Extern | None:
    """The call that a block makes; None for a block of loops."""
    return block.body if isinstance(block.body, Extern) else None


def check_loops(func: PrimFunc, name: str, primitive: str) -> None:
    """The block is one of loops."""
    call = extern_of(func.block(name))
    if call is not None:
        raise refuse(
            func,
            f"{primitive}: block '{name}' {call.function.words}, which is one step; expected a "
            "block of loops.",
            code="extern-block",
            kind=Kind.LIMIT,
            hints=("the blocks before and after it can be scheduled.",),
        )


def check_no_calls(func: PrimFunc, target: Target | None = None) -> None:
    """The function calls no C function, and scatters on no GPU, so a rule may schedule it.

    Raises: ScheduleError.
    """
    for block in func.blocks:
        call = extern_of(block)
        if call is not None and isinstance(call.function, ExternFunction):
            raise ScheduleError(
                f"rule: tensor '{call.outputs[0].name}' of '{func.name}' is what the C function "
                f"'{call.function.symbol}' makes, and no rule schedules around one; expected a "
                "schedule of your own.",
                code="extern-rule",
                kind=Kind.LIMIT,
                hints=("tw.build(tw.Schedule(func)) builds it as it stands, to begin with.",),
            )
        if call is None or isinstance(call.function, ExternFunction):
            continue
        if target is not None and target.has_grid:
            raise ScheduleError(
                f"rule: block '{block.name}' of '{func.name}' {call.function.words}, one "
                f"{call.function.part} after the other, which no thread of a grid does for others; "
                "expected sums and maxima.",
                code="scatter-grid",
                kind=Kind.LIMIT,
                hints=(_SEARCH,) if isinstance(call.function, ScatterFunction) else (),
            )


def check_calls(before: PrimFunc, after: PrimFunc, primitive: str) -> None:
    """The calls of a function are as they were before a step."""
    for block in before.blocks:
        call = extern_of(block)
        lost = None if call is None else _lost(after, block.name, call)
        if call is not None and lost is not None:
            raise refuse(
                before,
                f"{primitive}: block '{block.name}' {call.function.words}, and the step would "
                f"change '{lost}' there; expected its tensors as they were defined.",
                code="extern-changed",
                kind=Kind.LIMIT,
                hints=(
                    "cache_read and cache_write give other blocks a copy that a schedule may "
                    "rearrange.",
                ),
            )


def _lost(func: PrimFunc, name: str, call: Extern) -> str | None:
    """The tensor, or the block itself, that is not as a call needs it; None where all is well."""
    buffers = {parameter.buffer for parameter in func.parameters}
    found = False
    for root in _roots(func.body):
        if isinstance(root, Alloc):
            buffers.add(root.buffer)
        elif isinstance(root, Block) and root.name == name:
            found = extern_of(root) == call
    if not found:
        return name
    return next((b.name for b in (*call.inputs, *call.outputs) if b not in buffers), None)


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
