"""P5 for a grid: what different threads of a block do has no order but that of barriers.

- A thread is the values of the loops that are bound to threads; where an axis has no loop, it is
  the first along it, or all are (tir/analysis/threads.py).
- Threads that join values of their own may be more than these: then each value is read by several.
- Loops of blocks, and serial ones outside of those of threads, are run by all threads of a block
  alike. So two runs in different threads that touch a cell, one writing, need a barrier that all
  threads pass between them: in the text between the two, where they agree on those loops; else, in
  the iteration of the earlier run behind it, or in that of the later one before it.
- Storage that the threads of a block share is there once: iterations of serial loops use it again.
- A buffer of a thread's own ("register", "thread") is another one for each thread: no barrier makes
  a pair right of which one thread does not have what the other one wrote.

The same is said of a nest and of lowered code (lowered/team_races.py): each has a `Team` that knows
which thread runs what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...tir.analysis.threads import Kept, kept_by_all, reduces_over
from ...tir.stmt import THREAD_AXES
from ...tir.visit import stores
from ..verdict import Failure
from .forms.affine import Affine, variable
from .forms.nest import Access, BarrierAt, Nest, Statement
from .relations.order import Order, common_loops
from .relations.sets import Sets
from .relations.witness import Finding, element_text, iteration, runs_of

Threads = tuple[Affine | None, ...]  # along each axis the number of the thread; None: all of them


class Team(Protocol):
    """The threads of the blocks of a function."""

    @property
    def extents(self) -> Mapping[tuple[int, str], int]:
        """Threads along each axis, by the number of the statement at the root."""

    def threads(self, access: Access) -> Threads:
        """Which threads of its block an access is of."""


@dataclass(frozen=True, slots=True)
class NestTeam:
    """The threads of the blocks of a nest.

    kept: what all threads along an axis have set; extents: threads along each axis, by the number
    of the statement at the root.
    """

    kept: Kept
    extents: Mapping[tuple[int, str], int]

    @classmethod
    def of(cls, nest: Nest) -> NestTeam:
        """Those that a nest's loops make."""
        extents: dict[tuple[int, str], int] = {}
        for statement in nest.statements:
            for loop in statement.loops if statement.threads else ():
                key = statement.root, loop.axis
                extents[key] = max(extents.get(key, 1), loop.extent)
        return cls(kept_by_all(nest.func.body), extents)

    def threads(self, access: Access) -> Threads:
        """Which threads of its block an access is of."""
        return tuple(self._along(axis, access) for axis in THREAD_AXES)

    def _along(self, axis: str, access: Access) -> Affine | None:
        statement = access.statement
        loop = next((loop for loop in statement.loops if loop.axis == axis), None)
        target = statement.store.buffer
        if loop is None:
            return None if axis in self.kept.get(target, ()) else Affine()
        if not reduces_over(statement.block, loop):
            return variable(loop.var)
        if any(access.buffer is store.buffer for store in stores(statement.block.body)):
            return None if access.buffer.is_private else Affine()
        whole = loop.extent == self.extents[statement.root, axis]
        return variable(loop.var) if whole else None


def check_grid(
    sets: Sets,
    barriers: Sequence[BarrierAt],
    team: Team,
    pairs: Sequence[tuple[Access, Access]],
) -> Iterator[Finding]:
    """The first conflict of threads among pairs of accesses to one buffer, one of them writing."""
    for one, two in pairs:
        a, b = one.statement, two.statement
        alone = _first_thread_loop(a, b) is None and None not in (
            *team.threads(one),
            *team.threads(two),
        )
        if a.root != b.root or alone:
            continue
        finding = conflict(sets, team, one, two, unparted_orders(barriers, one, two))
        if finding is not None:
            yield finding
            return


def _first_thread_loop(*statements: Statement) -> int | None:
    """Where the outermost loop of threads stands in one of the statements; None in none."""
    found = [n for s in statements for n, loop in enumerate(s.loops) if loop.is_of_threads]
    return min(found, default=None)


def unparted_orders(barriers: Sequence[BarrierAt], one: Access, two: Access) -> list[Order]:
    """The orders of two runs of one block that no barrier parts."""
    a, b = one.statement, two.statement
    blocks = sum(loop.is_of_blocks for loop in a.loops)
    if one.buffer.is_private:
        return [Order(blocks)]
    first = _first_thread_loop(a, b)
    shared = common_loops(a, b)
    alike = shared if first is None else min(first, shared)
    found = [] if _parted(barriers, a, b, alike) else [Order(alike)]
    for level in range(blocks, alike):
        if not _carried(barriers, a, b, level):
            found.append(Order(level, "<"))
        if not _carried(barriers, b, a, level):
            found.append(Order(level, ">"))
    return found


def _parted(barriers: Sequence[BarrierAt], a: Statement, b: Statement, alike: int) -> bool:
    """Whether a barrier stands between the two, in the same iteration of the loops that all threads
    run alike.
    """
    low, high = sorted((a.positions[-1], b.positions[-1]))
    return any(
        low < barrier.position < high
        and barrier.loops[:alike] == a.loops[:alike]
        and (barrier.runs_with(a) or barrier.runs_with(b))
        for barrier in barriers
    )


def _carried(barriers: Sequence[BarrierAt], early: Statement, late: Statement, level: int) -> bool:
    """Whether a barrier runs behind `early`, or before `late`, in its iteration of the loop at
    `level`.
    """
    for barrier in barriers:
        if barrier.loops[: level + 1] != early.loops[: level + 1]:
            continue
        behind = barrier.position > early.positions[-1] and barrier.runs_with(early)
        before = barrier.position < late.positions[-1] and barrier.runs_with(late)
        if behind or before:
            return True
    return False


def _apart(team: Team, one: Access, two: Access) -> Iterator[tuple[tuple[Affine, Affine], ...]]:
    """The ways in which two accesses may be of different threads: forms of which the first is the
    greater, or nothing, where they are whatever the iterations.

    Of a buffer of a thread's own: in which the thread of the second does not have what the first
    wrote.
    """
    private, root = one.buffer.is_private, one.statement.root
    threads = zip(THREAD_AXES, team.threads(one), team.threads(two), strict=True)
    for axis, mine, other in threads:
        if mine is not None and other is not None:
            yield ((mine, other),)
            yield ((mine.scaled(-1), other.scaled(-1)),)
        elif team.extents.get((root, axis), 1) > 1:
            has_it = mine is None or two.write
            if not (private and has_it):
                yield ()


def conflict(
    sets: Sets, team: Team, one: Access, two: Access, orders: Sequence[Order]
) -> Finding | None:
    """Two runs of different threads, in one of the orders, that touch one element; the first access
    writes.
    """
    a, b = one.statement, two.statement
    private = one.buffer.is_private
    cells = (one.cell, two.cell) if private else (one.indices, two.indices)
    equal = tuple(zip(*cells, strict=True))
    possible = sets.possible(a, one.where, b, two.where, equal, orders) if orders else ()
    if not possible:
        return None
    for ahead in _apart(team, one, two):
        runs = sets.pairs(a, one.where, b, two.where, equal, possible, ahead)
        if sets.empty(runs):
            continue
        first, second = runs_of(runs, a, b)
        element = element_text(one.buffer.name, one.indices, first)
        verb = "write" if two.write else "write and read"
        what = (
            f"two threads, each with a '{one.buffer.name}' of its own,"
            if private
            else "two threads with no barrier between them"
        )
        both = (iteration(a, first), iteration(b, second))
        failure = Failure("P5", f"{what} {verb} {element}", both, element)
        return Finding(failure, one.exact and two.exact)
    return None
