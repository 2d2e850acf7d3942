"""P1, coverage: every point of every block runs, exactly once unless the block is marked recomputed.

The points of a family are the values of its iteration variables; its statements together must reach each one. Points outside
the domain may run only in blocks marked padded (that nobody reads what they set is P2's business). A recomputed reduction
runs in rounds, one per iteration of the loops that hold all its statements: within a round each point runs once, or the
element is not touched at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...tir.stmt import IterVar, Role
from ..verdict import Failure
from .affine import Affine, variable
from .condition import Cases, both, inside, negated
from .order import Order, common_loops, orders_before
from .pairing import Families, Family
from .sets import Sets
from .shortcuts import Box, box_of
from .statements import Nest, Statement
from .witness import Finding, iteration, runs_of


@dataclass(frozen=True, slots=True)
class Group:
    """The statements of one family and role: they share the work of one block.

    rounds: of a recomputed reduction, the number of outermost loops that hold all its statements; else 0.
    """

    family: Family
    role: Role
    statements: tuple[Statement, ...]
    rounds: int

    @property
    def iters(self) -> tuple[IterVar, ...]:
        """The iteration variables that make a point."""
        return self.family.iters(self.role)

    @property
    def recomputed(self) -> bool:
        """Whether points may run more than once."""
        return any(s.block.recomputed for s in self.statements)

    def valid(self, statement: Statement) -> Cases:
        """Where a statement's point lies in the domain."""
        extents = [it.extent for it in self.iters]
        return both(statement.domain, inside(statement.point, extents, statement.ranges))


def groups_of(nest: Nest, families: Families) -> list[Group]:
    """The work of each family: its points and, for a reduction, its initialisations."""
    found = []
    for family in families.blocks.values():
        mine = [s for s in nest.statements if s.family == family.name and s.role is not Role.COPY]
        again = family.is_reduction and any(s.block.recomputed for s in mine)
        rounds = min((common_loops(mine[0], s) for s in mine), default=0) if again else 0
        for role in (Role.COMPUTE, Role.INIT) if family.is_reduction else (Role.COMPUTE,):
            found.append(Group(family, role, tuple(s for s in mine if s.role is role), rounds))
    return found


def check_coverage(sets: Sets, nest: Nest, families: Families) -> Iterator[Finding]:
    """Check P1 for every family."""
    groups = groups_of(nest, families)
    for group in groups:
        if any(it.extent == 0 for it in group.iters) or (sets.shortcuts and _plainly_once(group)):
            continue
        yield from _outside(sets, group)
        yield from _never(sets, group)
        if not group.recomputed or group.family.is_reduction:
            yield from _twice(sets, group)
    for update, init in zip(groups, groups[1:], strict=False):
        if update.family is init.family and update.recomputed:
            yield from _rounds(sets, update, init)


def _plainly_once(group: Group) -> bool:
    """Whether the statements cover boxes that do not meet and fill the domain."""
    if group.recomputed:
        return False
    domain = Box((0,) * len(group.iters), tuple(it.extent - 1 for it in group.iters))
    boxes = []
    for statement in group.statements:
        box = box_of(statement, statement.point)
        if box is None:
            return False
        low = tuple(max(a, b) for a, b in zip(box.low, domain.low, strict=True))
        high = tuple(min(a, b) for a, b in zip(box.high, domain.high, strict=True))
        if not statement.block.padded and box.volume and (low, high) != (box.low, box.high):
            return False
        boxes.append(Box(low, high))
    apart = all(not a.meets(b) for n, a in enumerate(boxes) for b in boxes[:n])
    return apart and sum(box.volume for box in boxes) == domain.volume


def _outside(sets: Sets, group: Group) -> Iterator[Finding]:
    """Points that are computed although the domain does not have them."""
    for statement in group.statements:
        extents = [it.extent for it in group.iters]
        beyond = negated(inside(statement.point, extents, statement.ranges), statement.ranges)
        if statement.block.padded or not beyond:
            continue
        runs = sets.domain(statement, both(statement.domain, beyond))
        if not sets.empty(runs):
            (at,) = runs_of(runs, statement)
            point = _point_text(group, [form.value(at) for form in statement.point])
            message = f"block '{statement.name}' runs point {point}, which its domain does not have"
            yield Finding(Failure("P1", message, (iteration(statement, at),), point))


