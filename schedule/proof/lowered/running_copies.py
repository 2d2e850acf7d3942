"""P5 for copies that go on while the threads compute: each is over where its cell is touched next.

A Commit ends a group of copies; a barrier waits for all groups but the newest `ahead - 1`, of the
smallest `ahead` in the kernel. So a copy is over at an access where at least `ahead` groups end
between the copy and the last barrier before the access. How many end before a place of the text is
a form of the loops around it, since each turn of a loop ends as many; so the pairs that fail are an
integer set, over iterations of serial loops too.

The thread that copies must wait as any other. Every store to a buffer of a Commit counts as a copy
that goes on, also one that the device does at once. A barrier or a Commit that does not stand on
every path counts for nothing, and what fails then is undecided.

Not looked at: stores to what a copy reads. A loop that copies ahead stores to nothing else that its
copies read (tir/analysis/fetched.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ....tir.stmt import For
from ...verdict import Failure
from ..forms.affine import Affine, variable
from ..forms.condition import Case, Cases, Constraint, both
from ..forms.nest import Access, BarrierAt, Statement
from ..relations.order import Equal, Order, orders_before
from ..relations.sets import Sets
from ..relations.witness import Finding, element_text, iteration, runs_of
from .cells import CellTable, overlap, touches_once
from .lanes import lane_loop
from .touches import Touches


@dataclass(frozen=True, slots=True)
class _Wait:
    """The last barrier before an access, in the iterations `where`: how many groups have ended
    there; None where there is no barrier.
    """

    where: Case
    ended: Affine | None


@dataclass(frozen=True, slots=True)
class _Outer:
    """What the loops outside of those of threads say of an access. indices: None for those of which
    other loops say something, too.
    """

    loops: tuple[For, ...]
    where: Cases
    indices: tuple[Affine | None, ...]

    @classmethod
    def of(cls, access: Access) -> _Outer:
        """That of an access."""
        statement = access.statement
        loops = _alike(statement.loops)
        known = {*statement.dims, *(loop.var for loop in loops)}
        where = tuple(
            dict.fromkeys(
                tuple(c for c in case if known.issuperset(c.form.variables()))
                for case in access.where
            )
        )
        indices = (form if known.issuperset(form.variables()) else None for form in access.indices)
        return cls(loops, where, tuple(indices))


def check_copies(
    sets: Callable[[], Sets], walk: Touches, table: CellTable, accesses: Sequence[Access]
) -> Iterator[Finding]:
    """The first copy among the accesses to one buffer that may not be over at another one."""
    buffer = accesses[0].buffer
    for root in {group.root for group in walk.groups if buffer in group.commit.buffers}:
        mine = [access for access in accesses if access.statement.root == root]
        outer = {access: _Outer.of(access) for access in mine}
        others = sorted(mine, key=lambda access: access.write)  # what reads too early says more
        known: dict[object, bool] = {}
        for one in mine:
            for two in others if one.write else ():
                pair = _Pair(walk, table, (one, outer[one]), (two, outer[two]))
                finding = pair.finding(sets, known)
                if finding is not None:
                    yield finding
                    return


class _Pair:
    """A copy, and an access to the same buffer that may come later.

    needed: groups that must have ended; ends: places where one ends, whatever the path; sure:
    whether these, and the barriers that count, are all that there are. turning: how many loops
    around both hold a barrier or the end of a group.
    """

    def __init__(
        self,
        walk: Touches,
        table: CellTable,
        copy: tuple[Access, _Outer],
        other: tuple[Access, _Outer],
    ) -> None:
        (self.copy, self.mine), (self.other, self.theirs) = copy, other
        self.table = table
        groups = [group for group in walk.groups if group.root == self.copy.statement.root]
        self.needed = min(group.commit.ahead for group in groups)
        self.ends = [
            group.at
            for group in groups
            if _is_met(walk, group.at, self.copy) and _is_met(walk, group.at, self.other)
        ]
        self.barriers = [at for at in walk.barriers if _is_met(walk, at, self.other)]
        whole = len(self.barriers) == len(walk.barriers)
        self.sure = whole and len(self.ends) == len(groups)
        self.common = _common(self.mine.loops, self.theirs.loops)
        around = (at.loops for at in (*walk.barriers, *(group.at for group in groups)))
        self.turning = max(_common(loops, self.mine.loops[: self.common]) for loops in around)

    def finding(self, sets: Callable[[], Sets], known: dict[object, bool]) -> Finding | None:
        """Runs at which the copy may go on. known: whether there are any such, as far as outer
        loops and the indices of these tell.
        """
        a = self.copy.statement
        begun = _ended(self.ends, a.loops, _own(a.loops), a.positions[-1])
        orders = self._orders()
        for wait in _waits(self.barriers, self.ends, self.other) if orders else ():
            above: Equal = ()
            if wait.ended is not None:
                above = ((begun, wait.ended.plus(-self.needed)),)
            for order in orders:
                near = order if order.same < self.common else Order(self.common)
                key = self.mine, self.theirs, near, wait, begun
                if key not in known:
                    known[key] = self._outer_ones_go_on(sets(), near, wait, above)
                found = self._failed(sets(), order, wait, above) if known[key] else None
                if found is not None:
                    return found
        return None

    def _orders(self) -> list[Order]:
        """When the copy comes first in a thread, and may touch the same cell. In different threads
        it does not without a barrier, which is for team_races.py.
        """
        a, b = (_without_lanes(x.statement) for x in (self.copy, self.other))
        orders = [
            order
            for order in orders_before(a, b, _blocks(a.loops))
            if not (order.sign and a.loops[order.same].is_of_threads)
        ]
        mine, theirs = (self.table.of(x, self.turning) for x in (self.copy, self.other))
        if mine is None or theirs is None:
            return orders
        apart = touches_once(mine) if self.copy is self.other else not overlap(mine, theirs)
        return [order for order in orders if order.same < self.turning] if apart else orders

    def _outer_ones_go_on(self, sets: Sets, order: Order, wait: _Wait, above: Equal) -> bool:
        """Whether there are such runs as far as outer loops tell."""
        mine, theirs = self.mine, self.theirs
        a = replace(self.copy.statement, loops=mine.loops)
        b = replace(self.other.statement, loops=theirs.loops)
        pairs = zip(mine.indices, theirs.indices, strict=True)
        equal = tuple((x, y) for x, y in pairs if x is not None and y is not None)
        where = both(theirs.where, (wait.where,))
        return not sets.empty(sets.pairs(a, mine.where, b, where, equal, [order], above))

    def _failed(self, sets: Sets, order: Order, wait: _Wait, above: Equal) -> Finding | None:
        """Two such runs that touch one element."""
        a, b = self.copy.statement, self.other.statement
        equal = tuple(zip(self.copy.indices, self.other.indices, strict=True))
        where = both(self.other.where, (wait.where,))
        runs = sets.pairs(a, self.copy.where, b, where, equal, [order], above)
        if sets.empty(runs):
            return None
        first, second = runs_of(runs, a, b)
        element = element_text(self.copy.buffer.name, self.copy.indices, first)
        verb = "write" if self.other.write else "write and read"
        message = f"a copy that may still go on and another access {verb} {element}"
        failure = Failure("P5", message, (iteration(a, first), iteration(b, second)), element)
        return Finding(failure, self.sure and self.copy.exact and self.other.exact)


def _is_met(walk: Touches, at: BarrierAt, access: Access) -> bool:
    """Whether all threads come to a place in each iteration of the loops around it, if they come to
    the access.
    """
    return at.runs_with(access.statement) and not any(x in walk.wavering for x, _ in at.branches)


def _without_lanes(statement: Statement) -> Statement:
    """The statement whose lanes are no loop: none of one vector comes before one of another."""
    loops = tuple(loop for loop in statement.loops if loop is not lane_loop(loop.extent))
    return replace(statement, loops=loops)


def _alike(loops: tuple[For, ...]) -> tuple[For, ...]:
    """The loops that all threads of a block run alike."""
    ends = (n for n, x in enumerate(loops) if x.is_of_threads or x is lane_loop(x.extent))
    return loops[: next(ends, len(loops))]


def _blocks(loops: tuple[For, ...]) -> int:
    return sum(loop.is_of_blocks for loop in loops)


def _common(one: tuple[For, ...], two: tuple[For, ...]) -> int:
    """How many loops hold both."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((n for n, (x, y) in pairs if x is not y), min(len(one), len(two)))


