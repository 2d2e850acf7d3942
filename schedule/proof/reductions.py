"""P3, reductions: complete before anybody reads them, and never read from a copy that is out of
date.

P1 gives that each point and each initialisation runs once, P2 that each update finds its own
element. So the first thing that happens to an element is its initialisation, and what remains to be
shown is:
- complete: no update of an element comes after a read of it by another block;
- fresh: between the write that reaches a read and the read, the element was not updated in another
  place (a tile that was copied out too early, or loaded too early).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.stmt import Role
from ...tir.visit import stores
from ..verdict import Failure
from .coverage import groups_of
from .flow import END, Flow, Reaching, reaching
from .forms.affine import Undecided
from .forms.condition import ALWAYS
from .forms.families import Families, Family
from .forms.nest import Nest
from .relations.order import Order, common_loops, orders_before, text_before
from .relations.pairing import Pairs, Tagged
from .relations.sets import Sets
from .relations.shortcuts import all_implied, run_for, same_element_same_cell
from .relations.witness import Finding, element_text, iteration, runs_of


def check_reductions(
    sets: Sets, nest: Nest, pairs: Pairs, families: Families, flow: Flow
) -> Iterator[Finding]:
    """Check P3 for every family that reduces."""
    rounds = {group.family.name: group.rounds for group in groups_of(nest, families)}
    for family in families.blocks.values():
        if not family.is_reduction:
            continue
        for tensor in family.tensors:
            changes = [
                w for w in pairs.writes if w.tensor == tensor and w.statement.role is not Role.COPY
            ]
            again = any(w.statement.block.recomputed for w in changes)
            reads = [r for r in (*pairs.reads, *flow.ends) if r.tensor == tensor]
            for read in reads:
                found = _apart(sets, family, read, changes)
                if found is None:
                    found = _incomplete(sets, read, changes, rounds[family.name])
                if found is None:
                    found = _stale(sets, read, changes, flow.writes, rounds[family.name])
                if found is not None:
                    yield Finding(found.failure, found.sure and not again)


def _apart(sets: Sets, family: Family, read: Tagged, changes: Sequence[Tagged]) -> Finding | None:
    """A run that reads what another accumulator of the family holds, at another point than its own
    does: the two are not updated together.

    Stores of one block are. Elsewhere the update of the other accumulator at the very point of the
    read either comes before it, or may come too late for a later point.
    """
    if not read.own or read.into == read.tensor:
        return None
    here = read.statement
    updates = [c for c in changes if c.statement.role is Role.COMPUTE]
    parts = [s.block for s in (here, *(c.statement for c in updates))]
    if all(len(stores(block.body)) == len(family.stores) for block in parts):
        return None
    for change in updates:
        there = change.statement
        if there.block is here.block:
            continue
        equal = tuple(zip(there.point, here.point, strict=True))
        orders = sets.possible(
            there, change.access.where, here, read.access.where, equal, orders_before(there, here)
        )
        runs = sets.pairs(there, change.access.where, here, read.access.where, equal, orders)
        if orders and not sets.empty(runs):
            first, second = runs_of(runs, there, here)
            element = element_text(read.tensor, read.element, second)
            message = (
                f"block '{here.name}' reads {element}, which block '{there.name}' has updated at "
                "this very point; their values must be computed before any is written"
            )
            both_runs = iteration(there, first), iteration(here, second)
            return Finding(Failure("P3", message, both_runs, element), read.access.exact)
    names = sorted({c.statement.name for c in updates} | {here.name})
    raise Undecided(
        f"blocks {', '.join(map(repr, names))} update accumulators that belong together"
    )


def _incomplete(sets: Sets, read: Tagged, changes: Sequence[Tagged], rounds: int) -> Finding | None:
    """A run of another block that reads an element before one of its updates."""
    if read.own or read.statement.role is Role.COPY:
        return None
    for change in changes:
        if common_loops(read.statement, change.statement) < rounds:
            continue  # a whole round comes before the read, or after it
        same = rounds
        found = _pair(sets, read, change, orders_before(read.statement, change.statement, same))
        if found is not None:
            at, later = found
            element = element_text(read.tensor, read.element, at)
            message = (
                f"block '{read.statement.name}' reads {element} before block "
                f"'{change.statement.name}' has updated it"
            )
            runs = iteration(read.statement, at), iteration(change.statement, later)
            return Finding(Failure("P3", message, runs, element), read.access.exact)
    return None


def _pair(
    sets: Sets, a: Tagged, b: Tagged, orders: Sequence[Order]
) -> tuple[Mapping[Var, int], Mapping[Var, int]] | None:
    """Runs of two accesses to one element, in one of `orders`; None when there are none."""
    orders = _possible(sets, a, b, orders)
    if not orders:
        return None
    one, two = a.statement, b.statement
    equal = tuple(zip(a.element, b.element, strict=True))
    runs = sets.pairs(one, a.access.where, two, b.access.where, equal, orders)
    if sets.empty(runs):
        return None
    first, second = runs_of(runs, one, two)
    return first, second


def _possible(sets: Sets, a: Tagged, b: Tagged, orders: Sequence[Order]) -> list[Order]:
    equal = tuple(zip(a.element, b.element, strict=True))
    return sets.possible(a.statement, a.access.where, b.statement, b.access.where, equal, orders)


def _stale(
    sets: Sets,
    read: Tagged,
    changes: Sequence[Tagged],
    writes: Mapping[Buffer, Sequence[Tagged]],
    rounds: int,
) -> Finding | None:
    """A run that reads an element which has been updated elsewhere since the read cell was written.

    Only updates inside the scope of the cell's Alloc, in the same iteration of the loops around it,
    can come between.
    """
    fresh = read.access.fresh
    reached: Reaching | None = None  # asked of isl once
    for change in changes:
        common = common_loops(change.statement, read.statement)
        if common < len(fresh) or (sets.shortcuts and same_element_same_cell(change, read)):
            continue
        same = max(len(fresh), min(rounds, common))
        orders = orders_before(change.statement, read.statement, same)
        if not _possible(sets, change, read, orders):
            continue
        local = writes.get(read.access.buffer)
        if not local:
            return None  # nothing was ever stored there: P2 has said so
        if sets.shortcuts and any(_copied(change, write, read) for write in local):
            continue
        if _pair(sets, change, read, orders) is None:
            continue
        reached = reached or reaching(sets, local, [read])
        found = _overtaken(sets, change, read, reached, orders)
        if found is not None:
            return found
    return None


def _copied(change: Tagged, write: Tagged, read: Tagged) -> bool:
    """Whether `write` brings each result of `change` into the cell of `read` before any later run
    of `read`.

    The two share loops and stand in this order, `write` has a run for each run of `change`, and
    `read` stands on one side of both, so that what comes after the one comes after the other.
    """
    u, w, r = change.statement, write.statement, read.statement
    common = common_loops(u, r)
    between = text_before(u, r) and text_before(r, w)
    beside = common == common_loops(w, r) and common <= common_loops(u, w) and not between
    if not beside or not text_before(u, w) or not same_element_same_cell(write, read):
        return False
    run = run_for(write, write.element, change.element, u)
    return run is not None and all_implied(change.access.where, run, u.ranges)


def _overtaken(
    sets: Sets, change: Tagged, read: Tagged, reached: Reaching, orders: Sequence[Order]
) -> Finding | None:
    """isl's answer: a write that reaches the read, with a run of `change` between the two."""
    equal = tuple(zip(change.element, read.element, strict=True))
    u, r = change.statement, read.statement
    later = sets.pairs(u, change.access.where, r, read.access.where, equal, orders)
    for reach in reached.reaches:
        w = reach.write.statement
        before = sets.pairs(w, ALWAYS, u, ALWAYS, (), orders_before(w, u))
        both = sets.unnamed(reach.runs).reverse().range_product(later.reverse())
        bad = both.intersect_range(before.wrap())
        if sets.empty(bad):
            continue
        at, wrote, changed = runs_of(bad, r, w, u)
        element = element_text(read.tensor, read.element, at)
        reader = END if r.name == END else f"block '{r.name}'"
        message = (
            f"{reader} reads {element} as block '{w.name}' left it, but block '{u.name}' has "
            "updated it elsewhere since"
        )
        runs = iteration(w, wrote), iteration(u, changed)
        return Finding(Failure("P3", message, runs, element), read.access.exact)
    return None
