"""Which elements of a buffer belong to one thread of a block, as far as their index says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....tir.analysis.bounds import form_bounds
from ....tir.analysis.linear import Linear, linear
from ....tir.expr import Expr, Var
from ....tir.stmt import For


@dataclass(frozen=True, slots=True)
class Dealt:
    """Along one dimension the elements go round the threads of an axis, `step` at a time: element i
    is of thread (i - start) // step % threads, where `start` is the same for the whole block.
    """

    axis: str
    dimension: int
    step: int
    threads: int
    start: frozenset[tuple[Expr, int]]


def dealt(indices: Sequence[Expr], loops: Sequence[For]) -> frozenset[Dealt]:
    """What the indices of an access below `loops` say of the threads that touch an element."""
    by_var = {loop.var: loop for loop in loops}
    forms = [linear(index) for index in indices]
    return frozenset(
        found
        for dimension, form in enumerate(forms)
        for atom, step in form.terms
        if isinstance(atom, Var) and atom in by_var and by_var[atom].is_of_threads and step > 0
        if (found := _dealt(form, by_var[atom], step, dimension, by_var)) is not None
    )


def _dealt(
    form: Linear, loop: For, step: int, dimension: int, loops: Mapping[Var, For]
) -> Dealt | None:
    """The pattern start + step*thread + below, plus multiples of step*threads, with 0 <= below <
    step.
    """
    start, below = [], []
    for atom, factor in form.terms:
        if atom is loop.var:
            continue
        if isinstance(atom, Var) and atom in loops and loops[atom].is_of_blocks:
            start.append((atom, factor))
        elif factor % (step * loop.extent):
            below.append((atom, factor))
    ranges = {var: (0, other.extent - 1) for var, other in loops.items()}
    low, high = form_bounds(Linear(tuple(below), form.constant), ranges)
    if low is None or high is None or low < 0 or high >= step:
        return None
    return Dealt(loop.axis, dimension, step, loop.extent, frozenset(start))
