"""schedule/primitives/blocks/axes.py: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import body_of, chain, conv, matmul, matmul_relu, refusals, running, scheduled


def test_join_axes_counts_two_variables_as_one_and_readers_follow() -> None:
    def steps(sch: Schedule) -> None:
        made = sch.join_axes("P", ((0, 1),))
        assert [loop.name for loop in made] == ["i_j"]

    lines = body_of(scheduled(chain(2, 3), steps)).splitlines()
    assert lines[2:5] == [
        "for i_j in range(6):",
        '    with block("P", vi_j=spatial(6, i_j)):',
        "        P[vi_j] = X[vi_j // 3, vi_j % 3] * 2.0 + bias[vi_j % 3]",
    ]
    assert any("max(P[vi * 3 + vj], 0.0)" in line for line in lines)


def test_indices_that_count_alike_become_plain_again() -> None:
    def steps(sch: Schedule) -> None:
        for name in ("P", "Q", "Y"):
            sch.join_axes(name, ((1, 0),))

    text = body_of(scheduled(chain(2, 3), steps))
    assert "Q[vj_i] = max(P[vj_i], 0.0)" in text
    assert "Y[vj_i % 2, vj_i // 2] = Q[vj_i] * X[vj_i % 2, vj_i // 2]" in text


def test_a_convolution_becomes_a_product_of_matrices() -> None:
    def steps(sch: Schedule) -> None:
        sch.join_axes("conv", ((0, 1, 2), (3,), (5, 6, 4)))
        sch.join_axes("relu", ((0, 1, 2), (3,)))
        sch.reindex("conv", "X_pad", name="windows")
        sch.reindex("conv", "W", name="weights")
        sch.compute_inline("X_pad")

    sch = scheduled(conv(4, 3, 2, 5, stride=2, batch=2), steps)
    text = body_of(sch)
    assert "conv[vn_h_v, vo] + windows[vn_h_v, vr_s_c] * weights[vo, vr_s_c]" in text
    assert tw.prove(sch, Target.parse("c:avx512")).status == "proved"


def test_split_axis_counts_a_variable_as_two_digits() -> None:
    def steps(sch: Schedule) -> None:
        sch.split_axis("C", 1, 2)
        sch.split_axis("C", 3, 2)
        sch.split_axis("Y", 1, 2)

    text = body_of(scheduled(matmul_relu(3, 4, 6), steps))
    assert "A[vi, vk_0 * 2 + vk_1] * B[vk_0 * 2 + vk_1, vj_0 * 2 + vj_1]" in text
    assert "Y[vi, vj_0 * 2 + vj_1] = max(C[vi, vj_0, vj_1] + bias[vj_0 * 2 + vj_1], 0.0)" in text


def test_splitting_and_joining_again_leaves_the_meaning_and_the_indices() -> None:
    def steps(sch: Schedule) -> None:
        sch.split_axis("P", 1, 2)
        sch.join_axes("P", ((0,), (1, 2)))

    text = body_of(scheduled(chain(2, 4), steps))
    assert "P[vi, vj_0_j_1] = X[vi, vj_0_j_1] * 2.0 + bias[vj_0_j_1]" in text
    assert "Q[vi, vj] = max(P[vi, vj], 0.0)" in text


def test_a_digit_of_one_value_is_a_variable_like_others() -> None:
    def steps(sch: Schedule) -> None:
        sch.split_axis("P", 1, 1)
        sch.split_axis("P", 0, 2)
        sch.compute_at("P", sch.loops("Q")[0])

    text = body_of(scheduled(chain(2, 3), steps))
    assert "P[vi_0, vi_1, vj_0, vj_1] = X[" in text


def test_a_block_in_loops_of_its_own_form_keeps_them() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        inner = sch.split(i, (None, 2))
        sch.reorder(k, *inner, j)
        sch.vectorize(j)
        assert sch.join_axes("C", ((0, 1), (2,))) == ()
        assert sch.split_axis("C", 1, 2) == ()

    sch = scheduled(matmul_relu(4, 3, 6), steps)
    lines = body_of(sch).splitlines()
    assert lines[:8] == [
        'C = alloc(float32[12], "global")',
        "for k in range(6):",
        "    for i_0 in range(2):",
        "        for i_1 in range(2):",
        "            for j in vectorized(3):",
        '                with block("C", vi_j=spatial(12, i_0 * 6 + i_1 * 3 + j), '
        "vk_0=reduce(3, k // 2), vk_1=reduce(2, k % 2)):",
        "                    with init():",
        "                        C[vi_j] = 0.0",
    ]
    assert tw.prove(sch, "c:avx512").status == "proved"


def test_a_block_below_a_loop_of_its_reader_counts_anew() -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_at("P", sch.loops("Q")[0])
        sch.split_axis("P", 1, 2)

    sch = scheduled(chain(2, 4), steps)
    assert "Q[vi, vj] = max(P[vi, vj // 2, vj % 2], 0.0)" in body_of(sch)
    assert tw.prove(sch, "c:avx512").status == "proved"


def _staged(sch: Schedule) -> None:
    sch.stage("C", "C", sch.loops("C")[0], "register")
    sch.split_axis("C", 0, 1)


def _sized() -> PrimFunc:
    n = te.dim("n", 1, 4)
    x = te.placeholder((n, 2), "float32", name="X")
    return te.func(x, te.compute((n, 2), lambda i, j: x[i, j] + 1.0, name="Y"), name="sized")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "join_axes: axes-kinds": (matmul(4, 3, 2), lambda s: s.join_axes("C", ((0,), (1, 2)))),
    "join_axes: one is missing": (matmul(4, 3, 2), lambda s: s.join_axes("C", ((0, 1),))),
    "join_axes: sums first": (matmul(4, 3, 2), lambda s: s.join_axes("C", ((2,), (0, 1)))),
    "join_axes: sums in another order": (
        conv(4, 3, 2, 5),
        lambda s: s.join_axes("conv", ((0,), (1,), (2,), (3,), (5,), (4,), (6,))),
    ),
    "join_axes: axes-dim": (_sized(), lambda s: s.join_axes("Y", ((0, 1),))),
    "join_axes: a recurrence": (running(3, 4), lambda s: s.join_axes("S", ((0,), (1,)))),
    "split_axis: axes-factor": (matmul(4, 3, 2), lambda s: s.split_axis("C", 1, 2)),
    "split_axis: no such variable": (matmul(4, 3, 2), lambda s: s.split_axis("C", 3, 1)),
    "split_axis: block-staged": (matmul(4, 3, 2), _staged),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_axes.txt", refusals(CASES))
