"""Primitives that say how a loop's iterations are run: parallel, vectorize, unroll."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.stmt import ForKind
from ..drawing import Arguments, View, choose_nest, draw_loop
from ..legality import dependence, placement
from ..legality import loops as legality
from ..nest import Rewrite, allocate_below, loop_of, replace_loop
from .parameters import LOOP
from .primitive import Primitive, nothing


def parallel(func: PrimFunc, loop: Var) -> Rewrite:
    """Run the iterations of a loop on the threads of the team, in contiguous shares.

    Where each iteration computes for itself what others compute too (a recomputed block), each gets
    a tensor of its own. Requires: the loop is serial and stands at the root; no two iterations
    touch one element, one of them writing. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    legality.check_serial(func, node, "parallel")
    legality.check_not_mirrored(func, node, "parallel")
    placement.check_root(func, node)
    private = legality.check_independent(func, node, "parallel")
    dependence.check_reads_own(func, node, "parallel")
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
    legality.check_serial(func, node, "vectorize")
    legality.check_not_mirrored(func, node, "vectorize")
    legality.check_innermost(func, node)
    legality.check_independent(func, node, "vectorize")
    dependence.check_reads_own(func, node, "vectorize")
    return Rewrite(replace_loop(func, node, replace(node, kind=ForKind.VECTORIZED, annotations=())))


def unroll(func: PrimFunc, loop: Var) -> Rewrite:
    """Replace a loop by copies of its body, late: until then it stays a loop that is marked.

    Requires: the loop is serial and has at most 512 iterations. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    legality.check_serial(func, node, "unroll")
    legality.check_not_mirrored(func, node, "unroll")
    legality.check_unrollable(func, node)
    return Rewrite(replace_loop(func, node, replace(node, kind=ForKind.UNROLLED, annotations=())))


def draw_parallel(sch: View, rng: Random) -> Arguments:
    """The outermost loop of a nest, more often than not."""
    loops = choose_nest(sch, rng)
    return {"loop": loops[0] if rng.random() < 0.6 else rng.choice(loops)}


def draw_vectorize(sch: View, rng: Random) -> Arguments:
    """The innermost loop of a nest, more often than not."""
    loops = choose_nest(sch, rng)
    return {"loop": loops[-1] if rng.random() < 0.7 else rng.choice(loops)}


PARALLEL = Primitive("parallel", parallel, {"loop": LOOP}, gives=nothing, draw=draw_parallel)
VECTORIZE = Primitive("vectorize", vectorize, {"loop": LOOP}, gives=nothing, draw=draw_vectorize)
UNROLL = Primitive("unroll", unroll, {"loop": LOOP}, gives=nothing, draw=draw_loop)
