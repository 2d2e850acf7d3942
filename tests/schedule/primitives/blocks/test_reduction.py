"""schedule/primitives/blocks/reduction.py: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc

from ...programs import body_of, chain, matmul, matmul_relu, refusals, scheduled

# -- decompose_reduction ---------------------------------------------------------------------------


def test_the_initialisation_is_placed_before_a_loop() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.decompose_reduction("C", sch.loops("C")[1]) == "C_init"

    assert body_of(scheduled(matmul(2, 3, 2), steps)) == (
        "for i in range(2):\n"
        "    for j in range(3):\n"
        '        with block("C_init", vi=spatial(2, i), vj=spatial(3, j), init="C"):\n'
        "            C[vi, vj] = 0.0\n"
        "    for j in range(3):\n"
        "        for k in range(2):\n"
        '            with block("C", vi=spatial(2, i), vj=spatial(3, j), vk=reduce(2, k)):\n'
        "                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"
    )


@pytest.mark.parametrize("depth", range(6))
def test_it_may_stand_before_any_loop_of_a_tile(depth: int) -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        i0, i1 = sch.split(i, (None, 2), tail="partition")
        j0, j1 = sch.split(j, (None, 4), tail="mask")
        loops = (i0, j0, i1, j1, k)
        sch.reorder(*loops)
        sch.decompose_reduction("C", loops[min(depth, 4)])

    scheduled(matmul(5, 7, 3), steps)


def test_a_loop_of_one_iteration_outside_of_it_does_no_harm() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        outer, inner = sch.split(k, (1, None))
        sch.reorder(outer, i, j, inner)
        sch.decompose_reduction("C", j)

    scheduled(matmul(2, 3, 4), steps)


def test_below_a_stage_the_tile_is_initialised() -> None:
    def steps(sch: Schedule) -> None:
        i, j, _ = sch.loops("C")
        sch.stage("C", "C", i, "register")
        sch.decompose_reduction("C", j)

    assert "C_reg[vi, vj] = 0.0" in body_of(scheduled(matmul(2, 3, 4), steps))


def test_it_can_be_scheduled_like_any_other_block() -> None:
    def steps(sch: Schedule) -> None:
        init = sch.decompose_reduction("C", sch.loops("C")[0])
        i, j = sch.loops(init)
        sch.vectorize(j)
        sch.parallel(i)

    scheduled(matmul(4, 5, 3), steps)


# -- refusals --------------------------------------------------------------------------------------


def _twice(sch: Schedule) -> None:
    k = sch.loops("C")[2]
    sch.decompose_reduction("C", k)
    sch.decompose_reduction("C", k)


def _reduced_outside(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.decompose_reduction("C", i)


def _staged_inside(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    sch.stage("C", "C", j, "register")
    sch.decompose_reduction("C", i)


def _read_inside(sch: Schedule) -> None:
    sch.reverse_compute_at("Y", sch.loops("C")[1])
    sch.rfactor("C", sch.loops("C")[2])


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "decompose_reduction: no-init": (
        chain(2, 3),
        lambda s: s.decompose_reduction("P", s.loops("P")[0]),
    ),
    "decompose_reduction: placed already": (matmul(2, 3, 2), _twice),
    "decompose_reduction: init-inside": (matmul(2, 3, 2), _reduced_outside),
    "decompose_reduction: init-staged": (matmul(2, 3, 2), _staged_inside),
    "decompose_reduction: block-outside": (
        matmul_relu(2, 3, 2),
        lambda s: s.decompose_reduction("C", s.loops("Y")[0]),
    ),
    "rfactor: reader-inside": (matmul_relu(2, 3, 2), _read_inside),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_reduction.txt", refusals(CASES))
