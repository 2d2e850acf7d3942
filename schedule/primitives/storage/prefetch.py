"""Primitive prefetch: ask for data before the iteration that uses it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from ....tir.analysis.linear import linear
from ....tir.analysis.regions import Region, Span, region
from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer
from ....tir.expr import Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.stmt import For, Prefetch, seq
from ....tir.te.elements import minimum
from ....tir.visit import accesses, blocks, loops_below, substitute
from ...drawing import Arguments, ScheduleView, choose_nest, choose_tensor
from ...errors import Kind, ScheduleError, refuse
from ...legality.loops import check_not_vectorized
from ...legality.tensors import check_allocated_outside
from ...nest import (
    Rewrite,
    bound,
    loop_of,
    loops_around,
    open_loops,
    ranges_of,
    replace_loop,
)
from ..parameters import LOOP, LOOPS, PLAIN, TENSOR
from ..primitive import Primitive, nothing

LINE_BYTES = 64
MAX_REQUESTS = 64  # in one iteration of the innermost loop
NEARLY = 7 / 8  # of an axis, from which on all of it is asked for
FEW_REQUESTS = 8  # in one iteration, where a call decides how many iterations there are

ReadWrite = Literal["read", "write"]


def prefetch(
    func: PrimFunc,
    buffer: Buffer,
    at: Var,
    spread: Sequence[Var],
    distance: int = 1,
    rw: ReadWrite = "read",
    level: int = 1,
) -> Rewrite:
    """In iteration n of `at`, ask for what iteration n + distance touches of `buffer`.

    The lines are shared out evenly over the iterations of the loops `spread`, each inside the one
    before it and all inside `at`; the requests stand first in the innermost, or in `at` where none
    is named. Where a call decides how many iterations there are, the first ones ask for all lines,
    a few each: a small call asks for them too. Rows that do not follow each other in memory are
    asked for one after the other.
    Requires: storage that outlives an iteration; at most 64 requests in an iteration.
    Raises: ScheduleError.
    """
    _check_how(rw, level, distance)
    outer = loop_of(func, at)
    inner = [loop_of(func, loop) for loop in spread]
    _check_spread(func, outer, inner)
    check_allocated_outside(func, outer, buffer, "prefetch")
    innermost = inner[-1] if inner else outer
    pieces = _pieces(buffer, _touched(func, buffer, at))
    slots, every = _slots(outer, inner, pieces.lines), math.prod(loop.extent for loop in inner)
    each = -(-pieces.lines // max(1, slots))
    _check_few(func, buffer, at, pieces.lines, slots, each)
    slot: Expr = index(0)
    for loop in inner:
        slot = slot * loop.extent + loop.var
    if slots < every:
        slot = minimum(slot, slots - 1)
    ahead = {at: at + distance}
    still = ranges_of((*loops_around(func, innermost), innermost))
    requests = []
    for n in range(each):
        number = simplify(slot * each + n, still)
        if pieces.rows > 1 and slots * each > pieces.lines:
            number = minimum(number, pieces.lines - 1)
        place = (substitute(item, ahead) for item in pieces.place(number))
        indices = tuple(simplify(item, still) for item in place)
        requests.append(Prefetch(buffer, indices, rw == "write", level))
    body = seq(*requests, innermost.body)
    return Rewrite(replace_loop(func, innermost, replace(innermost, body=body)))


def _check_how(rw: str, level: int, distance: int) -> None:
    """The processor has such a request."""
    if rw not in ("read", "write") or level not in (1, 2, 3) or distance < 0:
        raise ScheduleError(
            f"prefetch: rw={rw!r}, level={level!r}, distance={distance!r}; expected 'read' or "
            "'write', cache level 1, 2 or 3, and a distance of 0 or more.",
            code="prefetch-how",
        )


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A box of a tensor as pieces of memory, each of which is contiguous.

    outer: the spans that number the pieces, row by row; inner: those inside a piece. line: elements
    of a cache line; each: lines of a piece, one more where a piece may start inside of a line.
    """

    outer: Region
    inner: Region
    line: int
    each: int

    @property
    def rows(self) -> int:
        """The number of pieces."""
        return math.prod(span.extent for span in self.outer)

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.rows * self.each

    def place(self, number: Expr) -> tuple[Expr, ...]:
        """The indices at which the line with this number starts. A single piece goes on behind its
        end.
        """
        lows = [span.low for span in (*self.outer, *self.inner)]
        step = number
        if self.rows > 1:
            piece, step = number // self.each, number % self.each
            for axis in reversed(range(len(self.outer))):
                extent = self.outer[axis].extent
                rest = piece % extent if any(s.extent > 1 for s in self.outer[:axis]) else piece
                lows[axis] = lows[axis] + rest
                piece = piece // extent
        return (*lows[:-1], lows[-1] + step * self.line)


