"""codegen/lower/loops/fit_dims.py: loops end where the points do. Values and proof of whole schedules are
in tests/schedule/test_dims.py.
"""

# ruff: noqa: E501 (one line of a nest is one line)
from __future__ import annotations

from tilewright.codegen.lower.loops.fit_dims import FitDims
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te


def doubled(most: int) -> PrimFunc:
    n = te.dim("n", 1, most)
    a = te.placeholder((n, 3), "float32", name="A")
    return te.func(a, te.compute((n, 3), lambda i, j: a[i, j] * 2.0, name="B"), name="doubled")


def nest(sch: Schedule) -> str:
    return "\n".join(str(lower_to_nest(sch.func)).splitlines()[1:])


def test_a_loop_ends_with_the_rows() -> None:
    assert nest(Schedule(doubled(9))) == (
        "    for i in range(9):\n"
        "        if i < n:\n"
        "            for j in range(3):\n"
        '                with block("B", vi=spatial(9, i), vj=spatial(3, j)):\n'
        "                    B[vi, vj] = A[vi, vj] * 2.0"
    )


def test_a_whole_tile_has_no_tests_inside() -> None:
    sch = Schedule(doubled(9))
    outer, _ = sch.split(sch.loops("B")[0], (None, 4), tail="partition")
    sch.parallel(outer)
    assert nest(sch) == (
        "    for i_0 in parallel(3):\n"
        "        if i_0 * 4 < n:\n"
        "            if i_0 * 4 + 3 < n:\n"
        "                for i_1 in range(4):\n"
        "                    for j in range(3):\n"
        '                        with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                            B[vi, vj] = A[vi, vj] * 2.0\n"
        "            else:\n"
        "                for i_1 in range(4):\n"
        "                    if i_0 * 4 + i_1 < n:\n"
        "                        for j in range(3):\n"
        '                            with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                                B[vi, vj] = A[vi, vj] * 2.0"
    )


def test_a_fused_loop_ends_too() -> None:
    sch = Schedule(doubled(9))
    sch.fuse(*sch.loops("B"))
    assert nest(sch).splitlines()[:2] == [
        "    for i_j in range(27):",
        "        if i_j < n * 3:",
    ]


def test_a_function_without_dims_stays_the_same_object() -> None:
    a = te.placeholder((4,), "float32", name="A")
    func = lower_to_nest(te.func(a, te.compute((4,), lambda i: a[i], name="B"), name="f"))
    assert FitDims()(func) is func
