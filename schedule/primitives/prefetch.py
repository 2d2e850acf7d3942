"""Primitive prefetch: ask for data before the iteration that uses it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from ...tir.buffer import Buffer
from ...tir.expr import Expr, Var, index
from ...tir.func import PrimFunc
from ...tir.regions import Region, region
from ...tir.simplify import simplify
from ...tir.stmt import For, Prefetch, seq
from ...tir.visit import accesses, blocks, substitute
from .. import placement
from ..errors import refuse
from ..nest import Rewrite, bound, loop_of, loops_around, loops_below, ranges_of, replace_loop

LINE_BYTES = 64
MAX_REQUESTS = 64  # in one iteration of the innermost loop


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
    before it and all inside `at`; the requests stand first in the innermost, or in `at` where none
    is named. Requires: what one iteration touches is
    contiguous; at most 64 requests in an iteration. Raises: ScheduleError.
    """
    outer = loop_of(func, at)
    inner = [loop_of(func, loop) for loop in spread]
    _check_spread(func, outer, inner)
    innermost = inner[-1] if inner else outer
    placement.check_allocated_outside(func, innermost, buffer, "prefetch")
    box = _touched(func, buffer, at)
    lines = -(-math.prod(span.extent for span in box) * buffer.type.bytes // LINE_BYTES)
    slots = math.prod(loop.extent for loop in inner)
    each = -(-lines // max(1, slots))
    if each > MAX_REQUESTS:
        raise refuse(
            func,
            f"prefetch: the {lines} cache lines of '{buffer.name}' that an iteration of loop "
            f"'{at.name}' touches, shared out over {slots} iterations, are {each} in each; "
            f"expected at most {MAX_REQUESTS}.",
            code="prefetch-many",
            hints=("name more loops in spread=(...).",),
        )
    slot: Expr = index(0)
    for loop in inner:
        slot = slot * loop.extent + loop.var
    ahead = {at: at + distance}
    lows = [substitute(span.low, ahead) for span in box]
    step = LINE_BYTES // buffer.type.bytes
    still = ranges_of((*loops_around(func, innermost), innermost))
    requests = [
        Prefetch(
            buffer,
            (*lows[:-1], simplify(lows[-1] + slot * (each * step) + n * step, still)),
            write,
            level,
        )
        for n in range(each)
    ]
    body = seq(*requests, innermost.body)
    return Rewrite(replace_loop(func, innermost, replace(innermost, body=body)))


def _check_spread(func: PrimFunc, at: For, spread: Sequence[For]) -> None:
    """The loops of `spread` stand inside `at`, each inside the one before it."""
    chain = [at, *spread]
    if any(inner not in loops_below(outer.body) for outer, inner in itertools.pairwise(chain)):
        names = ", ".join(f"'{loop.var.name}'" for loop in spread)
        raise refuse(
            func,
            f"prefetch: the loops to spread over are {names}; expected loops inside "
            f"'{at.var.name}', each inside the one before it.",
            code="prefetch-spread",
        )
    placement.check_not_vectorized(func, chain[-1], "prefetch")


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
    if not found or not buffer.shape:
        raise refuse(
            func,
            f"prefetch: no element of '{buffer.name}' that loop '{at.name}' selects is touched "
            "below it.",
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
