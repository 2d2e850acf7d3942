"""schedule/primitives/loops/partition.py: loop_partition: text, values, proof, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.text.equal import equal

from ...programs import (
    assert_meaning_kept,
    body_of,
    chain,
    matmul,
    matmul_relu,
    refusals,
    scheduled,
)

AVX512 = Target.parse("c:avx512")


def cut(block: str, depth: int, *points: int) -> Callable[[Schedule], object]:
    return lambda sch: sch.loop_partition(sch.loops(block)[depth], points)


def test_a_loop_is_cut_into_loops_that_follow_each_other() -> None:
    assert body_of(scheduled(chain(2, 7), cut("P", 1, 4)))[: 7 * 80].splitlines()[2:9] == [
        "for i in range(2):",
        "    for j in range(4):",
        '        with block("P", vi=spatial(2, i), vj=spatial(7, j)):',
        "            P[vi, vj] = X[vi, vj] * 2.0 + bias[vj]",
        "    for j in range(3):",
        '        with block("P_part1", vi=spatial(2, i), vj=spatial(7, j + 4), family="P"):',
        "            P[vi, vj] = X[vi, vj] * 2.0 + bias[vj]",
    ]


def test_a_later_part_of_a_reduction_goes_on_where_the_one_before_it_stopped() -> None:
    text = body_of(scheduled(matmul(3, 5, 7), cut("C", 2, 2, 6)))
    assert text.count("with init():") == 1
    assert text.index("with init():") < text.index('"C_part1"') < text.index('"C_part2"')


@pytest.mark.parametrize("depth", [0, 1])
def test_each_part_of_kept_axes_initialises_its_own_elements(depth: int) -> None:
    sch = scheduled(matmul(3, 5, 2), cut("C", depth, 1))
    assert body_of(sch).count("with init():") == 2
    assert equal(canonical_form(sch.func), canonical_form(sch.original))


def fast(sch: Schedule) -> None:
    """Rows in fours and the rest, each part with its own tile, after Y has joined the rows of C."""
    i, j, k = sch.loops("C")
    sch.reorder(i, k, j)
    sch.reverse_compute_at("Y", i)
    four, rest = sch.loop_partition(i, (4,))
    ii, _ = sch.split(four, (None, 4))
    for block, reader, loop in (("C", "Y", ii), ("C_part1", "Y_part1", rest)):
        sch.vectorize(sch.loops(block)[-1])
        sch.vectorize(sch.loops(reader)[-1])
        sch.stage(block, "C", loop, "register")


def test_parts_are_staged_and_vectorized_apart_and_that_is_proved() -> None:
    sch = scheduled(matmul_relu(6, 9, 4), fast)
    assert tw.prove(sch, AVX512).status == "proved"
    assert not [name for name in sch.blocks() if name.endswith("_out")]  # each part is read there


@pytest.mark.isa
@pytest.mark.needs_cc
def test_the_parts_compute_the_product_in_c() -> None:
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(s, dtype=np.float32) for s in ((6, 8), (8, 21), (21,)))
    kernel = tw.build(Schedule(matmul_relu(6, 21, 8)).apply(fast))
    np.testing.assert_allclose(kernel(a, b, bias), np.maximum(a @ b + bias, 0), atol=1e-5)


def test_a_part_may_be_cut_again() -> None:
    def steps(sch: Schedule) -> None:
        first, second = sch.loop_partition(sch.loops("Y")[1], (3,))
        sch.loop_partition(second, (2,))
        sch.loop_partition(first, (1,))

    assert set(scheduled(chain(2, 9), steps).blocks()) >= {"Y", "Y_part1", "Y_part1_1"}


def test_parts_of_a_fused_loop_may_share_rows() -> None:
    def steps(sch: Schedule) -> None:
        i, j, _ = sch.loops("C")
        both = sch.fuse(i, j)
        sch.reverse_compute_at("Y", both)
        first, _ = sch.loop_partition(both, (4,))
        sch.stage("C", "C", first, "register")

    sch = scheduled(matmul_relu(3, 3, 2), steps)
    assert tw.prove(sch, AVX512).status == "proved"


def _staged(sch: Schedule) -> None:
    i, _, k = sch.loops("C")
    sch.stage("C", "C", k, "register")
    sch.loop_partition(i, (1,))


def _then_stage(depth: int) -> Callable[[Schedule], object]:
    def steps(sch: Schedule) -> None:
        cut("C", depth, 1)(sch)
        sch.stage("C_part1", "C", sch.loops("C_part1")[0], "register")

    return steps


def _then_rfactor(sch: Schedule) -> None:
    cut("C", 0, 1)(sch)
    sch.rfactor("C", sch.loops("C")[2])


def _vectorized(sch: Schedule) -> None:
    sch.vectorize(sch.loops("P")[1])
    cut("P", 1, 1)(sch)


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "partition-points: none": (chain(2, 3), cut("P", 1)),
    "partition-points: at the end": (chain(2, 3), cut("P", 1, 3)),
    "partition-points: falling": (chain(2, 3), cut("P", 1, 2, 1)),
    "partition-points: no integer": (chain(2, 3), cut("P", 1, 1.5)),  # type: ignore[arg-type]
    "partition-storage": (matmul(2, 3, 2), _staged),
    "loop-kind": (chain(2, 3), _vectorized),
    "block-part: a part of a reduction is staged": (matmul(2, 3, 2), _then_stage(2)),
    "block-part: rfactor": (matmul(2, 3, 2), _then_rfactor),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_partition.txt", refusals(CASES))


def test_a_part_with_its_own_accumulators_may_be_staged() -> None:
    assert_meaning_kept(Schedule(matmul(3, 4, 2)).apply(_then_stage(0)))
