"""P5 for the threads of one block of a grid, on lowered code: the theorem of grid_races.py, with
the barriers that stand there after all passes.

Accesses between which the same barriers stand are of one phase; which orders of two phases no
barrier parts is asked once. Of the pairs that are left plain arithmetic answers for nearly all
(cells.py), isl for the rest.

Not looked at: registers, which another thread cannot touch (what threads give each other there is
proved of the nest), and two elements that share a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..forms.nest import Access, BarrierAt
from ..grid_races import Threads, conflict, unparted_orders
from ..relations.order import Order
from ..relations.sets import Sets
from ..relations.witness import Finding
from .cells import AccessedCells, CellTable, keep_apart, may_meet
from .touches import Touches


@dataclass(frozen=True, slots=True)
class LoweredTeam:
    """The threads of the blocks of a lowered function, as a walk has found them."""

    walk: Touches

    @property
    def extents(self) -> Mapping[tuple[int, str], int]:
        """Threads along each axis, by the number of the statement at the root."""
        return self.walk.extents

    def threads(self, access: Access) -> Threads:
        """Which threads of its block an access is of."""
        return self.walk.threads_of(access)


def check_team(
    sets: Callable[[], Sets], walk: Touches, table: CellTable, accesses: Sequence[Access]
) -> Iterator[Finding]:
    """The first conflict of threads among the accesses to one buffer."""
    team = table.team
    for mine, others in _unparted(walk.barriers, accesses):
        for order in unparted_orders(walk.barriers, mine[0], others[0]):
            for one, two in _suspects(table, mine, others, order):
                finding = conflict(sets(), team, one, two, [order])
                if finding is not None:
                    yield finding
                    return


def _unparted(
    barriers: Sequence[BarrierAt], accesses: Sequence[Access]
) -> Iterator[tuple[list[Access], list[Access]]]:
    """The stores of one phase and the accesses of another, or of the same; of two stores once."""
    phases: dict[object, list[Access]] = {}
    depth = max((len(barrier.branches) for barrier in barriers), default=0)
    for access in accesses:
        statement = access.statement
        first = next((n for n, x in enumerate(statement.loops) if x.is_of_threads), None)
        before = sum(barrier.position < statement.positions[-1] for barrier in barriers)
        around = statement.loops[:first], first is None, statement.branches[:depth]
        phases.setdefault((statement.root, before, around), []).append(access)
    roots = {key: accesses[0].statement.root for key, accesses in phases.items()}
    for number, (key, found) in enumerate(phases.items()):
        mine = [access for access in found if access.write]
        for place, (other, listed) in enumerate(phases.items()):
            others = [access for access in listed if place >= number or not access.write]
            if mine and others and roots[key] == roots[other]:
                yield mine, others


def _suspects(
    table: CellTable, mine: Iterable[Access], others: Iterable[Access], order: Order
) -> Iterator[tuple[Access, Access]]:
    """The pairs of which arithmetic does not show that, in an order, different threads keep to
    different cells.
    """
    some, rest = _by_base(table, mine, order.same), _by_base(table, others, order.same)
    for stores in some.values():
        for touched in rest.values():
            if _may_meet(stores, touched) is False:
                continue
            for one, cells in stores:
                for two, more in touched:
                    if cells is None or more is None or _pair_meets(cells, more):
                        yield one, two


Known = list[tuple[Access, AccessedCells | None]]


def _by_base(table: CellTable, accesses: Iterable[Access], same: int) -> dict[object, Known]:
    found: dict[object, Known] = {}
    for access in accesses:
        cells = table.of(access, same)
        key = None if cells is None else (cells.parts, cells.base, cells.ranges)
        found.setdefault(key, []).append((access, cells))
    return found


def _may_meet(stores: Known, touched: Known) -> bool | None:
    mine = [cells for _, cells in stores if cells is not None]
    other = [cells for _, cells in touched if cells is not None]
    return may_meet(mine, other) if mine and other else None


def _pair_meets(mine: AccessedCells, other: AccessedCells) -> bool:
    found = may_meet([mine], [other])
    return not keep_apart(mine, other) if found is None else found
