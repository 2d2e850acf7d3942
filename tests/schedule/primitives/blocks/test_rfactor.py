"""rfactor: reduce in parts, then reduce the parts."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof import prove
from tilewright.tir.interpreter.interpreter import interpret


def row_sums(rows: int = 3, columns: int = 12) -> tw.PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    y = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="Y")
    return te.func(x, y, name="row_sums")


def factored(sch: tw.Schedule) -> None:
    _, k = sch.loops("Y")
    outer, _ = sch.split(k, (3, 4))
    assert sch.rfactor("Y", outer) == "Y_rf"


def test_rfactor_leaves_one_partial_result_per_iteration() -> None:
    assert str(tw.Schedule(row_sums()).apply(factored)) == (
        "def row_sums(X: float32[3, 12], Y: output(float32[3])):\n"
        '    Y_rf = alloc(float32[3, 3], "global")\n'
        "    for i in range(3):\n"
        "        for k_0 in range(3):\n"
        "            for k_1 in range(4):\n"
        '                with block("Y_rf", vk_0=spatial(3, k_0), vi=spatial(3, i), '
        "vk=reduce(4, k_1)):\n"
        "                    with init():\n"
        "                        Y_rf[vk_0, vi] = 0.0\n"
        "                    Y_rf[vk_0, vi] = Y_rf[vk_0, vi] + X[vi, vk_0 * 4 + vk]\n"
        "    for i in range(3):\n"
        "        for k_0 in range(3):\n"
        '            with block("Y", vi=spatial(3, i), vk_0=reduce(3, k_0)):\n'
        "                with init():\n"
        "                    Y[vi] = 0.0\n"
        "                Y[vi] = Y[vi] + Y_rf[vk_0, vi]"
    )


def strided(sch: tw.Schedule) -> None:
    _, k = sch.loops("Y")
    *_, lane = sch.split(k, (None, 3, 2))
    assert sch.rfactor("Y", lane) == "Y_rf"


def test_rfactor_of_the_innermost_loop_leaves_parts_of_every_nth_term() -> None:
    assert str(tw.Schedule(row_sums()).apply(strided)) == (
        "def row_sums(X: float32[3, 12], Y: output(float32[3])):\n"
        '    Y_rf = alloc(float32[2, 3], "global")\n'
        "    for i in range(3):\n"
        "        for k_0 in range(2):\n"
        "            for k_1 in range(3):\n"
        "                for k_2 in range(2):\n"
        '                    with block("Y_rf", vk_2=spatial(2, k_2), vi=spatial(3, i), '
        "vk=reduce(6, k_0 * 3 + k_1)):\n"
        "                        with init():\n"
        "                            Y_rf[vk_2, vi] = 0.0\n"
        "                        Y_rf[vk_2, vi] = Y_rf[vk_2, vi] + X[vi, vk_2 + vk * 2]\n"
        "    for i in range(3):\n"
        "        for k_2 in range(2):\n"
        '            with block("Y", vi=spatial(3, i), vk_2=reduce(2, k_2)):\n'
        "                with init():\n"
        "                    Y[vi] = 0.0\n"
        "                Y[vi] = Y[vi] + Y_rf[vk_2, vi]"
    )


@pytest.mark.parametrize("cut", [factored, strided])
@pytest.mark.parametrize("reducer", ["sum", "prod", "min", "max", "max_any"])
def test_rfactor_keeps_the_value_of_every_reducer(
    reducer: str, cut: Callable[[tw.Schedule], None]
) -> None:
    x = te.placeholder((2, 12), "float32", name="X")
    k = te.reduce_axis(12, name="k")
    reduce = getattr(te, reducer)
    y = te.compute((2,), lambda i: reduce(x[i, k], axis=k), name="Y")
    func = te.func(x, y, name="reduced")
    data = np.random.default_rng(0).standard_normal((2, 12)).astype(np.float32)
    (wanted,) = interpret(func, data)
    (got,) = interpret(tw.Schedule(func).apply(cut).func, data, checked=True)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def in_place(sch: tw.Schedule) -> None:
    i, k = sch.loops("Y")
    outer, _ = sch.split(k, (3, 4))
    parts = sch.rfactor("Y", outer)
    sch.stage(parts, parts, outer, "register")
    sch.reverse_compute_at("Y", outer, at="each")
    sch.parallel(i)


def test_the_parts_are_added_up_as_they_are_made_and_that_is_proved() -> None:
    sch = tw.Schedule(row_sums()).apply(in_place)
    nest = lower_to_nest(sch.func)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    data = np.arange(36, dtype=np.float32).reshape(3, 12)
    (got,) = interpret(nest, data, checked=True, barriers=True)
    np.testing.assert_array_equal(got, data.sum(axis=1))


def lanes(sch: tw.Schedule) -> None:
    i, k = sch.loops("Y")
    _, lane = sch.split(k, (None, 4))
    parts = sch.rfactor("Y", lane)
    sch.vectorize(lane)
    sch.stage(parts, parts, i, "register")
    sch.reverse_compute_at("Y", i)


def test_the_parts_are_the_lanes_of_a_vector_and_that_is_proved() -> None:
    sch = tw.Schedule(row_sums()).apply(lanes)
    nest = lower_to_nest(sch.func)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    data = np.arange(36, dtype=np.float32).reshape(3, 12)
    (got,) = interpret(nest, data, checked=True, barriers=True)
    np.testing.assert_array_equal(got, data.sum(axis=1))


@pytest.mark.parametrize("steps", [in_place, lanes])
def test_rfactor_replays(steps: Callable[[tw.Schedule], None]) -> None:
    func = row_sums()
    sch = tw.Schedule(func).apply(steps)
    trace = tw.Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert str(tw.Schedule.replay(func, trace)) == str(sch)


def test_rfactor_refuses_a_loop_that_does_not_step_through_the_axis_exactly() -> None:
    sch = tw.Schedule(row_sums())
    _, k = sch.loops("Y")
    outer, _ = sch.split(k, (None, 5))
    with pytest.raises(tw.ScheduleError) as caught:
        sch.rfactor("Y", outer)
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: rfactor: loop 'k_0' does not step through a reduction axis of block 'Y' "
        "exactly. [rfactor-loop]"
    )
    assert str(caught.value).splitlines()[-1] == (
        "  Hint: split the reduction loop by a divisor of its extent and factor the outermost or "
        "the innermost part."
    )


def ragged(sch: tw.Schedule) -> None:
    i, k = sch.loops("Y")
    _, lane = sch.split(k, (None, 4), tail="mask")
    parts = sch.rfactor("Y", lane)
    sch.vectorize(lane)
    sch.stage(parts, parts, i, "register")


def test_what_lies_beyond_the_last_term_does_not_count_in_its_part() -> None:
    sch = tw.Schedule(row_sums(columns=10))
    _, k = sch.loops("Y")
    _, lane = sch.split(k, (None, 4))
    sch.rfactor("Y", lane)
    assert [line.strip() for line in str(sch.func).splitlines()[2:10]] == [
        "for i in range(3):",
        'for k_0 in range(3, tail="guard"):',
        "for k_1 in range(4):",
        'with block("Y_rf", vk_1=spatial(4, k_1), vi=spatial(3, i), vk=reduce(3, k_0)):',
        "counts(vk_1 + vk * 4 < 10)",
        "with init():",
        "Y_rf[vk_1, vi] = 0.0",
        "Y_rf[vk_1, vi] = Y_rf[vk_1, vi] + X[vi, vk_1 + vk * 4]",
    ]


@pytest.mark.parametrize("columns", [2, 10, 15])
def test_parts_with_an_end_that_does_not_count_are_proved_and_replay(columns: int) -> None:
    func = row_sums(columns=columns)
    sch = tw.Schedule(func).apply(ragged)
    nest = lower_to_nest(sch.func)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    data = np.arange(3 * columns, dtype=np.float32).reshape(3, columns)
    (got,) = interpret(nest, data, checked=True, barriers=True)
    np.testing.assert_array_equal(got, data.sum(axis=1))
    trace = tw.Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert str(tw.Schedule.replay(func, trace)) == str(sch)


def test_parts_keep_what_the_sum_itself_leaves_out() -> None:
    x = te.placeholder((6, 10), "float32", name="X")
    k = te.reduce_axis(10, name="k")
    y = te.compute((6,), lambda i: te.sum(x[i, k], axis=k, where=k <= i + 3), name="Y")
    sch = tw.Schedule(te.func(x, y, name="causal")).apply(ragged)
    nest = lower_to_nest(sch.func)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    data = np.arange(60, dtype=np.float32).reshape(6, 10)
    (got,) = interpret(nest, data, checked=True, barriers=True)
    np.testing.assert_array_equal(got, np.tril(data, 3).sum(axis=1))


def overlong(sch: tw.Schedule) -> None:
    _, k = sch.loops("Y")
    _, lane = sch.split(k, (5, 4))
    sch.rfactor("Y", lane)


def test_iterations_that_never_count_do_not_lengthen_the_parts() -> None:
    sch = tw.Schedule(row_sums(columns=12)).apply(overlong)
    assert "vk=reduce(3, k_0)" in str(sch)
    nest = lower_to_nest(sch.func)
    assert prove(nest, canonical_form(sch.func)).status == "proved"


def test_rfactor_refuses_parts_that_would_run_beyond_their_end() -> None:
    with pytest.raises(tw.ScheduleError, match=r"\[rfactor-loop\]"):
        tw.Schedule(row_sums(columns=10)).apply(overlong)


def test_rfactor_refuses_a_loop_in_the_middle_of_a_split() -> None:
    sch = tw.Schedule(row_sums())
    _, k = sch.loops("Y")
    _, middle, _ = sch.split(k, (3, 2, 2))
    with pytest.raises(tw.ScheduleError, match=r"\[rfactor-loop\]"):
        sch.rfactor("Y", middle)


def test_rfactor_refuses_a_reduction_whose_initialisation_has_been_placed() -> None:
    sch = tw.Schedule(row_sums())
    _, k = sch.loops("Y")
    sch.decompose_reduction("Y", k)
    with pytest.raises(tw.ScheduleError) as caught:
        sch.rfactor("Y", k)
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: rfactor: block 'Y' is not a reduction with its initialisation inside. "
        "[rfactor-block]"
    )
    assert str(caught.value).splitlines()[-1] == (
        "  Hint: call rfactor before stage and decompose_reduction."
    )


def test_rfactor_refuses_a_loop_over_an_axis_that_the_block_keeps() -> None:
    sch = tw.Schedule(row_sums())
    with pytest.raises(tw.ScheduleError) as caught:
        sch.rfactor("Y", sch.loops("Y")[0])
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: rfactor: block 'Y' does not reduce over loop 'i'; expected a loop over a "
        "reduction axis. [rfactor-kept]"
    )
