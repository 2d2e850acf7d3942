"""P1, coverage: every point of every block runs, exactly once unless the block is marked
recomputed.

The points of a family are the values of its iteration variables; its statements together must reach
each one whose element somebody needs: a schedule may leave out the others. Points outside the
domain may run only in blocks marked padded (that nobody reads what they set is P2's business). A
recomputed reduction runs in rounds, one per iteration of the loops that hold all its statements:
within a round each point runs once, or the element is not touched at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from ...tir.dim import Dim
from ...tir.expr import TRUE, Var
from ...tir.stmt import NOTHING, For, ForKind, IterKind, IterVar, Role
from ..verdict import Failure
from .forms.affine import Affine, affine, variable
from .forms.condition import ALWAYS, Cases, both, condition, inside, negated
from .forms.families import Families, Family
from .forms.nest import Nest, Statement
from .forms.statements import plain_statement
from .relations.order import Order, common_loops, orders_before
from .relations.pairing import Pairs
from .relations.sets import Sets
from .relations.shortcuts import Box, box_of
from .relations.witness import Finding, iteration, runs_of


@dataclass(frozen=True, slots=True)
class Group:
    """The statements of one family and role that set one tensor: they share the work of one store.

    number: of the store among those of the family's block.
    rounds: of a recomputed reduction, the number of outermost loops that hold all its statements;
    else 0.
    """

    family: Family
    number: int
    role: Role
    statements: tuple[Statement, ...]
    rounds: int

    @property
    def tensor(self) -> str:
        """The tensor whose elements they set."""
        return self.family.tensors[self.number]

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
        extents = [it.domain for it in self.iters]
        where = inside(statement.point, extents, statement.ranges)
        if self.role is Role.COMPUTE:
            values = zip(self.iters, statement.point, strict=True)
            env = {it.var: form for it, form in values}
            where = both(where, condition(self.family.block.counts, env, statement.ranges))
        return both(statement.domain, where)

    def wanted(self, sets: Sets) -> isl.Set:
        """The points that must run: those of the domain that count."""
        points = sets.box([it.domain for it in self.iters])
        counts = self.family.block.counts
        if self.role is not Role.COMPUTE or counts == TRUE:
            return points
        statement = points_statement(self, sets.dims)
        where = condition(counts, {}, statement.ranges)
        return sets.image(statement, where, statement.point).range().intersect(points)


def groups_of(nest: Nest, families: Families) -> list[Group]:
    """The work of each family: its points and, for a reduction, its initialisations."""
    found = []
    for family in families.blocks.values():
        mine = [s for s in nest.statements if s.family == family.name and s.role is not Role.COPY]
        again = family.is_reduction and any(s.block.recomputed for s in mine)
        rounds = min(_unreduced(family, mine[0], s) for s in mine) if again else 0
        roles = (Role.COMPUTE, Role.INIT) if family.is_reduction else (Role.COMPUTE,)
        found += [
            Group(
                family,
                number,
                role,
                tuple(s for s in mine if s.role is role and family.counterpart(s) == number),
                rounds,
            )
            for number in range(len(family.stores))
            for role in roles
        ]
    return found


def points_statement(group: Group, dims: tuple[Dim, ...]) -> Statement:
    """The points of a group's domain, and those that a call may leave out, as the runs of a
    statement.
    """
    loops = tuple(For(it.var, it.extent, ForKind.SERIAL, NOTHING) for it in group.iters)
    return plain_statement(group.family.name, group.family.block, loops, dims)


def _unreduced(family: Family, first: Statement, other: Statement) -> int:
    """How many outermost loops hold both statements, before the first that is reduced over."""
    reduced: set[Var] = set()
    for statement in (first, other):
        if statement.role is Role.COMPUTE:
            pairs = zip(family.block.iters, statement.point, strict=True)
            reduced |= {v for it, f in pairs if it.kind is IterKind.REDUCE for v in f.variables()}
    shared = first.loops[: common_loops(first, other)]
    return next((n for n, loop in enumerate(shared) if loop.var in reduced), len(shared))


def check_coverage(sets: Sets, nest: Nest, families: Families, pairs: Pairs) -> Iterator[Finding]:
    """Check P1 for every family."""
    groups = groups_of(nest, families)
    for group in groups:
        if any(it.extent == 0 for it in group.iters) or (sets.shortcuts and _plainly_once(group)):
            continue
        yield from _outside(sets, group)
        yield from _left_out(sets, group)
        yield from _never(sets, group, families, pairs)
        if group.role is Role.COMPUTE and not (group.recomputed and not group.family.is_reduction):
            yield from _twice(sets, group)
        if group.role is Role.INIT:
            update = next(
                g for g in groups if g.family is group.family and g.tensor == group.tensor
            )
            yield from _again(sets, update, group)
    for update, init in itertools.pairwise(groups):
        same = update.family is init.family and update.number == init.number
        if same and update.recomputed:
            yield from _rounds(sets, update, init)


def _plainly_once(group: Group) -> bool:
    """Whether the statements cover boxes that do not meet and fill the domain."""
    if group.recomputed or group.family.block.counts != TRUE:
        return False
    if any(it.dim is not None for it in group.iters):
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
        extents = [it.domain for it in group.iters]
        where = inside(statement.point, extents, statement.ranges)
        beyond = negated(where, statement.ranges)
        if statement.block.padded or not beyond:
            continue
        runs = sets.domain(statement, both(statement.domain, beyond))
        if not sets.empty(runs):
            (at,) = runs_of(runs, statement)
            point = _point_text(group, [form.value(at) for form in statement.point])
            message = f"block '{statement.name}' runs point {point}, which its domain does not have"
            yield Finding(Failure("P1", message, (iteration(statement, at),), point))


def _left_out(sets: Sets, group: Group) -> Iterator[Finding]:
    """Points that are combined although they do not count."""
    counts = group.family.block.counts
    if counts == TRUE or group.role is not Role.COMPUTE:
        return
    for statement in group.statements:
        env = {it.var: form for it, form in zip(group.iters, statement.point, strict=True)}
        off = negated(condition(counts, env, statement.ranges), statement.ranges)
        extents = [it.domain for it in group.iters]
        within = both(statement.domain, inside(statement.point, extents, statement.ranges))
        runs = sets.domain(statement, both(within, off))
        if off and not sets.empty(runs):
            (at,) = runs_of(runs, statement)
            point = _point_text(group, [form.value(at) for form in statement.point])
            message = f"block '{statement.name}' runs point {point}, which does not count"
            yield Finding(Failure("P1", message, (iteration(statement, at),), point))


def _never(sets: Sets, group: Group, families: Families, pairs: Pairs) -> Iterator[Finding]:
    """Points that no statement runs although somebody needs their element."""
    missing = group.wanted(sets)
    for statement in group.statements:
        runs = sets.image(statement, statement.domain, statement.point)
        missing = missing.subtract(runs.range())
    if sets.empty(missing):
        return
    missing = missing.intersect(_needed(sets, group, families, pairs))
    if sets.empty(missing):
        return
    point = _point_text(group, sets.member(missing))
    what = "is never initialised" if group.role is Role.INIT else "never runs"
    message = f"point {point} of block '{group.family.name}' {what}"
    yield Finding(Failure("P1", message, (), point))


def _needed(sets: Sets, group: Group, families: Families, pairs: Pairs) -> isl.Set:
    """The points whose elements are read by another block, or are results of the function."""
    family, tensor = group.family, group.tensor
    wanted = sets.box(families.shapes[tensor])
    if tensor not in families.results.values():
        wanted = wanted.subtract(wanted)
        for read in pairs.reads:
            if read.tensor == tensor and not (read.own and read.into == tensor):
                runs = sets.image(read.statement, read.access.where, read.element)
                wanted = wanted.union(runs.range())
    statement = points_statement(group, sets.dims)
    store = family.stores[group.number]
    if group.role is Role.INIT:
        store = next(begun for begun in family.begun if begun.buffer is store.buffer)
    forms = [affine(index, {}, statement.ranges) for index in store.indices]
    element = sets.image(statement, ALWAYS, forms)
    return element.intersect_range(wanted).domain()


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
            message = f"point {point} of block '{group.family.name}' runs twice"
            both_runs = (iteration(one, first), iteration(two, second))
            yield Finding(Failure("P1", message, both_runs, point), sure=not group.recomputed)
            return


def _rounds(sets: Sets, update: Group, init: Group) -> Iterator[Finding]:
    """In each round, exactly the elements that are initialised get all their points, and get them
    afterwards.
    """
    family = update.family
    spatial = [n for n, it in enumerate(update.iters) if it in init.iters]
    started = sets.union_of(
        sets.image(s, init.valid(s), (*_round(s, init.rounds), *s.point)).range()
        for s in init.statements
    )
    done = sets.union_of(
        sets.image(
            s, update.valid(s), (*_round(s, update.rounds), *_split(s.point, spatial))
        ).range()
        for s in update.statements
    )
    if started is None or done is None:
        return
    reduced = [it.domain for n, it in enumerate(update.iters) if n not in spatial]
    wanted = started.flat_product(sets.box(reduced))
    if family.block.counts != TRUE:
        points = points_statement(update, sets.dims)
        where = condition(family.block.counts, {}, points.ranges)
        counted = sets.image(points, where, _split(points.point, spatial)).range()
        wanted = wanted.intersect(counted.insert_dims(isl.dim_type.set, 0, update.rounds))
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


def _again(sets: Sets, update: Group, init: Group) -> Iterator[Finding]:
    """An initialisation after an update of its element: the update is lost."""
    spatial = [n for n, it in enumerate(update.iters) if it in init.iters]
    for early in update.statements:
        for late in init.statements:
            orders = orders_before(early, late, update.rounds)
            equal = tuple(zip(_split(early.point, spatial), late.point, strict=False))
            where = update.valid(early), init.valid(late)
            orders = sets.possible(early, where[0], late, where[1], equal, orders)
            runs = sets.pairs(early, where[0], late, where[1], equal, orders)
            if not orders or sets.empty(runs):
                continue
            first, second = runs_of(runs, early, late)
            point = _point_text(init, [form.value(second) for form in late.point])
            message = f"point {point} of block '{init.family.name}' is initialised after an update"
            both_runs = (iteration(early, first), iteration(late, second))
            yield Finding(Failure("P3", message, both_runs, point), sure=not update.recomputed)
            return


def _round(statement: Statement, count: int) -> tuple[Affine, ...]:
    return tuple(variable(loop.var) for loop in statement.loops[:count])


def _split(point: Sequence[Affine], first: Sequence[int]) -> tuple[Affine, ...]:
    """The forms at the places `first`, then the others."""
    return (*(point[n] for n in first), *(f for n, f in enumerate(point) if n not in first))


def _point_text(group: Group, values: Iterable[int]) -> str:
    names = [it.var.name for it in group.iters]
    return f"({', '.join(f'{n}={v}' for n, v in zip(names, values, strict=True))})"
