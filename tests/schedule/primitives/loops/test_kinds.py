"""schedule/primitives/loops/kinds.py: parallel, vectorize, unroll: text, values, replay,
refusals.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from ...programs import (
    blur,
    body_of,
    chain,
    conv,
    matmul,
    matmul_relu,
    moments,
    parts_of_a_sum,
    refusals,
    scheduled,
)


def test_each_kind_is_a_word_of_the_loop() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        sch.reorder(i, k, j)
        sch.parallel(i)
        sch.unroll(k)
        sch.vectorize(j)

    assert body_of(scheduled(matmul(3, 5, 2), steps)).splitlines()[:3] == [
        "for i in parallel(3):",
        "    for k in unrolled(2):",
        "        for j in vectorized(5):",
    ]


def test_a_loop_inside_loops_that_run_once_may_be_parallel() -> None:
    sch = scheduled(conv(5, 4, 2, 4), lambda s: s.parallel(s.loops("conv")[1]))
    assert "    for h in parallel(5):" in body_of(sch)


def test_a_split_loop_with_a_tail_may_be_parallel_and_vectorized() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Q")
        i0, _ = sch.split(i, (None, 2), tail="partition")
        _, j1 = sch.split(j, (None, 4), tail="mask")
        sch.parallel(i0)
        sch.vectorize(j1)

    scheduled(chain(5, 7), steps)


def test_parallel_over_parts_that_overlap_gives_each_iteration_its_own_tensor() -> None:
    def steps(sch: Schedule) -> None:
        i, _ = sch.loops("Y")
        sch.compute_at("R", i)
        sch.parallel(i)

    assert body_of(scheduled(blur(3, 4), steps)) == (
        "for i in parallel(3):\n"
        '    R = alloc(float32[4, 4], "global")\n'
        "    for i_1 in range(2):\n"
        "        for j in range(4):\n"
        '            with block("R", vi=spatial(4, i + i_1), vj=spatial(4, j), recomputed=True):\n'
        "                R[vi, vj] = X[vi, vj] + X[vi, vj + 1]\n"
        "    for j in range(4):\n"
        '        with block("Y", vi=spatial(3, i), vj=spatial(4, j)):\n'
        "            Y[vi, vj] = R[vi, vj] + R[vi + 1, vj]"
    )


def test_a_reduction_may_be_unrolled_and_stays_in_order() -> None:
    scheduled(matmul(2, 3, 5), lambda s: s.unroll(s.loops("C")[2]))


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_parts_of_a_sum_that_add_to_one_element_in_one_iteration_may_run_at_once(kind: str) -> None:
    def steps(sch: Schedule) -> None:
        one, two, _ = parts_of_a_sum(sch, "S")
        if kind == "vectorize":
            for part in (one, two):
                sch.reorder(*reversed(sch.loops(part)))
            sch.merge(sch.loops(one)[0], sch.loops(two)[0])
        rows = sch.loops(one)[0 if kind == "parallel" else 1]
        other = sch.loops(two)[0 if kind == "parallel" else 1]
        getattr(sch, kind)(sch.merge(rows, other))

    sch = scheduled(moments(4, 6), steps)
    assert tw.prove(sch, "c:avx512").status == "proved"


# -- refusals --------------------------------------------------------------------------------------


def long_sum(n: int) -> PrimFunc:
    x, k = te.placeholder((n,), "float32", name="X"), te.reduce_axis(n, name="k")
    return te.func(x, te.compute((), lambda: te.sum(x[k], axis=k), name="S"), name="long_sum")


def _staged(sch: Schedule) -> None:
    n, h, *_ = sch.loops("relu")
    sch.stage("relu", "bias", n, "thread")
    sch.parallel(h)


def _epilogue(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.reverse_compute_at("Y", k, at="last")
    sch.parallel(k)


def _vectorized_parts(sch: Schedule) -> None:
    _, j = sch.loops("Y")
    sch.compute_at("R", j)
    sch.vectorize(j)


def rank_0(n: int) -> PrimFunc:
    """Y = X scaled by a number that is computed."""
    x = te.placeholder((n,), "float32", name="X")
    p = te.compute((), lambda: x[0] + 1.0, name="P")
    return te.func(x, te.compute((n,), lambda i: x[i] * p[()], name="Y"), name="rank_0")


def _lanes_of_a_number(sch: Schedule) -> None:
    (i,) = sch.loops("Y")
    sch.compute_at("P", i)
    sch.vectorize(i)


def _parallel_beside(sch: Schedule) -> None:
    i, _ = sch.loops("Y")
    sch.compute_at("R", i)
    first, _ = sch.loop_partition(i, (2,))
    sch.parallel(first)


def _parts_of_a_sum(sch: Schedule) -> None:
    """An iteration adds terms to two rows, and others to one."""
    _, one, two = parts_of_a_sum(sch, "S")
    i, _ = sch.split(sch.loops(one)[0], (None, 2), tail="mask")
    sch.parallel(sch.merge(i, sch.loops(two)[0]))


def _lanes_of_parts_of_a_sum(sch: Schedule) -> None:
    """A lane adds a term to one row, and another term to the row before."""
    _, one, two = parts_of_a_sum(sch, "S")
    for part in (one, two):
        sch.reorder(*reversed(sch.loops(part)))
    sch.merge(sch.loops(one)[0], sch.loops(two)[0])
    _, later = sch.loop_partition(sch.loops(one)[1], (1,))
    sch.vectorize(sch.merge(later, sch.loops(two)[1]))


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "loop-conflict: a reduction": (
        matmul(2, 3, 2),
        lambda s: (s.reorder(s.loops("C")[2], *s.loops("C")[:2]), s.parallel(s.loops("C")[0])),
    ),
    "loop-conflict: vector lanes": (matmul(2, 3, 2), lambda s: s.vectorize(s.loops("C")[2])),
    "loop-conflict: an epilogue": (matmul_relu(2, 3, 2), _epilogue),
    "loop-conflict: a number for every lane": (rank_0(4), _lanes_of_a_number),
    "loop-conflict: a tensor of another loop too": (blur(4, 3), _parallel_beside),
    "loop-conflict: parts of a sum": (moments(4, 6), _parts_of_a_sum),
    "loop-conflict: lanes of parts of a sum": (moments(4, 6), _lanes_of_parts_of_a_sum),
    "vectorize-innermost: parts that overlap": (blur(2, 3), _vectorized_parts),
    "vectorize-innermost": (matmul(2, 3, 2), lambda s: s.vectorize(s.loops("C")[1])),
    "loop-kind": (
        matmul(2, 3, 2),
        lambda s: (s.parallel(s.loops("C")[0]), s.unroll(s.loops("C")[0])),
    ),
    "parallel-inside": (matmul(2, 3, 2), lambda s: s.parallel(s.loops("C")[1])),
    "parallel-staged": (conv(2, 2, 1, 1, pad=0, kernel=1), _staged),
    "unroll-limit": (long_sum(513), lambda s: s.unroll(s.loops("S")[0])),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_kinds.txt", refusals(CASES))


def test_a_conflict_on_a_tensor_of_rank_0_names_its_element() -> None:
    x = te.placeholder((4,), "float32", name="X")
    k = te.reduce_axis(4, name="k")
    sch = Schedule(te.func(x, te.compute((), lambda: te.sum(x[k], axis=k), name="S"), name="f"))
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(sch.loops("S")[0])
    assert caught.value.notes == ("iterations (k=0) and (k=1) both write S[()].",)