def _never(sets: Sets, group: Group) -> Iterator[Finding]:
    """Points that no statement runs."""
    extents = [it.extent for it in group.iters]
    missing = sets.box(extents)
    for statement in group.statements:
        runs = sets.image(statement, statement.domain, statement.point)
        missing = missing.subtract(runs.range())
    if sets.empty(missing):
        return
    point = _point_text(group, sets.member(missing))
    what = "is never initialised" if group.role is Role.INIT else "never runs"
    message = f"point {point} of block '{group.family.name}' {what}"
    yield Finding(Failure("P1", message, (), point))


def _twice(sets: Sets, group: Group) -> Iterator[Finding]:
    """Points that two different runs compute."""
    for number, one in enumerate(group.statements):
        for two in group.statements[number:]:
            equal = tuple(zip(one.point, two.point, strict=True))
            orders = [Order(group.rounds)]
            if one is two:
                orders = [Order(n, "<") for n in range(group.rounds, len(one.loops))]
            where = group.valid(one), group.valid(two)
            if not sets.possible(one, where[0], two, where[1], equal, orders):
                continue
            runs = sets.pairs(one, where[0], two, where[1], equal, orders)
            if sets.empty(runs):
                continue
            first, second = runs_of(runs, one, two)
            point = _point_text(group, [form.value(first) for form in one.point])
            what = "is initialised twice" if group.role is Role.INIT else "runs twice"
            message = f"point {point} of block '{group.family.name}' {what}"
            both_runs = (iteration(one, first), iteration(two, second))
            yield Finding(Failure("P1", message, both_runs, point), sure=not group.recomputed)
            return


def _rounds(sets: Sets, update: Group, init: Group) -> Iterator[Finding]:
    """In each round, exactly the elements that are initialised get all their points, and get them afterwards."""
    family = update.family
    spatial = [n for n, it in enumerate(update.iters) if it in init.iters]
    started = sets.union_of(
        sets.image(s, init.valid(s), (*_round(s, init.rounds), *s.point)).range()
        for s in init.statements
    )
    done = sets.union_of(
        sets.image(s, update.valid(s), (*_round(s, update.rounds), *_split(s.point, spatial))).range()
        for s in update.statements
    )
    if started is None or done is None:
        return
    reduced = [it.extent for n, it in enumerate(update.iters) if n not in spatial]
    wanted = started.flat_product(sets.box(reduced))
    for difference, what in (
        (wanted.subtract(done), "lacks point"),
        (done.subtract(wanted), "was not initialised before point"),
    ):
        if not sets.empty(difference):
            values = sets.member(difference)[update.rounds :]
            ordered = [0] * len(update.iters)
            places = [*spatial, *(n for n in range(len(update.iters)) if n not in spatial)]
            for place, value in zip(places, values, strict=True):
                ordered[place] = value
            point = _point_text(update, ordered)
            message = f"a recomputation of block '{family.name}' {what} {point}"
            yield Finding(Failure("P3", message, (), point), sure=False)
    for early in update.statements:
        for late in init.statements:
            orders = orders_before(early, late, update.rounds)
            equal = tuple(zip(_split(early.point, spatial)[: len(spatial)], late.point, strict=True))
            runs = sets.pairs(early, update.valid(early), late, init.valid(late), equal, orders)
            if not sets.empty(runs):
                first, second = runs_of(runs, early, late)
                message = f"block '{early.name}' runs before its element is initialised"
                both_runs = (iteration(early, first), iteration(late, second))
                yield Finding(Failure("P3", message, both_runs), sure=False)


def _round(statement: Statement, count: int) -> tuple[Affine, ...]:
    return tuple(variable(loop.var) for loop in statement.loops[:count])


def _split(point: Sequence[Affine], first: Sequence[int]) -> tuple[Affine, ...]:
    """The forms at the places `first`, then the others."""
    return (*(point[n] for n in first), *(f for n, f in enumerate(point) if n not in first))


def _point_text(group: Group, values: Iterable[int]) -> str:
    names = [it.var.name for it in group.iters]
    return f"({', '.join(f'{n}={v}' for n, v in zip(names, values, strict=True))})"
