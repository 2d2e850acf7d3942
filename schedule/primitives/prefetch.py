"""Primitive prefetch: ask for data before the iteration that uses it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...tir.expr import Buffer, Expr, Var, index
from ...tir.func import PrimFunc
from ...tir.regions import Region, region
from ...tir.simplify import simplify
from ...tir.stmt import Prefetch, seq
from ...tir.visit import accesses, blocks, substitute
from ..errors import refuse
from ..nest import Rewrite, bound, loop_of, loops_around, loops_below, ranges_of, replace_loop

LINE_BYTES = 64


def prefetch(
    func: PrimFunc,
    buffer: Buffer,
    at: Var,
    distance: int,
    spread: Sequence[Var],
    *,
    write: bool,
    level: int,
) -> Rewrite:
    """In iteration n of `at`, ask for what iteration n + distance touches of `buffer`.

    The lines are shared out evenly over the iterations of the loops `spread`, each inside the one
    before it; the requests stand first in the innermost. Requires: what one iteration touches is
    contiguous. Raises: ScheduleError.
    """
    outer = loop_of(func, at)
    inner = [loop_of(func, loop) for loop in spread]
    box = _touched(func, buffer, at)
    lines = -(-math.prod(span.extent for span in box) * buffer.type.bytes // LINE_BYTES)
    slots = math.prod(loop.extent for loop in inner)
    each = -(-lines // slots)
    slot: Expr = index(0)
    for loop in inner:
        slot = slot * loop.extent + loop.var
    ahead = {at: at + distance}
    lows = [substitute(span.low, ahead) for span in box]
    step = LINE_BYTES // buffer.type.bytes
    still = ranges_of((*loops_around(func, inner[-1]), inner[-1]))
    requests = [
        Prefetch(
            buffer,
            (*lows[:-1], simplify(lows[-1] + slot * (each * step) + n * step, still)),
            write,
            level,
        )
        for n in range(each)
    ]
    innermost = inner[-1]
    assert outer is innermost or innermost in loops_below(outer)
    body = seq(*requests, innermost.body)
    return Rewrite(replace_loop(func, innermost, replace(innermost, body=body)))


def _touched(func: PrimFunc, buffer: Buffer, at: Var) -> Region:
    """The box of `buffer` that one iteration of the loop touches; refused when it is not
    contiguous.
    """
    node = loop_of(func, at)
    found = [
        tuple(bound(block, item) for item in access.indices)
        for block in blocks(node)
        for access in accesses(block.body)
        if access.buffer is buffer
    ]
    if not found:
        raise refuse(
            func,
            f"prefetch: nothing below loop '{at.name}' touches '{buffer.name}'.",
            code="prefetch-untouched",
        )
    around = (*loops_around(func, node), node)
    box = region(found, ranges_of(loops_below(node.body)), ranges_of(around), buffer.shape)
    inside = False
    for span, size in zip(box, buffer.shape, strict=True):
        if inside and span.extent != size:
            shown = "x".join(str(s.extent) for s in box)
            raise refuse(
                func,
                f"prefetch: an iteration of loop '{at.name}' touches a box of {shown} of "
                f"'{buffer.name}', "
                "which is not contiguous.",
                code="prefetch-strided",
                hints=("pack the tensor, so that what an iteration reads is one stream.",),
            )
        inside = inside or span.extent > 1
    return box
