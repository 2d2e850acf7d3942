"""Primitives that make one unit of a nest: blockize, and tensorize, which gives it to an
instruction.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.instructions.instructions import INSTRUCTIONS
from ....tir.stmt import ForKind
from ....tir.target.target import Target
from ...drawing import Arguments, ScheduleView, choose_any_loop, draw_loop
from ...legality import tensorized as units
from ...legality.loops import check_not_mirrored, check_serial
from ...nest import Rewrite, loop_of, replace_loop
from ..parameters import LOOP, PLAIN
from ..primitive import Primitive, nothing


def blockize(func: PrimFunc, loop: Var) -> Rewrite:
    """Make one unit of a loop with all that is below it: from now on no step changes its inside.

    for j_0: for j_1: for k_1: C   ->   for j_0: for j_1 in blockized: for k_1: C

    What it reads and writes is what its iterations do together; steps go on around it, and those
    that would move something into it, or change its loops, are refused. Its copies (the
    initialisation, what `stage` copies) are plain loops. Requires: the loop is serial and holds
    loops and one block. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    check_serial(func, node, "blockize")
    check_not_mirrored(func, node, "blockize")
    units.check_one_block(func, node, "blockize")
    return Rewrite(replace_loop(func, node, replace(node, kind=ForKind.BLOCKIZED, annotations=())))


def tensorize(func: PrimFunc, loop: Var, intrinsic: str, target: Target | None) -> Rewrite:
    """Let an instruction compute what a loop and the one inside of it do.

    for j_1 in range(16): for k_1 in range(4): C[j_1] += cast(A[k_1]) * cast(B[j_1, k_1])
    ->  for j_1 in tensorized(16, intrinsic="vpdpbusd"): ...

    The nest keeps its loops, which are what it means; lowering writes the instruction. An operand
    that all lanes share is broadcast. The initialisation and the copies of `stage` along the lanes
    become vectorized loops. Requires: a serial or blockized loop whose nest is the intrinsic's
    definition, with operands that lie together; no guard inside; a target, when there is one, that
    has the instruction. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    if node.kind is not ForKind.BLOCKIZED:
        check_serial(func, node, "tensorize")
    check_not_mirrored(func, node, "tensorize")
    known = units.check_intrinsic(func, intrinsic, target)
    units.check_one_block(func, node, "tensorize")
    marked = replace(node, kind=ForKind.TENSORIZED, intrinsic=known.name, annotations=())
    units.check_definition(func, node, known, "tensorize", target)
    return Rewrite(replace_loop(func, node, marked))


def draw_tensorize(sch: ScheduleView, rng: Random) -> Arguments:
    """Any loop and any intrinsic, which it is hardly ever: a refusal, which must have a text."""
    return {"loop": choose_any_loop(sch, rng), "intrinsic": rng.choice(tuple(INSTRUCTIONS))}


BLOCKIZE = Primitive("blockize", blockize, {"loop": LOOP}, gives=nothing, draw=draw_loop)
TENSORIZE = Primitive(
    "tensorize",
    tensorize,
    {"loop": LOOP, "intrinsic": PLAIN},
    gives=nothing,
    draw=draw_tensorize,
    asks_target=True,
)
