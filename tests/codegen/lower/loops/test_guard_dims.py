"""codegen/lower/loops/guard_dims.py: what a call leaves of a domain becomes conditions of the
blocks.
"""

from __future__ import annotations

from tilewright.codegen.lower.loops.guard_dims import GuardDims
from tilewright.codegen.lower.loops.place_init import PlaceInit
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te


def doubled() -> PrimFunc:
    n = te.dim("n", 1, 10)
    a = te.placeholder((n, 3), "float32", name="A")
    return te.func(a, te.compute((n, 3), lambda i, j: a[i, j] * 2.0, name="B"), name="doubled")


def predicate(sch: Schedule) -> str:
    text = str(GuardDims()(sch.func))
    assert "spatial(10, " in text
    return next(line.strip() for line in text.splitlines() if "where(" in line)


def test_a_point_exists_below_the_size() -> None:
    assert predicate(Schedule(doubled())) == "where(i < n)"


def test_the_upper_bound_goes_without_saying() -> None:
    sch = Schedule(doubled())
    sch.split(sch.loops("B")[0], (None, 4), tail="partition")
    assert "where(i_0 * 4 + i_1 < 10)" in str(sch.func)
    assert predicate(sch) == "where(i_0 * 4 + i_1 < n)"


def test_of_a_fused_loop_the_condition_is_one_of_the_loop() -> None:
    sch = Schedule(doubled())
    sch.fuse(*sch.loops("B"))
    assert predicate(sch) == "where(i_j < n * 3)"


def test_a_function_without_dims_stays_the_same_object() -> None:
    a = te.placeholder((4,), "float32", name="A")
    func = te.func(a, te.compute((4,), lambda i: a[i] * 2.0, name="B"), name="f")
    assert GuardDims()(func) is func


def test_the_upper_bound_of_a_sum_goes_without_saying() -> None:
    n = te.dim("n", 1, 10)
    a = te.placeholder((3, n), "float32", name="A")
    k = te.reduce_axis(n, name="k")
    sch = Schedule(
        te.func(a, te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="S"), name="f")
    )
    _, lane = sch.split(sch.loops("S")[1], (None, 4), tail="mask")
    sch.rfactor("S", lane)
    before = PlaceInit()(sch.func)
    assert "where(k_1 + k_0 * 4 < 10 and k_1 + k_0 * 4 < n)" in str(before)
    assert "where(k_1 + k_0 * 4 < n)" in str(GuardDims()(before))
