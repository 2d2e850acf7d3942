"""What a loop, and a barrier below loops, must be at every stage."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import INT64
from ..instructions.instructions import INSTRUCTIONS
from ..stmt import AXES, For, ForKind

Problem = tuple[str, str]  # what is wrong, and the code of the error


def loop_problem(loop: For, around: Sequence[For]) -> Problem | None:
    """What is wrong with a loop below the loops `around`, outermost first; None for nothing."""
    name, kind = loop.var.name, loop.kind.value
    if loop.intrinsic not in (INSTRUCTIONS if loop.kind is ForKind.TENSORIZED else ("",)):
        return (
            f"loop '{name}' is {kind} and has intrinsic '{loop.intrinsic}'; expected a known one "
            "on a tensorized loop, and none elsewhere",
            "verify-intrinsic",
        )
    if loop.extent < 0 or loop.var.type != INT64:
        return (
            f"loop '{name}' is {loop.var.type} and has extent {loop.extent}; expected int64 and 0 "
            "or more",
            "verify-extent",
        )
    if loop.axis not in (AXES if loop.kind is ForKind.BOUND else ("",)):
        return (
            f"loop '{name}' is {kind} and has axis '{loop.axis}'; expected one of a grid on a "
            "bound loop, and none elsewhere",
            "verify-axis",
        )
    if loop.axis and any(outer.axis == loop.axis for outer in around):
        return f"loop '{name}' stands inside another loop of '{loop.axis}'", "verify-axis-twice"
    if loop.is_of_blocks and not all(outer.is_of_blocks for outer in around):
        return (
            f"loop '{name}' of blocks stands inside loop '{around[-1].var.name}'; expected loops "
            "of blocks alone around it",
            "verify-blocks",
        )
    return None


def barrier_problem(around: Sequence[For], root: bool) -> Problem | None:
    """What is wrong with the place of a barrier; None for nothing."""
    alone = next((x for x in around if x.is_of_threads or x.kind is ForKind.PARALLEL), None)
    if root or (around and alone is None):
        return None
    where = "a branch" if alone is None else f"loop '{alone.var.name}' of threads"
    return f"a barrier stands inside {where}; expected it where all threads come", "verify-barrier"
