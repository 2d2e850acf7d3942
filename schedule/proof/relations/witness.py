"""Findings: a failed question turned into concrete runs, in the words of the nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from ....tir.expr import Var
from ...verdict import Failure, Iteration
from ..forms.affine import Affine
from ..forms.nest import Statement
from .sets import run_at, sample


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure, and whether it is sure: what may happen, depending on data, is no refutation."""

    failure: Failure
    sure: bool = True


def iteration(statement: Statement, run: Mapping[Var, int]) -> Iteration:
    """A run of a statement by its block, the sizes of the call and the names of its loops."""
    sizes = tuple((dim.name, run[dim]) for dim in statement.dims)
    values = zip(statement.loop_names, statement.loops, strict=True)
    return Iteration(statement.name, (*sizes, *((name, run[loop.var]) for name, loop in values)))


def element_text(tensor: str, element: Sequence[Affine], run: Mapping[Var, int]) -> str:
    """One element in words: C[3, 5]."""
    return f"{tensor}[{', '.join(str(form.value(run)) for form in element) or '()'}]"


def runs_of(relation: isl.Map | isl.Set, *statements: Statement) -> tuple[Mapping[Var, int], ...]:
    """A member of a relation, as one run of each of `statements`, whose loops are its coordinates
    in order.
    """
    point = sample(relation)
    assert point is not None, "asked for a member of an empty relation"
    runs = []
    start = len(statements[0].dims)
    sizes = point[:start]
    for statement in statements:
        end = start + len(statement.loops)
        runs.append(run_at(statement, (*sizes, *point[start:end])))
        start = end
    return tuple(runs)
