"""P4, bounds: every physical index lies in its buffer wherever the access happens. Prefetches are
no accesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...tir.buffer import Buffer
from ...tir.dim import Dim
from ...tir.expr import Var
from ..verdict import Failure
from .forms.condition import both, inside, outside
from .forms.nest import Access, Nest
from .relations.sets import Sets
from .relations.shortcuts import all_implied
from .relations.witness import Finding, element_text, iteration, runs_of


def check_bounds(sets: Sets, nest: Nest) -> Iterator[Finding]:
    """Check P4 for every load and store."""
    for access in nest.accesses:
        at = beyond(sets, access)
        if at is not None:
            yield _outside(access, at)


def beyond(sets: Sets, access: Access) -> Mapping[Var, int] | None:
    """A run at which an index of an access lies outside of its buffer; None where there is none."""
    statement, shape = access.statement, access.buffer.extents
    outer = outside(access.indices, shape, statement.ranges)
    if not outer:
        return None
    within = inside(access.indices, shape, statement.ranges)
    if sets.shortcuts and all_implied(access.where, within, statement.ranges):
        return None
    runs = sets.domain(statement, both(access.where, outer))
    if sets.empty(runs):
        return None
    (at,) = runs_of(runs, statement)
    return at


def _outside(access: Access, at: Mapping[Var, int]) -> Finding:
    statement = access.statement
    element = element_text(access.buffer.name, access.indices, at)
    verb = "stores to" if access.write else "loads"
    message = (
        f"block '{statement.name}' {verb} {element}; "
        f"'{access.buffer.name}' has shape [{shape_text(access.buffer)}]"
    )
    return Finding(Failure("P4", message, (iteration(statement, at),), element), access.exact)


def shape_text(buffer: Buffer) -> str:
    """The extents of a buffer in words; those that a call decides by name."""
    return ", ".join(e.name if isinstance(e, Dim) else str(e) for e in buffer.extents) or "()"
