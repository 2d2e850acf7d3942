"""Primitives that say how a loop's iterations are run: parallel, vectorize, unroll."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import Alloc, For, ForKind
from ....tir.visit import enclosing_path, loops_below
from ...drawing import Arguments, ScheduleView, choose_nest, draw_loop
from ...errors import Kind, refuse
from ...legality import dependence
from ...legality.loops import check_independent, check_not_mirrored, check_serial
from ...nest import Rewrite, allocate_below, loop_of, loops_around, replace_loop
from ..parameters import LOOP
from ..primitive import Primitive, nothing

UNROLL_LIMIT = 512


def parallel(func: PrimFunc, loop: Var) -> Rewrite:
    """Run the iterations of a loop on the threads of the team, in contiguous shares.

    Where each iteration computes for itself what others compute too (a recomputed block), each gets
    a tensor of its own. Requires: the loop is serial and stands at the root; no two iterations
    touch one element, one of them writing. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    check_serial(func, node, "parallel")
    check_not_mirrored(func, node, "parallel")
    private = check_independent(func, node, "parallel")  # no other place makes a conflict legal
    dependence.check_reads_own(func, node, "parallel")
    _check_root(func, node)
    changed = replace_loop(func, node, replace(node, kind=ForKind.PARALLEL))
    for tensor in private:
        changed = allocate_below(changed, loop, tensor)
    return Rewrite(changed)


def vectorize(func: PrimFunc, loop: Var) -> Rewrite:
    """Run the iterations of a loop as the lanes of vectors.

    Inside of a loop of a GPU's threads, each of them loads and stores as many neighbours at once as
    their address allows, 16 bytes at most, and computes them one by one.
    Requires: the loop is serial and holds no other loop; its iterations are independent. Raises:
    ScheduleError.
    """
    node = loop_of(func, loop)
    check_serial(func, node, "vectorize")
    check_not_mirrored(func, node, "vectorize")
    _check_innermost(func, node)
    check_independent(func, node, "vectorize")
    dependence.check_reads_own(func, node, "vectorize")
    return Rewrite(replace_loop(func, node, replace(node, kind=ForKind.VECTORIZED, annotations=())))


def unroll(func: PrimFunc, loop: Var) -> Rewrite:
    """Replace a loop by copies of its body, late: until then it stays a loop that is marked.

    Requires: the loop is serial and has at most 512 iterations. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    check_serial(func, node, "unroll")
    check_not_mirrored(func, node, "unroll")
    _check_unrollable(func, node)
    return Rewrite(replace_loop(func, node, replace(node, kind=ForKind.UNROLLED, annotations=())))


def _check_innermost(func: PrimFunc, loop: For) -> None:
    """No loop stands inside the loop."""
    inner = loops_below(loop.body)
    if inner:
        raise refuse(
            func,
            f"vectorize: loop '{loop.var.name}' holds loop '{inner[0].var.name}'; expected an "
            "innermost loop.",
            code="vectorize-innermost",
            kind=Kind.LIMIT,
            hints=(
                f"reorder '{loop.var.name}' inside '{inner[-1].var.name}', or vectorize that one.",
            ),
        )


def _check_unrollable(func: PrimFunc, loop: For) -> None:
    """The copies of the body stay few."""
    if loop.extent > UNROLL_LIMIT:
        raise refuse(
            func,
            f"unroll: loop '{loop.var.name}' has {loop.extent} iterations; expected at most "
            f"{UNROLL_LIMIT}.",
            code="unroll-limit",
            kind=Kind.LIMIT,
            hints=(
                f"split it first and unroll the inner part: split({loop.var.name}, (None, 8)).",
            ),
        )


def _check_root(func: PrimFunc, loop: For) -> None:
    """The loop stands at the root: loops around it, if any, run once, and hold no storage of a
    thread.
    """
    for outer in loops_around(func, loop):
        if outer.extent != 1:
            raise refuse(
                func,
                f"parallel: loop '{loop.var.name}' stands inside loop '{outer.var.name}'; expected "
                "an outermost loop: only those are shared out among threads.",
                code="parallel-inside",
                kind=Kind.LIMIT,
                hints=(f"reorder '{loop.var.name}' outside of '{outer.var.name}' first.",),
            )
    for node in enclosing_path(func.body, loop):
        if isinstance(node, Alloc) and node.buffer.scope != "global":
            raise refuse(
                func,
                f"parallel: the iterations of loop '{loop.var.name}' share "
                f"'{node.buffer.name}', which belongs to one thread.",
                code="parallel-staged",
                kind=Kind.LIMIT,
                hints=("stage, or set_scope, below the parallel loop.",),
            )


def draw_parallel(sch: ScheduleView, rng: Random) -> Arguments:
    """The outermost loop of a nest, more often than not."""
    loops = choose_nest(sch, rng)
    return {"loop": loops[0] if rng.random() < 0.6 else rng.choice(loops)}


def draw_vectorize(sch: ScheduleView, rng: Random) -> Arguments:
    """The innermost loop of a nest, more often than not."""
    loops = choose_nest(sch, rng)
    return {"loop": loops[-1] if rng.random() < 0.7 else rng.choice(loops)}


PARALLEL = Primitive("parallel", parallel, {"loop": LOOP}, gives=nothing, draw=draw_parallel)
VECTORIZE = Primitive("vectorize", vectorize, {"loop": LOOP}, gives=nothing, draw=draw_vectorize)
UNROLL = Primitive("unroll", unroll, {"loop": LOOP}, gives=nothing, draw=draw_loop)
