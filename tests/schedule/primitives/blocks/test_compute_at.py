"""Primitives compute_at and reverse_compute_at: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.schedule.errors import Kind, ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from ...programs import (
    assert_meaning_kept,
    blur,
    body_of,
    chain,
    conv,
    matmul,
    matmul_relu,
    pool,
    refusals,
    refused,
    scheduled,
)

# -- compute_at ------------------------------------------------------------------------------------


def test_a_producer_moves_below_a_loop_of_its_reader() -> None:
    sch = scheduled(chain(3, 4), lambda s: s.compute_at("P", s.loops("Q")[0]))
    assert body_of(sch).splitlines()[2:11] == [
        "for i in range(3):",
        "    for i_1 in range(1):",
        "        for j in range(4):",
        '            with block("P", vi=spatial(3, i + i_1), vj=spatial(4, j)):',
        "                P[vi, vj] = X[vi, vj] * 2.0 + bias[vj]",
        "    for j in range(4):",
        '        with block("Q", vi=spatial(3, i), vj=spatial(4, j)):',
        "            Q[vi, vj] = max(P[vi, vj], 0.0)",
        "for i in range(3):",
    ]


def test_what_overlaps_is_computed_again_and_marked() -> None:
    sch = scheduled(blur(3, 4), lambda s: s.compute_at("R", s.loops("Y")[0]))
    assert '"R", vi=spatial(4, i + i_1), vj=spatial(4, j), recomputed=True' in body_of(sch)


def test_an_axis_that_was_split_is_computed_as_a_whole_in_each_iteration() -> None:
    sch = Schedule(matmul(4, 3, 4))
    sch.split_axis("C", 0, 2)
    outer, _ = sch.split(sch.loops("C")[-1], (2, 2))
    sch.rfactor("C", outer)  # to C_rf[vk, vi_0 * 2 + vi_1, vj]
    with pytest.raises(ScheduleError) as caught:
        sch.compute_at("C_rf", sch.loops("C")[0])
    assert caught.value.code == "recompute-reduction"


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("stride", [1, 2])
def test_padding_is_computed_where_a_convolution_reads_it(depth: int, stride: int) -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_at("X_pad", sch.loops("conv")[depth])

    scheduled(conv(5, 4, 2, 4, stride=stride), steps)


def test_a_reduction_moves_whole_where_parts_do_not_overlap() -> None:
    sch = scheduled(matmul_relu(3, 5, 2), lambda s: s.compute_at("C", s.loops("Y")[1]))
    assert "recomputed" not in body_of(sch)


def test_a_split_reader_with_an_edge_guards_the_part() -> None:
    def steps(sch: Schedule) -> None:
        i, _ = sch.loops("Y")
        outer, _ = sch.split(i, (None, 2), tail="partition")
        sch.compute_at("C", outer)

    assert "where(i_0 * 2 + i < 5)" in body_of(scheduled(matmul_relu(5, 3, 2), steps))


def test_a_fused_reader_finds_its_part_by_digits() -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_at("P", sch.fuse(*sch.loops("Q")))

    assert "recomputed" not in body_of(scheduled(chain(3, 5), steps))


def test_a_whole_chain_moves_below_one_loop() -> None:
    def steps(sch: Schedule) -> None:
        i, _ = sch.loops("Y")
        sch.compute_at("Q", i)
        sch.compute_at("P", i)
        sch.parallel(i)

    scheduled(chain(5, 3), steps)


def test_overlapping_parts_below_a_parallel_loop_get_storage_of_their_own() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        sch.parallel(i)
        sch.compute_at("R", j)

    lines = body_of(scheduled(blur(3, 4), steps)).splitlines()
    assert lines[:2] == ["for i in parallel(3):", '    R = alloc(float32[4, 4], "global")']


# -- reverse_compute_at ----------------------------------------------------------------------------


def test_of_several_tensors_the_one_that_is_read_is_named() -> None:
    """Both iterations of a loop that goes beyond the only row complete its place."""
    x, k = te.placeholder((1, 4), "float32", name="X"), te.reduce_axis(4, name="k")
    _, place = te.compute((1,), lambda i: te.argmin(x[i, k], axis=k), name=("least", "place"))
    y = te.compute((1,), lambda i: place[i] + 1, name="Y")
    sch = Schedule(te.func(x, y, name="places"))
    again, _ = sch.split(sch.loops("least")[0], (None, 8), tail="partition")
    _, inside = sch.split(again, (2, None), tail="mask")
    with pytest.raises(ScheduleError, match="separate parts of 'place'") as caught:
        sch.reverse_compute_at("Y", inside, at="last")
    assert caught.value.code == "reverse-overlap"
    assert str(caught.value.notes[0]).startswith("block 'Y' would run twice for place[0], in ")


def test_a_reader_that_never_reads_the_tensor_is_refused_with_what_it_stores() -> None:
    x = te.placeholder((6,), "float32", name="X")
    y = te.compute((1, 6), lambda i, j: x[j] * 2.0, name="Y")
    z = te.compute((1, 6), lambda i, j: te.select(i >= 1, y[i - 1, j], 3.0), name="Z")
    sch = Schedule(te.func(x, z, name="f"))
    _, inside = sch.split(sch.loops("Y")[0], (None, 5), tail="mask")
    with pytest.raises(ScheduleError, match=r"\[reverse-overlap\]") as caught:
        sch.reverse_compute_at("Z", inside)
    assert str(caught.value.notes[0]).startswith("block 'Z' would run twice for Z[0, 0], in ")


def test_a_reader_moves_behind_the_part_that_is_complete() -> None:
    sch = scheduled(matmul_relu(3, 4, 2), lambda s: s.reverse_compute_at("Y", s.loops("C")[1]))
    assert body_of(sch).splitlines()[1:] == [
        "for i in range(3):",
        "    for j in range(4):",
        "        for k in range(2):",
        '            with block("C", vi=spatial(3, i), vj=spatial(4, j), vk=reduce(2, k)):',
        "                with init():",
        "                    C[vi, vj] = 0.0",
        "                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]",
        "        for i_1 in range(1):",
        "            for j_1 in range(1):",
        '                with block("Y", vi=spatial(3, i + i_1), vj=spatial(4, j + j_1)):',
        "                    Y[vi, vj] = max(C[vi, vj] + bias[vj], 0.0)",
    ]


def test_last_runs_the_reader_in_the_last_iteration_of_the_reduction() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        outer, inner = sch.split(k, (None, 3), tail="partition")
        sch.reorder(outer, i, j, inner)
        sch.reverse_compute_at("Y", i, at="last")

    assert "where(k_0 == 2)" in body_of(scheduled(matmul_relu(3, 5, 7), steps))


@pytest.mark.parametrize("depth", range(3))
def test_a_staged_tile_is_read_by_what_follows_and_not_copied_out(depth: int) -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        block, inner = sch.split(k, (None, 3), tail="partition")
        sch.reorder(i, j, block, inner)
        loop = (i, j, block)[depth]
        sch.stage("C", "C", loop, "register")
        sch.reverse_compute_at("Y", loop, at="last")

    text = body_of(scheduled(matmul_relu(3, 5, 7), steps))
    assert "Y[vi, vj] = max(C_reg[vi, vj] + bias[vj], 0.0)" in text
    assert ("C_reg_out" in text) is (depth == 2)


def test_what_a_stage_elsewhere_loads_is_copied_out() -> None:
    """Z and Y read P; Z in a tile of its own, Y in the tile of P."""

    def steps(sch: Schedule) -> None:
        sch.stage("P", "P", sch.loops("P")[0], "thread")
        sch.stage("Z", "P", sch.loops("Z")[0], "thread")
        sch.reverse_compute_at("Y", sch.loops("P")[0])

    text = body_of(scheduled(read_twice(2, 3), steps))
    assert "Y[vi, vj] = P_local[vi, vj] + 1.0" in text
    assert "P_local_out" in text


def test_where_the_last_iteration_has_no_point_the_tensor_is_read() -> None:
    """k runs over 0 .. 3, k_0 over 0 .. 2: the tile is not loaded where k_0 = 2."""

    def steps(sch: Schedule) -> None:
        k = sch.loops("C")[2]
        sch.stage("C", "C", k, "register")
        _, inner = sch.split(k, (3, 2))
        sch.reverse_compute_at("Y", inner, at="last")

    text = body_of(scheduled(matmul_relu(2, 3, 4), steps))
    assert "Y[vi, vj] = max(C[vi, vj] + bias[vj], 0.0)" in text
    assert "C_reg_out" in text


def test_a_reader_deeper_than_the_stage_leaves_the_right_copy_out() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        sch.reorder(i, k, j)
        sch.stage("C", "C", i, "thread")
        sch.reverse_compute_at("Y", k, at="last")

    assert "C_local_out" not in body_of(scheduled(matmul_relu(3, 5, 7), steps))


def test_tiles_with_edges_run_the_reader_on_what_they_computed() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        i0, i1 = sch.split(i, (None, 2), tail="partition")
        j0, j1 = sch.split(j, (None, 4), tail="mask")
        sch.reorder(i0, j0, k, i1, j1)
        sch.reverse_compute_at("Y", j0)

    scheduled(matmul_relu(3, 5, 2), steps)


def test_a_row_reduction_follows_whole_rows() -> None:
    x = te.placeholder((3, 5), "float32", name="X")
    k = te.reduce_axis(5, name="k")
    p = te.compute((3, 5), lambda i, j: x[i, j] * 2.0, name="P")
    s = te.compute((3,), lambda i: te.sum(p[i, k], axis=k), name="S")
    func = te.func(x, s, name="rows")
    scheduled(func, lambda sch: sch.reverse_compute_at("S", sch.loops("P")[0]))


# -- refusals --------------------------------------------------------------------------------------


def two_readers(n: int) -> PrimFunc:
    x = te.placeholder((n,), "float32", name="X")
    p = te.compute((n,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((n,), lambda i: p[i] + 1.0, name="Y")
    z = te.compute((n,), lambda i: p[i] + y[i], name="Z")
    return te.func(x, y, z, name="two_readers")


def reduced_twice() -> PrimFunc:
    """Windows over a product of matrices: parts of a reduction that overlap."""
    a = te.placeholder((4, 2), "float32", name="A")
    k = te.reduce_axis(2, name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="C")
    y = te.compute((3,), lambda i: c[i] + c[i + 1], name="Y")
    return te.func(a, y, name="windows")


def residual() -> PrimFunc:
    """Y reads C and P, and P is computed after C."""
    a = te.placeholder((3,), "float32", name="A")
    c = te.compute((3,), lambda i: a[i] + 1.0, name="C")
    p = te.compute((3,), lambda i: a[i] * 2.0, name="P")
    y = te.compute((3,), lambda i: c[i] + p[i], name="Y")
    return te.func(a, y, name="residual")


def read_twice(m: int, n: int) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    p = te.compute((m, n), lambda i, j: x[i, j] * 2.0, name="P")
    y = te.compute((m, n), lambda i, j: p[i, j] + 1.0, name="Y")
    z = te.compute((m, n), lambda i, j: p[i, j] + 2.0, name="Z")
    return te.func(x, y, z, name="read_twice")


def row_sums(m: int, n: int) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    p = te.compute((m, n), lambda i, j: x[i, j] * 2.0, name="P")
    y = te.compute((m,), lambda i: te.sum(p[i, k], axis=k), name="Y")
    return te.func(x, y, name="row_sums")


def symmetric() -> PrimFunc:
    """Y[i, j] = P[i, j] + P[j, i]: a row of P completes no element of Y but one."""
    x = te.placeholder((3, 3), "float32", name="X")
    p = te.compute((3, 3), lambda i, j: x[i, j] * 2.0, name="P")
    y = te.compute((3, 3), lambda i, j: p[i, j] + p[j, i], name="Y")
    return te.func(x, y, name="symmetric")


def wider() -> PrimFunc:
    """Y has more elements than the P that it reads."""
    a = te.placeholder((3,), "float32", name="A")
    p = te.compute((3,), lambda i: a[i] + 1.0, name="P")

    y = te.compute((5,), lambda i: te.select(i < 3, p[i], 0.0), name="Y")
    return te.func(a, y, name="wider")


def _producer_moves_again(sch: Schedule) -> None:
    i, _ = sch.loops("Q")
    sch.compute_at("P", i)
    sch.reverse_compute_at("Y", i)
    sch.compute_at("Q", sch.loops("Y")[1])


def test_an_operand_is_not_left_behind_in_the_nest_that_reads_a_part_of_it() -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_at("P", sch.loops("Q")[0])
        sch.compute_at("Q", sch.loops("Y")[0])

    assert "'P' computes in its nest" in refused(chain(2, 3), steps)


def test_a_reader_of_the_diagonal_takes_the_element_of_each_column() -> None:
    x = te.placeholder((4, 4), "float32", name="X")
    t = te.compute((4, 4), lambda i, j: x[i, j] + 1.0, name="T")
    y = te.compute((4,), lambda i: t[i, i] * 2.0, name="Y")

    def steps(sch: Schedule) -> None:
        i, j = sch.loops("T")
        sch.reorder(j, i)
        sch.reverse_compute_at("Y", j)

    assert "vi=spatial(4, j + i)" in body_of(scheduled(te.func(x, y, name="diagonal"), steps))


def test_a_reduction_over_one_element_is_complete_at_once() -> None:
    def steps(sch: Schedule) -> None:
        sch.reverse_compute_at("Y", sch.loops("C")[2])

    scheduled(matmul_relu(2, 3, 1), steps)


def _initialised(sch: Schedule) -> None:
    sch.decompose_reduction("C", sch.loops("C")[2])
    sch.compute_at("C", sch.loops("Y")[0])


def _sums_of_fused_elements(sch: Schedule) -> None:
    sch.reverse_compute_at("Y", sch.fuse(*sch.loops("P")))


def _fused_and_split(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    f, _ = sch.split(sch.fuse(i, j), (None, 2), tail="guard")
    sch.reverse_compute_at("Y", f)


def _staged(sch: Schedule) -> None:
    sch.stage("P", "X", sch.loops("P")[0], "register")
    sch.compute_at("P", sch.loops("Q")[0])


def _moved_copy(sch: Schedule) -> None:
    sch.stage("Q", "P", sch.loops("Q")[0], "thread")
    sch.reverse_compute_at("P_local_in", sch.loops("P")[0])


def _vectorized(sch: Schedule) -> None:
    j = sch.loops("Q")[1]
    sch.vectorize(j)
    sch.compute_at("P", j)


def _recomputed(sch: Schedule) -> None:
    block = sch.cache_read("Y", "R")
    sch.compute_at(block, sch.loops("Y")[0])
    sch.reverse_compute_at(block, sch.loops("R")[0])


def total() -> PrimFunc:
    """Y = 2 S, S = the sum of P, P = 2 X."""
    x = te.placeholder((3,), "float32", name="X")
    p = te.compute((3,), lambda i: x[i] * 2.0, name="P")
    k = te.reduce_axis(3, name="k")
    s = te.compute((1,), lambda i: te.sum(p[k], axis=k), name="S")
    return te.func(x, te.compute((1,), lambda i: s[i] * 2.0, name="Y"), name="total")


def _private_to_a_loop(sch: Schedule) -> None:
    (i,) = sch.loops("Y")
    sch.compute_at("S", i)
    sch.parallel(i)
    sch.reverse_compute_at("S", sch.loops("P")[0])


def _reordered_below_the_reader(sch: Schedule) -> None:
    """The last step of the sum is not in the last iteration of either part of its loop."""
    sch.reverse_compute_at("Y", sch.loops("C")[2], at="last")
    sch.reorder(*reversed(sch.split(sch.loops("C")[2], (2, None))))


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "compute_at: consumer-outside": (
        two_readers(3),
        lambda s: s.compute_at("P", s.loops("Z")[0]),
    ),
    "compute_at: already-below": (
        chain(2, 3),
        lambda s: (s.compute_at("P", s.loops("Q")[0]), s.compute_at("P", s.loops("Q")[0])),
    ),
    "compute_at: recompute-reduction": (
        reduced_twice(),
        lambda s: s.compute_at("C", s.loops("Y")[0]),
    ),
    "compute_at: not-intermediate": (
        two_readers(3),
        lambda s: s.compute_at("Y", s.loops("Z")[0]),
    ),
    "compute_at: operand-inside": (chain(2, 3), _producer_moves_again),
    "compute_at: init-placed": (matmul_relu(2, 3, 2), _initialised),
    "compute_at: block-staged": (chain(2, 3), _staged),
    "compute_at: loop-vectorized": (chain(2, 3), _vectorized),
    "reverse_compute_at: unknown place": (
        matmul_relu(2, 3, 2),
        lambda s: s.reverse_compute_at("Y", s.loops("C")[0], at="first"),  # type: ignore[arg-type]
    ),
    "reverse_compute_at: reduction-open": (
        matmul_relu(2, 3, 2),
        lambda s: s.reverse_compute_at("Y", s.loops("C")[2]),
    ),
    "reverse_compute_at: producer-below": (
        matmul_relu(2, 3, 2),
        lambda s: s.reverse_compute_at("C", s.loops("Y")[0]),
    ),
    "reverse_compute_at: not-elementwise": (
        blur(2, 3),
        lambda s: s.reverse_compute_at("Y", s.loops("R")[0]),
    ),
    "reverse_compute_at: an element and its mirror image": (
        symmetric(),
        lambda s: s.reverse_compute_at("Y", s.loops("P")[0]),
    ),
    "reverse_compute_at: a reader with more elements": (
        wider(),
        lambda s: s.reverse_compute_at("Y", s.loops("P")[0]),
    ),
    "reorder: reader-early": (matmul_relu(2, 3, 5), _reordered_below_the_reader),
    "reverse_compute_at: reverse-overlap": (matmul_relu(2, 3, 2), _fused_and_split),
    "reverse_compute_at: loop-mixed": (row_sums(3, 4), _sums_of_fused_elements),
    "reverse_compute_at: operand-later": (
        residual(),
        lambda s: s.reverse_compute_at("Y", s.loops("C")[0]),
    ),
    "reverse_compute_at: block-role": (chain(2, 3), _moved_copy),
    "reverse_compute_at: storage-elsewhere": (total(), _private_to_a_loop),
    "reverse_compute_at: block-recomputed": (blur(2, 3), _recomputed),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_compute_at.txt", refusals(CASES))


def test_windows_of_a_pool_share_their_padding() -> None:
    sch = Schedule(pool(7, 5, 3, pad=1))
    sch.compute_at("X_pad", sch.loops("Y")[1])
    sch.parallel(sch.loops("Y")[1])
    assert_meaning_kept(sch)


def test_an_operand_that_the_destination_computes_in_time_is_refused_as_a_limit() -> None:
    x, k = te.placeholder((2, 3), "float32", name="X"), te.reduce_axis(3, name="k")
    top = te.compute((2,), lambda i: te.max(x[i, k], axis=k), name="top")
    root = te.compute((2,), lambda i: te.sqrt(te.abs(top[i])), name="root")
    y = te.compute((2,), lambda i: root[i] + top[i], name="Y")
    sch = Schedule(te.func(x, top, y, name="f"))
    sch.reverse_compute_at("root", sch.loops("top")[0])
    with pytest.raises(ScheduleError) as caught:
        sch.reverse_compute_at("Y", sch.loops("root")[1])
    assert caught.value.kind is Kind.LIMIT
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: reverse_compute_at: block 'Y' reads 'top', which block 'top' computes in "
        "the nest that it would move to; expected it to be complete before that nest. "
        "[operand-inside]"
    )


def test_matmul_alone_has_nobody_to_move() -> None:
    sch = Schedule(matmul(2, 3, 2))
    assert not sch.attempt(lambda s: s.reverse_compute_at("C", s.loops("C")[0]))


def test_a_reduction_does_not_move_below_a_parallel_loop_that_it_reduces_over() -> None:
    x = te.placeholder((4, 3), "float32", name="X")
    t = te.compute((4, 3), lambda i, j: x[i, j] * 2.0, name="T")
    k = te.reduce_axis(4, name="k")
    func = te.func(x, te.compute((3,), lambda j: te.max(t[k, j], axis=k), name="Y"), name="f")

    def steps(sch: Schedule) -> None:
        i, _ = sch.loops("T")
        sch.parallel(i)
        sch.reverse_compute_at("Y", i)

    text = refused(func, steps)
    assert "iterations of loop 'i' write the same element: block 'Y' reduces over it." in text
    assert "both write Y[0]" in text