def _own(loops: tuple[For, ...]) -> tuple[Affine, ...]:
    return tuple(variable(loop.var) for loop in loops)


def _waits(
    barriers: Sequence[BarrierAt], ends: Sequence[BarrierAt], access: Access
) -> Iterator[_Wait]:
    """The last of the barriers before an access: in the same iteration of the loops around, else in
    the one before of the innermost loop that has one, else before that loop.
    """
    statement = access.statement
    loops, position = _alike(statement.loops), statement.positions[-1]
    where: Case = ()
    for depth in range(len(loops), _blocks(loops) - 1, -1):
        around = [at for at in barriers if at.loops[:depth] == loops[:depth]]
        before = [at for at in around if at.position < position]
        if before:
            yield _Wait(where, _ended_at(before[-1], ends, _own(loops[:depth])))
            return
        if depth > _blocks(loops) and around:
            own = variable(loops[depth - 1].var)
            values = (*_own(loops[: depth - 1]), own.plus(-1))
            later = (*where, Constraint(own.plus(-1)))
            yield _Wait(later, _ended_at(around[-1], ends, values))
            where = (*where, Constraint(own, equality=True))
    yield _Wait(where, None)


def _ended_at(at: BarrierAt, ends: Sequence[BarrierAt], values: tuple[Affine, ...]) -> Affine:
    """How many groups have ended at a place, at these values of outer loops and in the last
    iteration of the others around it.
    """
    last = tuple(Affine((), loop.extent - 1) for loop in at.loops[len(values) :])
    return _ended(ends, at.loops, (*values, *last), at.position)


def _ended(
    ends: Sequence[BarrierAt], loops: tuple[For, ...], values: tuple[Affine, ...], position: int
) -> Affine:
    """How many groups have ended since the block began, at values of the loops around a place."""
    total = Affine()
    for end in ends:
        common = _common(end.loops, loops)
        extents = [loop.extent for loop in end.loops]
        for depth in range(_blocks(loops), common):
            total += values[depth].scaled(math.prod(extents[depth + 1 :]))
        if end.position < position:
            total = total.plus(math.prod(extents[common:]))
    return total
