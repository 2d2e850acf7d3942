"""What a model's branches and loops have become, one line for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...tir.program.program import Branch, Copy, Program, Repeat, Slice, Step, launches_of
from ..ir.ir import megabytes
from .flatten import FlatBlock, loops_in


def flow_lines(block: FlatBlock, program: Program) -> Iterator[str]:
    """The lines of a program whose blocks these are, in order."""
    carried = {loop.number: len(loop.carried) for loop in loops_in(block)}
    yield from _lines(program.body, carried)


def _lines(steps: Sequence[Step], carried: dict[int, int]) -> Iterator[str]:
    for step in steps:
        match step:
            case Branch():
                then, otherwise = (len(launches_of(s)) for s in (step.then, step.otherwise))
                yield f"branch: {step.label}: {then} launches, or else {otherwise}"
                yield from _lines((*step.then, *step.otherwise), carried)
            case Repeat():
                asked = step.count is None or isinstance(step.count, Slice)
                often = "as data say" if asked else f"{step.count} times"
                moved = [one for one in step.body if isinstance(one, Copy)]
                size = sum(copy.source.bytes for copy in moved)
                yield (
                    f"loop: {step.label}: {often}, {len(launches_of(step.body))} launches, "
                    f"{carried[step.loop]} carried values, {megabytes(size)} copied each time"
                )
                yield from _lines(step.body, carried)
