"""P5, races: what may run at once touches different cells, or only reads.

- Two iterations of one parallel loop, or two lanes of a vectorized one, conflict when both touch a
  cell and one writes it.
- At the root of a function each thread runs its share of every parallel loop, and thread 0 what is
  not in one. Between two statements there, at least one a parallel loop, that touch a cell, one
  writing, a barrier must stand. A buffer that is not global is another one for each thread: no
  barrier makes such a pair right.

Storage that is allocated inside of a loop is another one in each of its iterations. What the
threads of a block do is for grid_races.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...tir.buffer import Buffer
from ...tir.stmt import For, ForKind
from ..verdict import Failure
from .forms.nest import Access, Nest
from .grid_races import NestTeam, check_grid
from .relations.order import ANY, Order
from .relations.sets import Sets
from .relations.witness import Finding, element_text, iteration, runs_of

AT_ONCE = {
    ForKind.PARALLEL: "iterations of parallel loop",
    ForKind.BOUND: "blocks of loop",
    ForKind.VECTORIZED: "lanes of vectorized loop",
}


def check_races(sets: Sets, nest: Nest) -> Iterator[Finding]:
    """Check P5 for every buffer that is written."""
    team = NestTeam.of(nest)
    touched: dict[Buffer, list[Access]] = {}
    for access in nest.accesses:
        touched.setdefault(access.buffer, []).append(access)
    for accesses in touched.values():
        if any(access.write for access in accesses):
            yield from conflicts_of_loops(sets, accesses)
            yield from conflicts_of_roots(sets, accesses)
            yield from check_grid(sets, nest.barriers, team, tuple(_conflicts(accesses)))


def conflicts_of_loops(sets: Sets, accesses: Sequence[Access]) -> Iterator[Finding]:
    """Conflicts of iterations of one loop that touch one buffer."""
    inside: dict[For, list[Access]] = {}
    for access in accesses:
        for loop in access.statement.loops[len(access.fresh) :]:
            if loop.kind in AT_ONCE and not loop.is_of_threads and loop.extent > 1:
                inside.setdefault(loop, []).append(access)
    for loop, mine in inside.items():
        for one, two in _conflicts(mine):
            level = one.statement.loops.index(loop)
            orders = [Order(level, sign) for sign in ("<" if one is two else "<>")]
            found = _conflict(sets, one, two, orders, f"two {AT_ONCE[loop.kind]} '{loop.var.name}'")
            if found is not None:
                yield found
                break


def conflicts_of_roots(sets: Sets, accesses: Sequence[Access]) -> Iterator[Finding]:
    """Conflicts of statements at the root that touch one buffer and that no barrier separates."""
    private = accesses[0].buffer.scope != "global"
    what = "two statements with no barrier between them"
    if private:
        what = "different threads, each with a buffer of its own,"
    for one, two in _conflicts(accesses):
        a, b = one.statement, two.statement
        if a.root == b.root or not (a.threads or b.threads):
            continue
        found = None
        if private or a.segment == b.segment:
            found = _conflict(sets, one, two, [ANY], what)
        if found is not None:
            yield found
            return


def _conflicts(accesses: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses of which one writes, the write first."""
    for number, one in enumerate(accesses):
        if one.write:
            yield one, one
        for two in accesses[:number]:
            if one.write or two.write:
                yield (one, two) if one.write else (two, one)


def _conflict(
    sets: Sets, one: Access, two: Access, orders: Sequence[Order], what: str
) -> Finding | None:
    a, b = one.statement, two.statement
    equal = tuple(zip(one.cell, two.cell, strict=True))
    possible = sets.possible(a, one.where, b, two.where, equal, orders)
    if not possible:
        return None
    runs = sets.pairs(a, one.where, b, two.where, equal, possible)
    if sets.empty(runs):
        return None
    first, second = runs_of(runs, a, b)
    element = element_text(one.buffer.name, one.indices, first)
    verb = "write" if two.write else "write and read"
    both_runs = (iteration(a, first), iteration(b, second))
    message = f"{what} {verb} {element}"
    return Finding(Failure("P5", message, both_runs, element), one.exact and two.exact)
