"""schedule/proof/relations/dim_tests.py: what two tests of a size exclude is never there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from tilewright.schedule.proof.forms.nest import Statement
from tilewright.schedule.proof.forms.statements import read_nest
from tilewright.schedule.proof.relations.dim_tests import exclude_each_other
from tilewright.tir.dim import Dim
from tilewright.tir.expr import Var
from tilewright.tir.parsing.parser import parse

Run = dict[Var, int]


def nest(first: str, one: str, second: str, two: str, step: int = 4) -> tuple[Statement, ...]:
    """Two statements in loops of their own over rows of tiles, each below a test."""
    return read_nest(
        parse(f"""
def f(n: dim(1, 20), X: int64[n], A: output(int64[100])):
    for o in range(2):
        for x in range(5):
            for u in range({step}):
                with block("A", v=spatial(100, {first})):
                    where({one})
                    A[v] = 0
        for y in range(5):
            for w in range({step}):
                with block("B", v=spatial(100, {second})):
                    where({two})
                    A[v] = 1
""")
    ).statements


def excluded(statements: tuple[Statement, ...], same: int) -> bool:
    a, b = statements
    equal = tuple(zip(a.point, b.point, strict=True))
    return all(
        exclude_each_other(one, two, a, b, same, equal) for one in a.domain for two in b.domain
    )


def meet(statements: tuple[Statement, ...], same: int) -> bool:
    """Whether some runs of the two, at one size, have one point, by trying all."""
    a, b = statements
    return any(
        a_point == b_point and all(mine[loop.var] == other[loop.var] for loop in a.loops[:same])
        for size in range(1, 21)
        for mine, a_point in runs(a, size)
        for other, b_point in runs(b, size)
    )


def runs(statement: Statement, size: int) -> Iterator[tuple[Run, list[int]]]:
    """The runs of a statement at a size, each with its point."""
    for values in product(*(range(loop.extent) for loop in statement.loops)):
        at: Run = dict(zip(statement.variables, values, strict=True))
        at |= dict.fromkeys(statement.dims, size)
        if any(all(c.holds(at) for c in case) for case in statement.domain):
            yield at, [form.value(at) for form in statement.point]


@pytest.mark.parametrize("same", [0, 1])
@pytest.mark.parametrize(
    ("two", "holds"),
    [
        ("n <= y * 4 + 3", True),  # what is left behind the whole tiles
        ("n <= y * 4 + 3 and y * 4 + w < n", True),
        ("n <= y * 4 + 4", False),  # a tile that is whole counts too
        ("y * 4 < n", False),
    ],
)
def test_rows_of_a_whole_tile_are_not_left(two: str, holds: bool, same: int) -> None:
    found = nest("x * 4 + u", "x * 4 + 3 < n", "y * 4 + w", two)
    assert excluded(found, same) == holds
    assert meet(found, same) == (not holds)


def test_loops_that_need_not_agree_are_not_taken_for_one() -> None:
    found = nest("o * 4 + x * 4 + u", "o * 4 + 3 < n", "o * 4 + y * 4 + w", "n <= o * 4 + 3")
    assert excluded(found, 1)
    assert not excluded(found, 0)
    assert meet(found, 0)


def test_what_is_excluded_is_not_there() -> None:
    count = 0
    for seed in range(120):
        rng = Random(seed)
        step, a, b, c, d = (rng.randint(1, 5) for _ in range(5))
        found = nest(
            f"x * {a} + u",
            f"x * {a} + {c} < n",
            f"y * {b} + w",
            f"n <= y * {b} + {d}",
            step,
        )
        for same in (0, 1) if len(found) == 2 else ():
            if excluded(found, same):
                count += 1
                assert not meet(found, same), seed
    assert count > 15
    assert all(isinstance(dim, Dim) for statement in found for dim in statement.dims)
