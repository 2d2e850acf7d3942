"""prove: is this loop nest the same computation as its canonical form? Decided with integer sets,
whole function at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import islpy as isl

from ...tir.analysis.specialise import exchange_dims
from ...tir.dim import Dim
from ...tir.func import PrimFunc
from ..verdict import ASSUMING, PROVED, REFUTED, UNKNOWN, Failure, Verdict
from .bounds import check_bounds
from .coverage import check_coverage
from .flow import check_flow
from .forms.affine import Undecided
from .forms.budget import MAX_OPERATIONS, Budget, used_up
from .forms.condition import Cases
from .forms.families import Families, read_families
from .forms.nest import Nest, Statement
from .forms.statements import read_nest
from .races import check_races
from .reductions import check_reductions
from .relations.pairing import Pairs, pair
from .relations.sets import Sets
from .relations.witness import Finding, iteration, runs_of
from .unfused import unfused


def prove(
    nest: PrimFunc,
    canonical: PrimFunc,
    max_operations: int = MAX_OPERATIONS,
    *,
    shortcuts: bool = True,
    budget: Budget | None = None,
) -> Verdict:
    """Prove that `nest` (stage NEST, or earlier) computes what its canonical form does: properties
    P1 to P5.

    It is a pure function of the two. "refuted" comes with concrete iterations; "unknown" with
    reasons: an index or a guard depends on data, or all properties together would take isl more
    than `max_operations` elementary steps, or more than `budget` has.
    shortcuts: whether plain arithmetic may answer before isl is asked; without it the same is
    found, slower.
    """
    started = time.perf_counter()
    sets = Sets(
        max_operations, nest.dims, nest.facts, shortcuts=shortcuts, budget=budget or Budget()
    )
    proof = _Proof(sets)
    try:
        plain = unfused(nest)
        read = read_nest(nest)  # as threads run it
        in_order = read if plain is nest else read_nest(plain)
        families = read_families(exchange_dims(canonical, _dims(nest, canonical)))
    except Undecided as undecided:
        return Verdict(UNKNOWN, reasons=(str(undecided),), milliseconds=_since(started))
    proof.run("P4", lambda: check_bounds(sets, in_order))
    proof.run("P5", lambda: check_races(sets, read))  # before what may use up all operations
    proof.run("P2", lambda: proof.elements(in_order, families))
    return proof.verdict(_since(started))


def _dims(nest: PrimFunc, canonical: PrimFunc) -> dict[Dim, Dim]:
    """The dim of the nest for each of the canonical form: that of its name. Raises: Undecided."""
    if set(nest.dims) == set(canonical.dims):
        return {dim: dim for dim in nest.dims}
    mine = {(dim.name, dim.low, dim.high): dim for dim in nest.dims}
    theirs = {(dim.name, dim.low, dim.high): dim for dim in canonical.dims}
    if len(mine) != len(nest.dims) or mine.keys() != theirs.keys():
        raise Undecided("the nest and its canonical form have different sizes that a call decides")
    return {dim: mine[key] for key, dim in theirs.items()}


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3


class _Proof:
    """The findings of the properties checked so far."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.failures: list[Failure] = []
        self.reasons: list[str] = []
        self.assumptions: list[str] = []

    def run(self, name: str, check: Callable[[], Iterable[Finding]]) -> None:
        """Check one property, with what the others left of the operations."""
        try:
            for finding in check():
                if finding.sure:
                    self.failures.append(finding.failure)
                else:
                    self.reasons.append(f"it may be that {finding.failure}")
        except Undecided as undecided:
            self.reasons.append(f"{name}: {undecided}")
        except isl.Error as error:
            self.reasons.append(f"{name}: {used_up(error, self.sets.max_operations)}")

    def elements(self, nest: Nest, families: Families) -> Iterable[Finding]:
        """P1, P2 and P3: what is computed where, and who reads it."""
        pairs = pair(nest, families, self.is_empty)
        self.assumptions += pairs.assumptions
        self.run("P1", lambda: check_coverage(self.sets, nest, families, pairs))
        yield from self.obligations(pairs)
        flow = check_flow(self.sets, nest, pairs, families)
        yield from flow.findings
        self.run("P3", lambda: check_reductions(self.sets, nest, pairs, families, flow))

    def is_empty(self, statement: Statement, where: Cases) -> bool:
        """Whether no run of a statement lies in a domain."""
        return not where or self.sets.empty(self.sets.domain(statement, where))

    def obligations(self, pairs: Pairs) -> Iterable[Finding]:
        """What the pairing left to be shown."""
        for item in pairs.obligations:
            runs = self.sets.domain(item.statement, item.where)
            if not self.sets.empty(runs):
                (at,) = runs_of(runs, item.statement)
                message = f"in block '{item.statement.name}' {item.claim}"
                yield Finding(Failure("P2", message, (iteration(item.statement, at),)))

    def verdict(self, milliseconds: float) -> Verdict:
        """All findings as one value."""
        if self.failures:
            status = REFUTED
        elif self.reasons:
            status = UNKNOWN
        else:
            status = ASSUMING if self.assumptions else PROVED
        return Verdict(
            status,
            tuple(sorted(dict.fromkeys(self.failures), key=lambda failure: failure.property)),
            tuple(dict.fromkeys(self.assumptions)),
            tuple(dict.fromkeys(self.reasons)),
            milliseconds,
            self.sets.questions,
        )
