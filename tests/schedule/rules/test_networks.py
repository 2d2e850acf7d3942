"""schedule/rules/networks.py: which functions it takes, values, proof, replay; kernels have the
same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.kernels.sorting_network import sorted_codes
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import CpuTarget, Target
from tilewright.tir.te import te
from tilewright.tir.te.te import Tensor

from ...driver.kernels import network
from ..programs import running, wave
from ..rule_checks import check
from .test_rules import TARGETS


def lines(x: Tensor, steps: int, name: str = "S") -> Tensor:
    """The last of some steps of comparators between the lines of X[*rows, lines, columns]."""
    *rows, count, columns = x.shape
    state = te.state((steps, *rows, count, columns), "float32", name=name)

    def first(_: Expr, *i: Expr) -> Expr:
        return x[i]

    def compared(t: Expr, *i: Expr) -> Expr:
        *row, line, c = i
        one, other = (state[(t - 1, *row, line // 2 + n, c)] for n in (0, count // 2))
        return te.select(te.eq(line % 2, 0), te.minimum(one, other), te.maximum(one, other))

    rank = len(x.shape)
    begun = te.compute((1, *x.shape), named(first, rank), name=f"{name}_first")
    made = te.scan(begun, te.compute(state.shape, named(compared, rank), name="step"), state)
    return te.compute(x.shape, lambda *i: made[(steps - 1, *i)], name=f"{name}_last")


def named(element: Callable[..., Expr], rank: int) -> Callable[..., Expr]:
    """An element of the step and of `rank` axes."""
    return lambda *i: element(i[0], *i[1 : rank + 1])


def sorting(rows: int, size: int) -> PrimFunc:
    x = te.placeholder((rows, size), "float32", name="X")
    made = sorted_codes(lambda *i: te.cast(x[i], "float64"), (rows,), size, size, "net")
    y = te.compute((rows, size), lambda *i: te.cast(made[i], "float32"), name="Y")
    return te.func(x, y, name="sorting")


def lone() -> PrimFunc:
    """Without rows around the lines."""
    x = te.placeholder((4, 19), "float32", name="X")
    return te.func(x, lines(x, 3), name="lone")


def turned() -> PrimFunc:
    """Two recurrences, the second one of the first one's columns; what comes behind has the rows
    at the end.
    """
    x = te.placeholder((3, 4, 8), "float32", name="X")
    first = lines(x, 3, "S")
    across = te.compute((3, 8, 4), lambda b, i, c: first[b, c, i] * 2.0, name="A")
    second = lines(across, 4, "R")
    y = te.compute((4, 8, 3), lambda c, i, b: second[b, i, c] + 1.0, name="Y")
    return te.func(x, y, name="turned")


FUNCTIONS: dict[str, Callable[[], PrimFunc]] = {
    "network": network,
    "lone": lone,
    "turned": turned,
    "sorting": lambda: sorting(2, 20),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_schedule_is_right(name: str, target: str) -> None:
    func = FUNCTIONS[name]()
    assert rule_for(func).name == "networks"
    check(func, target)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["network", "turned"])
def test_random_decisions_are_right(name: str, seed: int) -> None:
    check(FUNCTIONS[name](), "c:avx2", Random(seed))


def test_rows_hold_all_that_is_made_of_them_and_threads_share_them_out() -> None:
    sch = default_schedule(sorting(64, 100), Target.parse("c:avx2"))
    text = str(sch.func)
    assert text.count("in parallel(64)") == 1
    assert '    net_columns = alloc(float64[9, 64, 16, 8], "global")' in text
    moved = [step for step in sch.trace.steps if step.primitive == "compute_at"]
    assert len(moved) == len(sch.func.blocks) - 1


@pytest.mark.parametrize("func", [running(9, 21, axis=1), wave(6, 5)], ids=["running", "wave"])
def test_a_recurrence_without_lines_or_without_columns_is_none(func: PrimFunc) -> None:
    assert rule_for(func).name != "networks"


def test_steps_that_are_outputs_are_none() -> None:
    """All steps of the state are wanted outside of the rows."""
    x = te.placeholder((3, 4, 8), "float32", name="X")
    last = lines(x, 3)
    assert last.computation is not None
    (state,) = last.computation.inputs
    y = te.compute((3, 4, 8), lambda b, i, c: state[1, 2 - b, i, c], name="Y")
    assert rule_for(te.func(x, last, y, name="steps")).name != "networks"


def test_threads_give_a_price_per_row() -> None:
    one, many = (replace(CpuTarget.of(Target.parse("c:avx2")), threads=n) for n in (1, 4))
    seconds = {}
    for rows in (1, 64):
        func = sorting(rows, 1000)
        rule = rule_for(func)
        for target in (one, many):
            made = sum(p.seconds(target) for p in rule.passes(func, target))
            seconds[rows, target.threads] = made
    assert seconds[1, 1] == pytest.approx(seconds[1, 4], rel=0.01)
    assert seconds[64, 4] < seconds[64, 1] / 2


@pytest.mark.isa
@pytest.mark.needs_cc
def test_kernels_have_the_same_bits_on_any_number_of_threads() -> None:
    func = sorting(67, 100)
    x = np.random.default_rng(0).random((67, 100), np.float32)
    kernel = tw.build(func)
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(kernel(x, threads=threads), np.sort(x, 1))
