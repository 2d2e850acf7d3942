"""Order in time: the pairs of runs that isl and plain arithmetic find are those that are there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import islpy as isl
import pytest

from tilewright.schedule.proof.forms.nest import Statement
from tilewright.schedule.proof.forms.statements import read_nest
from tilewright.schedule.proof.relations.order import ANY, Order, may_exceed, orders_before
from tilewright.schedule.proof.relations.sets import Sets
from tilewright.tir.expr import Var
from tilewright.tir.parsing.parser import parse

Run = dict[Var, int]


def index(rng: Random, *loops: str) -> str:
    """An index of loops: a sum of multiples, at times the quotient or the rest of one."""
    parts = [str(rng.randint(-9, 9)), *(f"{name} * {rng.randint(-4, 4)}" for name in loops)]
    total = " + ".join(parts)
    kind = rng.random()
    if kind < 0.2:
        return f"({total}) // {rng.randint(2, 4)}"
    return f"({total}) % {rng.randint(2, 5)}" if kind < 0.4 else total


def nest(rng: Random) -> tuple[Statement, ...]:
    """Two statements below two loops, each below one of its own; fewer where one never runs."""
    p, q, r, s = (rng.randint(1, 4) for _ in range(4))
    a = index(rng, "p", "q", "r")
    b = index(rng, "p", "q", "s") if rng.random() < 0.7 else a.replace("r", "s")
    func = parse(f"""
def f(A: output(int64[100]), B: output(int64[100])):
    for p in range({p}):
        for q in range({q}):
            for r in range({r}):
                with block("A", v=spatial(100, {a})):
                    where(p * 2 + r < {rng.randint(1, 9)})
                    A[v] = 0
            for s in range({s}):
                with block("B", v=spatial(100, {b})):
                    where(q * 3 - s < {rng.randint(0, 9)})
                    B[v] = 0
""")
    return read_nest(func).statements


def nests(count: int) -> Iterator[tuple[int, Statement, Statement]]:
    """Drawn nests of two statements, each with its seed."""
    for seed in range(count):
        if len(found := nest(Random(seed))) == 2:
            yield seed, *found


def runs(statement: Statement) -> Iterator[Run]:
    """The points of its loops at which a statement runs."""
    for values in product(*(range(loop.extent) for loop in statement.loops)):
        point = dict(zip(statement.variables, values, strict=True))
        if any(
            all(c.form.value(point) == 0 if c.equality else c.form.value(point) >= 0 for c in case)
            for case in statement.domain
        ):
            yield point


def holds(order: Order, one: Statement, x: Run, y: Run) -> bool:
    """Whether two runs agree where the order says so, and the first is ahead next."""
    same = all(x[v] == y[v] for v in one.variables[: order.same])
    return same and (not order.sign or x[one.variables[order.same]] < y[one.variables[order.same]])


def members(relation: isl.Map) -> set[tuple[int, ...]]:
    """The coordinates of each pair of runs."""
    found: set[tuple[int, ...]] = set()
    whole = relation.wrap().flatten()
    count = whole.dim(isl.dim_type.set)

    def keep(point: isl.Point) -> None:
        values = (point.get_coordinate_val(isl.dim_type.set, n) for n in range(count))
        found.add(tuple(value.to_python() for value in values))

    whole.foreach_point(keep)
    return found


def time(statement: Statement, run: Run) -> tuple[int, ...]:
    """Comparing these from the left tells which of two runs comes first."""
    steps = zip(statement.positions, statement.loops, strict=False)
    return (*(part for n, loop in steps for part in (n, run[loop.var])), statement.positions[-1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shortcuts", [True, False])
def test_the_runs_of_one_element_that_come_before_are_those_that_are_found(shortcuts: bool) -> None:
    met = 0
    for seed, a, b in nests(200):
        sets = Sets(10**6, shortcuts=shortcuts)
        for one, two in ((a, b), (b, a), (a, a)):
            left, right = one.point[0], two.point[0]
            wanted = {
                (*x.values(), *y.values())
                for x, y in product(runs(one), runs(two))
                if time(one, x) < time(two, y) and left.value(x) == right.value(y)
            }
            found = sets.pairs(
                one, one.domain, two, two.domain, [(left, right)], orders_before(one, two)
            )
            assert members(found) == wanted, f"seed {seed}"
            met += len(wanted)
    assert met > 2_000


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shortcuts", [True, False])
def test_the_runs_that_are_above_another_are_those_that_are_found(shortcuts: bool) -> None:
    for seed, one, two in nests(200):
        sets = Sets(10**6, shortcuts=shortcuts)
        left, right = one.point[0], two.point[0]
        wanted = {
            (*x.values(), *y.values())
            for x, y in product(runs(one), runs(two))
            if left.value(x) > right.value(y)
        }
        found = sets.pairs(one, one.domain, two, two.domain, (), (ANY,), [(left, right)])
        assert members(found) == wanted, f"seed {seed}"
        for order in orders_before(one, two):
            if not may_exceed(left, right, one, two, order):
                pairs = product(runs(one), runs(two))
                held = [(x, y) for x, y in pairs if holds(order, one, x, y)]
                assert not any(left.value(x) > right.value(y) for x, y in held), f"seed {seed}"
