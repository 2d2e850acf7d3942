"""driver/fuzz/shrink.py: what is left of a case is what the failure needs."""

from __future__ import annotations

from tilewright.driver.fuzz.case import Case, draw
from tilewright.driver.fuzz.shrink import shrink, without
from tilewright.driver.fuzz.steps import Tally
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace
from tilewright.tir.expr import Call
from tilewright.tir.intrinsics import EXP
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For, ForKind
from tilewright.tir.te import te
from tilewright.tir.visit import walk

from ...schedule.programs import farthest, matmul_relu


def steps(sch: Schedule) -> None:
    i, j = sch.loops("Y")
    sch.split(i, (None, 2))
    j0, j1 = sch.split(j, (None, 4))
    sch.unroll(j0)
    sch.vectorize(j1)


def test_steps_that_need_a_dropped_one_go_with_it() -> None:
    sch = Schedule(matmul_relu(4, 8, 3)).apply(steps)
    left = without(sch.trace, (0,), {})
    assert [step.primitive for step in left.steps] == ["split", "unroll", "vectorize"]
    assert Schedule.replay(sch.original, left).steps == (
        'j_0, j_1 = split(j, factors=(None, 4), tail="guard")',
        "unroll(j_0)",
        "vectorize(j_1)",
    )
    assert not without(sch.trace, (0, 1), {}).steps


def test_a_function_keeps_what_the_failure_needs() -> None:
    sch = Schedule(matmul_relu(4, 8, 3)).apply(steps)

    def fails(case: Case) -> bool:
        try:
            func = case.schedule().func
        except ScheduleError:
            return False
        return any(isinstance(n, For) and n.kind is ForKind.VECTORIZED for n in walk(func.body))

    small = shrink(Case(sch.original, sch.trace), fails)
    assert str(small.function) == (
        "def matmul_relu(Y: output(float32[1, 1])):\n"
        "    for i in range(1):\n"
        "        for j in range(1):\n"
        '            with block("Y", vi=spatial(1, i), vj=spatial(1, j)):\n'
        "                Y[vi, vj] = 1.0"
    )
    assert small.schedule().steps[-1] == "vectorize(j_1)"
    assert len(small.trace.steps) == 2


def test_what_is_left_of_a_value_mentions_nothing_that_a_dropped_let_bound() -> None:
    func = farthest(2, 3)

    def fails(case: Case) -> bool:
        return "let(" not in str(parse(str(case.function)))

    small = shrink(Case(func, Schedule(func).trace), fails)
    assert "let(" in str(func)
    assert "let(" not in str(small.function)


def test_random_cases_shrink_to_cases() -> None:
    for seed in range(300):
        case = draw(seed, Tally()).case
        if _calls_exp(case):
            break
    small = shrink(case, _calls_exp)
    assert not small.trace.steps
    assert len(small.function.blocks) == 1
    assert str(small.function).count("exp(") == 1


def _calls_exp(case: Case) -> bool:
    return any(isinstance(n, Call) and n.intrinsic is EXP for n in walk(case.function.body))


def test_what_tells_a_size_stays_as_long_as_the_size_is_used() -> None:
    n = te.dim("n", 1, 6)
    x = te.placeholder((n,), "float32", name="X")
    y = te.placeholder((4,), "float32", name="Y")
    k = te.reduce_axis(n, name="k")
    z = te.compute((4,), lambda i: te.sum(x[k] * y[i], axis=k), name="Z")
    case = Case(te.func(x, y, z, name="f"), Trace())

    def is_read(smaller: Case) -> bool:
        return parse(str(smaller.function)) is not None

    smallest = shrink(case, is_read, seconds=20.0)
    assert smallest.function.dims == ()
    assert len(smallest.function.inputs) < 2
