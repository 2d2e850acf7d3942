"""Primitive loop_partition: cut a loop into variants that are scheduled apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import Alloc, Block, For, IterKind, Stmt, seq
from ....tir.visit import fresh_copy, statements, substitute
from ...drawing import Arguments, ScheduleView, choose_any_loop
from ...errors import Kind, refuse
from ...legality.loops import check_not_mirrored, check_serial, runs_over
from ...nest import Rewrite, loop_of, map_blocks, replace_loop, unique_name
from ..parameters import LOOP, PLAIN
from ..primitive import Primitive, all_loops


def loop_partition(func: PrimFunc, loop: Var, points: Sequence[int]) -> Rewrite:
    """Cut a loop at the iterations `points` into loops that follow each other.

    for i in range(n): C[i]   ->   for i in range(p): C[i];  for i in range(n - p): C[i + p]

    The parts of a block are one family: the first keeps its name, the others are new blocks. A part
    of a reduction loop goes on with the accumulators of the part before it, so only the first holds
    the initialisation. Requires: the loop is serial; rising points inside its extent; nothing is
    staged below it. Returns the loops and the new blocks. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    check_serial(func, node, "loop_partition")
    check_not_mirrored(func, node, "loop_partition")
    _check_points(func, node, points)
    _check_nothing_allocated(func, node, "loop_partition")
    names: list[str] = []
    parts: list[For] = []
    for number, (start, stop) in enumerate(pairwise((0, *points, node.extent))):
        part = replace(node, extent=stop - start)
        if number:
            named = _renamed(func, node, number, names)
            moved = substitute(named, {loop: loop + start})
            copy = fresh_copy(replace(part, body=moved))
            assert isinstance(copy, For)
            part = copy
        parts.append(part)
    made = tuple(part.var for part in parts)
    return Rewrite(replace_loop(func, node, seq(*parts)), made, tuple(names))


def _renamed(func: PrimFunc, loop: For, number: int, names: list[str]) -> Stmt:
    """The body of the loop in part `number`: its blocks under new names, which go to `names`."""

    def rename(block: Block) -> Stmt:
        name = unique_name(func, f"{block.name}_part{number}")
        names.append(name)
        goes_on = runs_over(block, loop.var, IterKind.REDUCE)
        return replace(block, name=name, init=None if goes_on else block.init)

    return map_blocks(loop.body, rename)


def _check_points(func: PrimFunc, loop: For, points: Sequence[int]) -> None:
    """The points rise and lie inside of the loop, so that no part is empty."""
    numbers = all(type(point) is int for point in points)
    if points and numbers and all(a < b for a, b in pairwise((0, *points, loop.extent))):
        return
    raise refuse(
        func,
        f"loop_partition: points ({', '.join(map(str, points))}) of loop '{loop.var.name}'; "
        f"expected rising integers between 0 and its extent, {loop.extent}.",
        code="partition-points",
        kind=Kind.ARGUMENT,
        hints=(f"loop_partition({loop.var.name}, (p,)) makes loops of p and of the rest.",),
    )


def _check_nothing_allocated(func: PrimFunc, loop: For, primitive: str) -> None:
    """No storage begins anew in each iteration of the loop, so its body may stand in two places."""
    inner = next((node for node in statements(loop.body) if isinstance(node, Alloc)), None)
    if inner is None:
        return
    raise refuse(
        func,
        f"{primitive}: '{inner.buffer.name}' has storage of its own below loop "
        f"'{loop.var.name}'; expected a loop that holds none.",
        code="partition-storage",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before the step that made it (stage, set_scope, parallel).",),
    )


def draw_loop_partition(sch: ScheduleView, rng: Random) -> Arguments:
    """Any loop, at one or two of its iterations."""
    loop = choose_any_loop(sch, rng)
    last = max(1, sch.extent(loop) - 1)
    points = sorted({rng.randint(1, last) for _ in range(rng.randint(1, 2))})
    return {"loop": loop, "points": tuple(points)}


LOOP_PARTITION = Primitive(
    "loop_partition",
    loop_partition,
    {"loop": LOOP, "points": PLAIN},
    gives=all_loops,
    draw=draw_loop_partition,
)
