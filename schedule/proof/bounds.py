"""P4, bounds: every physical index lies in its buffer wherever the access happens. Prefetches are
no accesses.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...tir.dim import Dim
from ..verdict import Failure
from .condition import both, inside, outside
from .nest import Access, Nest
from .sets import Sets
from .shortcuts import all_implied
from .witness import Finding, element_text, iteration, runs_of


def check_bounds(sets: Sets, nest: Nest) -> Iterator[Finding]:
    """Check P4 for every load and store."""
    for access in nest.accesses:
        found = _outside(sets, access)
        if found is not None:
            yield found


def _outside(sets: Sets, access: Access) -> Finding | None:
    statement, shape = access.statement, access.buffer.extents
    beyond = outside(access.indices, shape, statement.ranges)
    if not beyond:
        return None
    within = inside(access.indices, shape, statement.ranges)
    if sets.shortcuts and all_implied(access.where, within, statement.ranges):
        return None
    runs = sets.domain(statement, both(access.where, beyond))
    if sets.empty(runs):
        return None
    (at,) = runs_of(runs, statement)
    element = element_text(access.buffer.name, access.indices, at)
    extents = ", ".join(e.name if isinstance(e, Dim) else str(e) for e in shape) or "()"
    verb = "stores to" if access.write else "loads"
    message = (
        f"block '{statement.name}' {verb} {element}; '{access.buffer.name}' has shape [{extents}]"
    )
    return Finding(Failure("P4", message, (iteration(statement, at),), element), access.exact)