def _pieces(buffer: Buffer, box: Region) -> _Pieces:
    """The pieces of a box: whole, dense axes at its end, and one more. Nearly all of an axis counts
    as all of it: what a window of stride 2 leaves out is asked for as well.
    """
    box = tuple(map(_whole, box, buffer.shape))
    strides = buffer.strides
    apart = (
        axis for axis in range(1, len(box)) if box[axis].extent * strides[axis] != strides[axis - 1]
    )
    first = max(apart, default=0)
    line = LINE_BYTES // buffer.type.bytes
    size = math.prod(span.extent for span in box[first:])
    each = -(-size // line)
    if math.prod(span.extent for span in box[:first]) > 1 and not _on_lines(buffer, box, line):
        each += 1
    return _Pieces(box[:first], box[first:], line, each)


def _whole(span: Span, size: int) -> Span:
    """The whole axis for nearly all of it."""
    return Span(index(0), size) if NEARLY * size <= span.extent < size else span


def _on_lines(buffer: Buffer, box: Region, line: int) -> bool:
    """Whether every piece of a box starts where a line does, if the tensor does."""
    spans = list(zip(box, buffer.strides, strict=True))
    forms = [linear(span.low).scaled(stride) for span, stride in spans]
    steps = [form.constant for form in forms]
    steps += [coefficient for form in forms for _, coefficient in form.terms]
    steps += [stride for span, stride in spans[:-1] if span.extent > 1]
    return all(step % line == 0 for step in steps)


def _slots(at: For, spread: Sequence[For], lines: int) -> int:
    """The first iterations of the loops `spread`, as many as share out the lines: all of them, but
    where a call decides how many there are.
    """
    sized = open_loops(at.body)
    every = math.prod(loop.extent for loop in spread)
    if not any(loop.var in sized for loop in spread):
        return every
    kept = itertools.takewhile(lambda loop: loop.var not in sized, reversed(spread))
    inside = math.prod(loop.extent for loop in kept)
    return min(every, max(inside, -(-lines // FEW_REQUESTS)))


def _check_few(func: PrimFunc, buffer: Buffer, at: Var, lines: int, slots: int, each: int) -> None:
    """An iteration of the innermost loop makes few requests."""
    if each > MAX_REQUESTS:
        raise refuse(
            func,
            f"prefetch: the {lines} cache lines of '{buffer.name}' that an iteration of loop "
            f"'{at.name}' touches, shared out over {slots} iterations, are {each} in each; "
            f"expected at most {MAX_REQUESTS}.",
            code="prefetch-many",
            kind=Kind.LIMIT,
            hints=("name more loops in spread=(...).",),
        )


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
            kind=Kind.ARGUMENT,
        )
    check_not_vectorized(func, chain[-1], "prefetch")


def _touched(func: PrimFunc, buffer: Buffer, at: Var) -> Region:
    """The box of `buffer` that one iteration of the loop touches."""
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
            kind=Kind.ARGUMENT,
        )
    around = (*loops_around(func, node), node)
    return region(found, ranges_of(loops_below(node.body)), ranges_of(around), buffer.shape)


def draw_prefetch(sch: ScheduleView, rng: Random) -> Arguments:
    """Any buffer, in any loop, shared out over none to two of the loops inside of it."""
    loops = choose_nest(sch, rng)
    start = rng.randrange(len(loops))
    return {
        "buffer": choose_tensor(sch, rng),
        "at": loops[start],
        "spread": loops[start + 1 :][: rng.randint(0, 2)],
        "distance": rng.randint(0, 2),
        "rw": rng.choice(("read", "write")),
        "level": rng.randint(1, 3),
    }


PREFETCH = Primitive(
    "prefetch",
    prefetch,
    {
        "buffer": TENSOR,
        "at": LOOP,
        "spread": LOOPS,
        "distance": PLAIN,
        "rw": PLAIN,
        "level": PLAIN,
    },
    gives=nothing,
    draw=draw_prefetch,
)
