"""primitives/bind.py and legality/grid.py: text, values, proof, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

import tilewright as tw
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.stmt import AXES
from tilewright.tir.target.target import Target

from ...grids import Steps, flat, rows_shared, tiled
from ...programs import (
    blur,
    body_of,
    chain,
    matmul,
    matmul_relu,
    moments,
    parts_of_a_sum,
    refusals,
    scheduled,
)

H100 = Target.parse("cuda:sm_90a")


def test_a_bound_loop_names_its_axis() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")

    assert body_of(scheduled(chain(3, 5), steps)).splitlines()[-4:] == [
        'for i in bound(3, axis="blockIdx.x"):',
        '    for j in bound(5, axis="threadIdx.x"):',
        '        with block("Y", vi=spatial(3, i), vj=spatial(5, j)):',
        "            Y[vi, vj] = Q[vi, vj] * X[vi, vj]",
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(16, 16, 6), (13, 9, 7), (1, 1, 1)])
def test_a_tiled_product_of_any_size_is_right_and_proved(shape: tuple[int, int, int]) -> None:
    sch = scheduled(matmul(*shape), tiled())
    assert tw.prove(sch, H100).status == "proved"


def test_threads_share_what_a_block_computes_before() -> None:
    sch = scheduled(blur(3, 9), rows_shared("R", "Y"))
    assert '"shared"' in body_of(sch)
    assert tw.prove(sch, H100).status == "proved"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(40))
def test_random_grids_keep_the_meaning_and_are_never_refuted(seed: int) -> None:
    rng = Random(seed)
    func = rng.choice((matmul(5, 6, 3), matmul_relu(4, 5, 3), chain(5, 7), blur(4, 6)))

    def steps(sch: Schedule) -> None:
        for _ in range(8):
            block = rng.choice(sch.blocks())
            loops = sch.loops(block)
            try:
                if rng.random() < 0.3:
                    sch.split(rng.choice(loops), (None, rng.choice((2, 3, 4))))
                elif rng.random() < 0.2:
                    sch.compute_at(block, rng.choice(sch.loops(rng.choice(sch.blocks()))))
                else:
                    sch.bind(rng.choice(loops), rng.choice(AXES))
            except ScheduleError:
                continue

    sch = scheduled(func, steps)
    assert tw.prove(sch, H100).status != "refuted"


# -- refusals --------------------------------------------------------------------------------------


def bound(*pairs: tuple[int, str], block: str = "C") -> Steps:
    def steps(sch: Schedule) -> None:
        loops = sch.loops(block)
        for number, axis in pairs:
            sch.bind(loops[number], axis)

    return steps


def _parallel(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    sch.parallel(i)
    sch.bind(j, "threadIdx.x")


def _shared_outside(sch: Schedule) -> None:
    sch.compute_at("R", sch.loops("Y")[0])
    sch.set_scope("R", "shared")


def _shared_of_one_thread(sch: Schedule) -> None:
    i = sch.loops("Y")[0]
    sch.bind(i, "threadIdx.x")
    sch.compute_at("R", i)
    sch.set_scope("R", "shared")


def _two_loops(sch: Schedule) -> None:
    sch.bind(sch.split(sch.loops("C")[2], (None, 4))[1], "threadIdx.x")


def _parts_of_a_sum(sch: Schedule) -> None:
    _, one, two = parts_of_a_sum(sch, "S")
    i, _ = sch.split(sch.loops(one)[0], (None, 2), tail="mask")
    sch.bind(sch.merge(i, sch.loops(two)[0]), "threadIdx.x")


CASES: dict[str, tuple[PrimFunc, Steps]] = {
    "bind-axis: no such axis": (matmul(2, 3, 4), bound((0, "threadIdx.w"))),
    "bind-parallel: threads of a CPU": (matmul(2, 3, 4), _parallel),
    "bind-twice: an axis in itself": (
        matmul(2, 3, 4),
        bound((0, "threadIdx.x"), (1, "threadIdx.x")),
    ),
    "bind-inside: blocks inside of threads": (
        matmul(2, 3, 4),
        bound((0, "threadIdx.x"), (1, "blockIdx.x")),
    ),
    "loop-conflict: a reduction": (
        matmul(2, 3, 4),
        bound((0, "blockIdx.y"), (1, "blockIdx.z"), (2, "blockIdx.x")),
    ),
    "loop-conflict: parts of a sum": (moments(4, 6), _parts_of_a_sum),
    "join-axis: no neighbours": (matmul(2, 3, 4), bound((2, "threadIdx.y"))),
    "join-lanes: more than a warp": (matmul(2, 3, 64), bound((2, "threadIdx.x"))),
    "join-lanes: no power of two": (matmul(2, 3, 6), bound((2, "threadIdx.x"))),
    "join-block: two loops": (matmul(2, 3, 8), _two_loops),
    "loop-kind: bound already": (matmul(2, 3, 4), bound((0, "blockIdx.x"), (0, "blockIdx.y"))),
    "scope-shared: outside of a grid": (blur(3, 4), _shared_outside),
    "scope-shared: a thread's own": (blur(3, 4), _shared_of_one_thread),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_bind.txt", refusals(CASES))


def limits(extent: int, other: int) -> str:
    sch = Schedule(chain(extent, other), H100)
    i, j = sch.loops("Y")
    sch.bind(i, "threadIdx.y")
    with pytest.raises(ScheduleError) as refusal:
        sch.bind(j, "threadIdx.z")
    return str(refusal.value).split("\n  in ")[0]


def test_the_limits_of_a_gpu_are_refused_at_the_step_with_the_numbers() -> None:
    assert limits(2, 65) == (
        "ScheduleError: bind: loop 'j' has 65 iterations; expected at most 64 along threadIdx.z of "
        "sm_90a. [bind-extent]"
    )
    assert limits(64, 32) == (
        "ScheduleError: bind: with loop 'j' a block has 1 x 64 x 32 = 2048 threads; expected at "
        "most 1024 on sm_90a. [bind-threads]"
    )


def test_a_thread_for_each_element() -> None:
    assert tw.prove(scheduled(chain(3, 5), flat("Y")), H100).status == "proved"
