"""schedule/primitives/storage/stage.py: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.analysis import exists
from tilewright.tir.func import PrimFunc

from ...programs import blur, body_of, chain, conv, matmul, matmul_relu, refusals, scheduled


def test_a_written_tile_is_copied_out_after_it_is_complete() -> None:
    sch = scheduled(matmul(2, 3, 2), lambda s: s.stage("C", "C", s.loops("C")[0], "register"))
    assert body_of(sch) == (
        "for i in range(2):\n"
        '    C_reg = alloc(float32[2, 3], "register", origin=C)\n'
        "    for j in range(3):\n"
        "        for k in range(2):\n"
        '            with block("C", vi=spatial(2, i), vj=spatial(3, j), vk=reduce(2, k)):\n'
        "                with init():\n"
        "                    C_reg[vi, vj] = 0.0\n"
        "                C_reg[vi, vj] = C_reg[vi, vj] + A[vi, vk] * B[vk, vj]\n"
        "    for j in range(3):\n"
        '        with block("C_reg_out", v0=spatial(2, i), v1=spatial(3, j), copy="C"):\n'
        "            C[v0, v1] = C_reg[v0, v1]"
    )


def test_an_open_reduction_copies_in_after_its_first_iteration() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        block, inner = sch.split(k, (None, 3), tail="partition")
        sch.reorder(block, i, j, inner)
        sch.stage("C", "C", i, "thread")

    text = body_of(scheduled(matmul(2, 3, 7), steps))
    assert 'with block("C_local_in", v0=spatial(2, i), v1=spatial(3, j), copy="C"):\n' in text
    assert "where(0 < k_0)" in text


def test_what_nobody_else_reads_is_copied_out_until_it_is_complete() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        outer, inner = sch.split(k, (None, 2))
        sch.reorder(outer, i, j, inner)
        sch.reverse_compute_at("Y", i, at="last")
        sch.stage("C", "C", i, "register")

    assert body_of(scheduled(matmul_relu(3, 4, 4), steps)).endswith(
        '            with block("C_reg_out", v0=spatial(3, i), v1=spatial(4, j), copy="C"):\n'
        "                where(k_0 < 1)\n"
        "                C[v0, v1] = C_reg[v0, v1]"
    )


def test_an_initialisation_outside_is_copied_in_always() -> None:
    def steps(sch: Schedule) -> None:
        i, j, _ = sch.loops("C")
        sch.decompose_reduction("C", i)
        sch.stage("C", "C", j, "register")

    text = body_of(scheduled(matmul(2, 3, 4), steps))
    assert "C_reg_in" in text
    assert "where" not in text


def test_the_copies_repeat_the_tile_with_its_kinds_tails_and_guards() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        i, ii = sch.split(i, (None, 2), tail="partition")
        j, jj = sch.split(j, (None, 4), tail="mask")
        sch.reorder(i, j, k, ii, jj)
        sch.unroll(ii)
        sch.vectorize(jj)
        sch.stage("C", "C", j, "register")

    text = body_of(scheduled(matmul(5, 7, 3), steps))
    assert text.splitlines()[-5:] == [
        "        for i_1 in unrolled(2):",
        "            for j_1 in vectorized(4):",
        '                with block("C_reg_out", v0=spatial(5, i_0 * 2 + i_1), '
        'v1=spatial(7, j_0 * 4 + j_1), copy="C"):',
        "                    where(i_0 * 2 + i_1 < 5 and j_0 * 4 + j_1 < 7)",
        "                    C[v0, v1] = C_reg[v0, v1]",
    ]


def test_a_tensor_that_is_read_is_copied_in_over_the_box_that_is_read() -> None:
    def steps(sch: Schedule) -> None:
        loops = sch.stage("Y", "R", sch.loops("Y")[0], "thread")
        sch.vectorize(loops[-1])

    assert body_of(scheduled(blur(3, 4), steps)).splitlines()[5:11] == [
        "for i in range(3):",
        '    R_local = alloc(float32[4, 4], "thread", origin=R)',
        "    for R_0 in range(2):",
        "        for R_1 in vectorized(4):",
        '            with block("R_local_in", v0=spatial(4, i + R_0), v1=spatial(4, R_1), '
        'copy="R"):',
        "                R_local[v0, v1] = R[v0, v1]",
    ]


def test_the_box_of_an_edge_is_guarded() -> None:
    def steps(sch: Schedule) -> None:
        outer, _ = sch.split(sch.loops("P")[0], (None, 2), tail="partition")
        sch.stage("P", "X", outer, "register")

    assert "where(i_0 * 2 + X_0 < 5)" in body_of(scheduled(chain(5, 3), steps))


@pytest.mark.parametrize("tensor", ["X_pad", "W", "conv"])
@pytest.mark.parametrize("depth", range(3))
def test_each_tensor_of_a_convolution_may_be_staged(tensor: str, depth: int) -> None:
    def steps(sch: Schedule) -> None:
        n, h, v, o, c, r, s = sch.loops("conv")
        sch.reorder(n, h, c, v, r, s, o)
        sch.stage("conv", tensor, (h, c, v)[depth], "thread")

    scheduled(conv(5, 4, 2, 3, stride=2), steps)


def test_a_stage_of_parts_that_are_computed_again_is_marked() -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_at("R", sch.loops("Y")[0])
        sch.stage("R", "R", sch.loops("R")[1], "register")

    text = body_of(scheduled(blur(3, 4), steps))
    assert 'copy="R", recomputed=True' in text


# -- refusals --------------------------------------------------------------------------------------


def _twice(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    sch.stage("C", "C", i, "thread")
    sch.stage("C", "C", j, "register")


def _of_a_copy_that_writes(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.stage("C", "C", i, "register")
    sch.stage("C_reg_out", "C", i, "thread")


def _of_what_is_computed_in_the_nest(sch: Schedule) -> None:
    i, _ = sch.loops("Q")
    sch.compute_at("P", i)
    sch.stage("Q", "P", i, "thread")


def _beside_what_is_computed_in_the_nest(sch: Schedule) -> None:
    i, j = sch.loops("Q")
    sch.compute_at("P", i)
    sch.stage("Q", "P", j, "thread")


def _vectorized(sch: Schedule) -> None:
    j = sch.loops("P")[1]
    sch.vectorize(j)
    sch.stage("P", "X", j, "register")


def _around_a_parallel_loop(sch: Schedule) -> None:
    n, h, *_ = sch.loops("relu")
    sch.parallel(h)
    sch.stage("relu", "bias", n, "thread")


def _where_a_reduction_ends(sch: Schedule, *, cut: bool) -> None:
    """Y runs in the last iteration of k, and is staged outside of k."""
    i, j, k = sch.loops("C")
    sch.reorder(i, k, j)
    sch.reverse_compute_at("Y", k, at="last")
    if cut:
        sch.split(k, (None, 2), tail="partition")
    sch.stage("Y", "Y", i, "register")


def _where_fused_reductions_end(sch: Schedule) -> None:
    """The epilogue runs in the last iteration of two loops, which then become one."""
    n, h, v, o, c, r, s = sch.loops("conv")
    sch.reorder(n, h, v, c, r, s, o)
    sch.reverse_compute_at("relu", s, at="last")
    sch.fuse(c, r)
    sch.stage("relu", "relu", v, "register")


def _of_storage_inside(sch: Schedule) -> None:
    i, _ = sch.loops("Y")
    sch.compute_at("R", i)
    sch.parallel(i)
    sch.stage("R", "R", i, "thread")


def _in_a_parallel_sum(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.parallel(k)
    k_0, _ = sch.split(k, (2, None))
    sch.stage("C", "C", k_0, "register")


def _of_a_row_that_stays(sch: Schedule) -> None:
    """The last box of two rows holds the row of zeros, which its maker keeps to itself."""
    sch.pad("P", (4, 1))
    (border,) = sch.decompose_padding("P", sch.loops("P")[0])
    sch.stage(border, "P", sch.loops(border)[0], "thread")
    i, _ = sch.split(sch.loops("Q")[0], (None, 2), tail="guard")
    sch.stage("Q", "P", i, "thread")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "stage-scope": (
        matmul(2, 3, 2),
        lambda s: s.stage("C", "C", s.loops("C")[0], "shared"),  # type: ignore[arg-type]
    ),
    "block-outside": (
        chain(2, 3),
        lambda s: s.stage("P", "X", s.loops("Q")[0], "thread"),
    ),
    "block-access": (
        chain(2, 3),
        lambda s: s.stage("Q", "bias", s.loops("Q")[0], "thread"),
    ),
    "block-access: staged already": (matmul(2, 3, 2), _twice),
    "block-role": (matmul(2, 3, 2), _of_a_copy_that_writes),
    "stage-reader": (chain(2, 3), _of_what_is_computed_in_the_nest),
    "writer-beside": (chain(2, 3), _beside_what_is_computed_in_the_nest),
    "predicate-open": (
        conv(3, 3, 2, 2, pad=0, kernel=2),
        _where_fused_reductions_end,
    ),
    "stage-part": (chain(3, 3), _of_a_row_that_stays),
    "stage-inside": (blur(2, 3), _of_storage_inside),
    "loop-vectorized": (chain(2, 3), _vectorized),
    "stage-parallel": (conv(2, 2, 1, 1, pad=0, kernel=1), _around_a_parallel_loop),
    "stage-parallel: one term": (matmul(2, 3, 1), _in_a_parallel_sum),
}


def test_what_runs_where_fused_reductions_end_is_staged() -> None:
    func, steps = CASES["predicate-open"]
    assert "relu_reg_out" in body_of(scheduled(func, steps))


def test_one_iteration_of_a_parallel_sum_may_copy() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        sch.reorder(k, i, j)
        sch.parallel(k)
        sch.stage("C", "C", k, "register")

    assert tw.prove(scheduled(matmul(2, 3, 1), steps), "c:avx512").status == "proved"


def test_a_copy_may_be_made_of_a_copy() -> None:
    def steps(sch: Schedule) -> None:
        sch.stage("C", "A", sch.loops("C")[0], "thread")
        sch.stage("A_local_in", "A", sch.loops("A_local_in")[1], "register")

    sch = scheduled(matmul(2, 3, 2), steps)
    lines = body_of(sch).splitlines()
    at = lines.index("    for A_0 in range(1):")
    assert [line.strip() for line in lines[at + 1 : at + 5]] == [
        'A_reg = alloc(float32[2, 2], "register", origin=A)',
        "for A_0_1 in range(1):",
        "for A_1 in range(2):",
        'with block("A_reg_in", v0=spatial(2, i + A_0_1), v1=spatial(2, A_1), copy="A"):',
    ]
    assert tw.prove(sch, "c:avx512").status == "proved"


@pytest.mark.parametrize(
    ("rows", "factors", "depth"), [(1, (2, None), 1), (3, (2, 3), 0), (8, (None, 4), 0)]
)
def test_a_copy_of_sums_that_go_on_in_a_copy_reads_what_that_one_reads(
    rows: int, factors: tuple[int | None, int | None], depth: int
) -> None:
    """The box of the rows that the copy reads holds some whose sums are complete by then."""

    def steps(sch: Schedule) -> None:
        sch.reindex("Y", "C")
        i, _, k = sch.loops("C")
        sch.reverse_compute_at("C_reindexed", k, at="last")
        sch.decompose_reduction("C", i)
        outer, inner = sch.split(i, factors, tail="guard")
        if rows == 8:  # the rows 0 to 2 and 4 to 6, then, of a box of three, the rows 3 and 7
            first, _ = sch.split(inner, (None, 3), tail="guard")
            sch.reorder(first, outer)
        sch.stage("C", "C", outer, "thread")
        copy = "C_local_in"
        loop = outer if depth == 0 else sch.loops(copy)[depth]
        made = sch.stage(copy, "C", loop, "thread")
        assert [x.name for x in made] == [x.name for x in sch.loops("C_local_1_in")[-len(made) :]]

    sch = scheduled(matmul_relu(rows, 2, 2), steps)
    assert tw.prove(sch, "c:avx512").status == "proved"


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exists, "TRIED", 0)  # of the iterations in which a predicate may hold
    golden("errors/schedule_stage.txt", refusals(CASES))


def test_what_runs_in_the_last_iteration_of_a_split_loop_is_copied_out_after_it() -> None:
    text = body_of(scheduled(matmul_relu(2, 3, 3), lambda s: _where_a_reduction_ends(s, cut=True)))
    assert text.count("where(k_0 * 2 + k_1 == 2") == 1


def test_what_runs_in_the_last_iteration_is_copied_out_after_it() -> None:
    text = body_of(scheduled(matmul_relu(2, 3, 3), lambda s: _where_a_reduction_ends(s, cut=False)))
    assert text.count("where(k == 2)") == 1
