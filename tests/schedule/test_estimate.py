"""The analytical time: it orders alternatives as one would expect, from the target alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.schedule.estimate import LAUNCH_SECONDS, estimate
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr, Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from .programs import running

TARGET = Target.parse("c:avx512")


def matmul(m: int, n: int, k: int, *, bias: bool = False, apart: bool = False) -> PrimFunc:
    """A product with constant weights; with a bias; or the bias alone, as a kernel of its own."""
    a = te.placeholder((m, k), "float32", name="a")
    b = te.placeholder((k, n), "float32", name="b", constant=True)
    c = te.placeholder((n,), "float32", name="c", constant=True)
    r = te.reduce_axis(k, name="r")
    if apart:
        x = te.placeholder((m, n), "float32", name="x")
        y = te.compute((m, n), lambda i, j: x[i, j] + c[j], name="y")
        return te.func(x, c, y, name="bias")
    x = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="x")
    if not bias:
        return te.func(a, b, x, name="matmul")
    y = te.compute((m, n), lambda i, j: x[i, j] + c[j], name="y")
    return te.func(a, b, c, y, name="matmul_bias")


def softmax(n: int) -> PrimFunc:
    x = te.placeholder((n,), "float32", name="x")
    k, k2 = te.reduce_axis(n, name="k"), te.reduce_axis(n, name="k2")
    m = te.compute((1,), lambda i: te.max_any(x[k], axis=k), name="m")
    e = te.compute((n,), lambda i: te.exp(x[i] - m[0]), name="e")
    s = te.compute((1,), lambda i: te.sum(e[k2], axis=k2), name="s")
    y = te.compute((n,), lambda i: e[i] / s[0], name="y")
    return te.func(x, y, name="softmax")


def copy(m: int, n: int, *, turned: bool) -> PrimFunc:
    x = te.placeholder((n, m) if turned else (m, n), "float32", name="x")
    y = te.compute((m, n), lambda i, j: x[j, i] if turned else x[i, j], name="y")
    return te.func(x, y, name="copy")


def test_a_large_product_runs_near_the_peak_of_all_threads() -> None:
    m, n, k = 512, 768, 1024
    lanes = TARGET.lanes(te.placeholder((1,), "float32", name="x").dtype)
    per_second = 2 * lanes * TARGET.fma_per_cycle * TARGET.clock_ghz * 1e9 * TARGET.threads
    peak = 2 * m * n * k / per_second
    assert peak < estimate(matmul(m, n, k), TARGET) < 1.25 * peak


def test_a_product_of_one_row_takes_as_long_as_its_weights_come_from_memory() -> None:
    seconds = 4 * 4096 * 4096 / (TARGET.dram_gb_per_s * 1e9)
    assert estimate(matmul(1, 4096, 4096), TARGET) == pytest.approx(seconds, rel=0.05)


def test_an_epilogue_on_the_accumulators_is_cheaper_than_a_kernel_of_its_own() -> None:
    fused = estimate(matmul(256, 256, 64, bias=True), TARGET)
    product = estimate(matmul(256, 256, 64), TARGET)
    apart = product + estimate(matmul(256, 256, 64, apart=True), TARGET)
    assert product < fused < apart


def test_narrow_vectors_and_fewer_threads_cost_time() -> None:
    func = matmul(256, 256, 256)
    wide, narrow = estimate(func, TARGET), estimate(func, Target.parse("c:avx2"))
    scalar = estimate(func, Target.parse("c:scalar"))
    assert wide < narrow < scalar
    assert wide < estimate(func, replace(TARGET, threads=1))


def test_softmax_counts_every_pass() -> None:
    assert estimate(softmax(1 << 16), TARGET) > 2 * estimate(softmax(1 << 14), TARGET)


def test_a_turned_copy_costs_a_shuffle_for_each_bit_of_the_lanes() -> None:
    turned, straight = (estimate(copy(128, 768, turned=turned), TARGET) for turned in (True, False))
    assert straight < turned < 4 * straight


def test_a_function_without_elements_costs_a_launch() -> None:
    assert estimate(matmul(0, 16, 16), TARGET) < 2 * LAUNCH_SECONDS + 1e-6


@pytest.mark.parametrize(
    "func",
    [
        matmul(256, 256, 64, bias=True),
        softmax(4096),
        running(64, 512),
        running(64, 512, axis=1),
        running(1, 4096, axis=1),
        copy(128, 768, turned=False),
        copy(128, 768, turned=True),
    ],
)
def test_the_rules_schedule_costs_what_its_function_does(func: PrimFunc) -> None:
    scheduled = estimate(default_schedule(func, TARGET), TARGET)
    assert scheduled == pytest.approx(estimate(func, TARGET), rel=0.3)


def test_a_schedule_without_vectors_and_threads_is_slower() -> None:
    func = matmul(256, 256, 256)
    plain = estimate(Schedule(func, TARGET), TARGET)
    assert plain > 20 * estimate(default_schedule(func, TARGET), TARGET)


def test_steps_that_wait_for_each_other_take_longer() -> None:
    beside, along = running(256, 256), running(256, 256, axis=1)
    one = running(1, 65536, axis=1)
    assert 2 * estimate(beside, TARGET) < estimate(along, TARGET)
    assert 2 * estimate(along, TARGET) < estimate(one, TARGET)


def test_the_same_function_has_the_same_price_twice() -> None:
    assert estimate(softmax(1000), TARGET) == estimate(softmax(1000), TARGET)


def test_what_an_expression_holds_twice_is_computed_once() -> None:
    x = te.placeholder((4096,), "float32", name="x")

    def twice(i: Var) -> Expr:
        return te.exp(x[i]) * (1.0 + te.exp(x[i]))

    once = te.func(x, te.compute((4096,), lambda i: te.exp(x[i]), name="y"), name="once")
    both = te.func(x, te.compute((4096,), twice, name="y"), name="both")
    exp = estimate(once, TARGET) - LAUNCH_SECONDS
    assert estimate(both, TARGET) - LAUNCH_SECONDS < 1.5 * exp


def test_of_values_among_which_an_unrolled_loop_chooses_each_copy_computes_one() -> None:
    x = te.placeholder((4096,), "float32", name="x")

    def chosen(i: Var, j: Var) -> Expr:
        return te.select(te.eq(i, 0), te.exp(x[j]), te.select(te.eq(i, 1), te.log(x[j]), x[j]))

    func = te.func(x, te.compute((3, 4096), chosen, name="y"), name="chosen")

    def seconds(*, unrolled: bool) -> float:
        sch = Schedule(func, TARGET)
        i, j = sch.loops("y")
        outer, lanes = sch.split(j, (None, 16))
        sch.reorder(outer, i, lanes)
        sch.vectorize(lanes)
        if unrolled:
            sch.unroll(i)
        return estimate(sch, TARGET) - LAUNCH_SECONDS

    assert 2.5 * seconds(unrolled=True) < seconds(unrolled=False)
