"""Primitive annotate: a hint to the back end on a loop."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ....tir.analysis.fetched import fetched
from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import ANNOTATIONS, For, ForKind
from ...drawing import Arguments, ScheduleView, choose_any_loop
from ...errors import Kind, refuse
from ...nest import Rewrite, loop_of, replace_loop
from ..parameters import LOOP, PLAIN
from ..primitive import Primitive, nothing


def annotate(func: PrimFunc, loop: Var, key: str, value: int) -> Rewrite:
    """Put the hint `key` = `value` on a loop; it changes no meaning, and takes the place of one
    with the same key.

    for i in range(n): s   ->   for i in range(n, unroll_hint=4): s

    "stages": places in shared memory for what the loop's body fetches first; all but one of them
    are filled ahead, by copies that go on while the threads compute. "unroll_hint": how many copies
    of its body the C compiler should make. "stream", with the value 1: whole vectors that are
    stored below, of tensors that outlive the function, go past the caches, and a tensor that is
    read there keeps storage of its own. Requires: a known key, a
    positive value, and a loop that is one in C. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    _check_hint(func, node, key, value)
    hints = {**dict(node.annotations), key: value}
    return Rewrite(
        replace_loop(func, node, replace(node, annotations=tuple(sorted(hints.items()))))
    )


def _check_hint(func: PrimFunc, loop: For, key: str, value: int) -> None:
    """The back end knows the hint, and finds a loop to which it applies."""
    if key not in ANNOTATIONS:
        raise refuse(
            func,
            f"annotate: no hint {key!r} for loop '{loop.var.name}'; expected "
            f"{', '.join(map(repr, ANNOTATIONS))}.",
            code="annotate-key",
            kind=Kind.ARGUMENT,
        )
    if type(value) is not int or value < 1:
        raise refuse(
            func,
            f"annotate: {key} of loop '{loop.var.name}' is {value!r}; expected a positive integer.",
            code="annotate-value",
            kind=Kind.ARGUMENT,
        )
    if key == "stages" and isinstance(problem := fetched(loop), str):
        raise refuse(
            func,
            f"annotate: loop '{loop.var.name}' has nothing to fetch ahead: {problem}; expected "
            "copies into shared memory of its own, then their use.",
            code="annotate-stages",
            kind=Kind.ARGUMENT,
            hints=("compute_at puts copies below the loop, set_scope('shared') shares them.",),
        )
    if loop.kind in (ForKind.UNROLLED, ForKind.VECTORIZED):
        raise refuse(
            func,
            f"annotate: loop '{loop.var.name}' is {loop.kind.value}; expected a serial or "
            "parallel loop, which is one in C.",
            code="annotate-kind",
            kind=Kind.ARGUMENT,
            hints=("annotate the loop around it.",),
        )


def draw_annotate(sch: ScheduleView, rng: Random) -> Arguments:
    """One of two hints for any loop."""
    key, value = rng.choice((("stream", 1), ("unroll_hint", 1), ("unroll_hint", 4)))
    return {"loop": choose_any_loop(sch, rng), "key": key, "value": value}


ANNOTATE = Primitive(
    "annotate",
    annotate,
    {"loop": LOOP, "key": PLAIN, "value": PLAIN},
    gives=nothing,
    draw=draw_annotate,
)
