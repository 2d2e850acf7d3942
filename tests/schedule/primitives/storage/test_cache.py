"""schedule/primitives/storage/cache.py: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import blur, body_of, chain, conv, matmul, matmul_relu, refusals, scheduled


def test_cache_read_makes_a_copy_before_the_nest() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.cache_read("C", "B") == "B_cache"

    assert body_of(scheduled(matmul(2, 3, 2), steps)).splitlines()[:5] == [
        'B_cache = alloc(float32[2, 3], "global")',
        "for B_0 in range(2):",
        "    for B_1 in range(3):",
        '        with block("B_cache", v0=spatial(2, B_0), v1=spatial(3, B_1)):',
        "            B_cache[v0, v1] = B[v0, v1]",
    ]


def test_the_copy_may_be_named_and_moved() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.cache_read("C", "A", name="row") == "row"
        sch.compute_at("row", sch.loops("C")[0])

    assert "row[v0, v1] = A[v0, v1]" in body_of(scheduled(matmul(3, 5, 4), steps))


def test_only_the_named_block_reads_the_copy() -> None:
    text = body_of(scheduled(chain(2, 3), lambda s: s.cache_read("Y", "X")))
    assert "P[vi, vj] = X[vi, vj] * 2.0 + bias[vj]" in text
    assert "Y[vi, vj] = Q[vi, vj] * X_cache[vi, vj]" in text


def test_everyone_behind_the_named_block_may_read_the_copy() -> None:
    def steps(sch: Schedule) -> None:
        sch.cache_read("P", "X", everyone=True)

    text = body_of(scheduled(chain(2, 3), steps))
    assert text.count(" X[") == 1
    assert "Y[vi, vj] = Q[vi, vj] * X_cache[vi, vj]" in text
    last = body_of(scheduled(chain(2, 3), lambda s: s.cache_read("Y", "X", everyone=True)))
    assert "P[vi, vj] = X[vi, vj] * 2.0 + bias[vj]" in last


def test_names_of_copies_are_unique() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.cache_read("P", "X") == "X_cache"
        assert sch.cache_read("Y", "X") == "X_cache_1"

    scheduled(chain(2, 3), steps)


def test_cache_write_lets_a_new_block_copy_to_the_old_tensor() -> None:
    def steps(sch: Schedule) -> None:
        i, *_ = sch.loops("C")
        assert sch.cache_write("C") == "C"
        assert sch.loops("C_cache")[0] == i  # the old block goes on under the new name
        assert len(sch.loops("C")) == 2

    assert body_of(scheduled(matmul(2, 3, 2), steps)).splitlines()[-4:] == [
        "for C_cache_0 in range(2):",
        "    for C_cache_1 in range(3):",
        '        with block("C", v0=spatial(2, C_cache_0), v1=spatial(3, C_cache_1)):',
        "            C[v0, v1] = C_cache[v0, v1]",
    ]


def test_readers_after_the_nest_read_the_old_tensor() -> None:
    def steps(sch: Schedule) -> None:
        sch.cache_write("C", name="acc")
        sch.reverse_compute_at("C", sch.loops("acc")[1])

    text = body_of(scheduled(matmul_relu(3, 5, 2), steps))
    assert "C[v0, v1] = acc[v0, v1]" in text
    assert "Y[vi, vj] = max(C[vi, vj] + bias[vj], 0.0)" in text


def test_a_placed_initialisation_goes_along() -> None:
    def steps(sch: Schedule) -> None:
        sch.decompose_reduction("C", sch.loops("C")[0])
        sch.cache_write("C")

    text = body_of(scheduled(matmul(2, 3, 2), steps))
    assert 'with block("C_init", vi=spatial(2, i), vj=spatial(3, j), init="C_cache"):' in text


@pytest.mark.parametrize("block", ["P", "Q", "Y"])
def test_any_block_of_a_chain_may_be_cached(block: str) -> None:
    scheduled(chain(3, 5), lambda s: s.cache_write(block))


# -- refusals --------------------------------------------------------------------------------------


def _reader_inside(sch: Schedule) -> None:
    sch.reverse_compute_at("Y", sch.loops("C")[0])
    sch.cache_write("C")


def _writer_inside(sch: Schedule) -> None:
    sch.compute_at("R", sch.loops("Y")[0])
    sch.cache_read("Y", "R")


def _staged(sch: Schedule) -> None:
    sch.stage("C", "C", sch.loops("C")[0], "register")
    sch.cache_write("C")


def _of_a_copy(sch: Schedule) -> None:
    sch.stage("C", "A", sch.loops("C")[0], "register")
    sch.cache_read("A_reg_in", "A")


# -- reindex ---------------------------------------------------------------------------------------


def test_reindex_gives_a_convolution_the_matrix_of_its_windows() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.reindex("conv", "X_pad", name="windows") == "windows"

    text = body_of(scheduled(conv(4, 5, 2, 4, stride=2), steps))
    assert 'windows = alloc(float32[1, 2, 3, 2, 3, 3], "global")' in text
    assert "windows[vn, vh, vv, vc, vr, vs] = X_pad[vn, vh * 2 + vr, vv * 2 + vs, vc]" in text
    assert "conv[vn, vh, vv, vo] + windows[vn, vh, vv, vc, vr, vs] * W[vr, vs, vc, vo]" in text


def test_the_copy_of_reindex_may_be_moved_and_laid_out() -> None:
    def steps(sch: Schedule) -> None:
        sch.reindex("C", "B")
        sch.transform_layout("B_reindexed", lambda k, j: (j // 2, k, j % 2))
        sch.reindex("C", "A", name="row")
        sch.compute_at("row", sch.loops("C")[0])

    sch = scheduled(matmul(3, 5, 4), steps)
    assert tw.prove(sch, Target.parse("c:avx512")).status == "proved"


def _windows() -> PrimFunc:
    x = te.placeholder((4,), "float32", name="X")
    y = te.compute((4,), lambda i: te.select(i < 3, x[i + 1], 0.0), name="Y")
    return te.func(x, y, name="shifted")


def _part_that_stays(sch: Schedule) -> None:
    sch.pad("P", (3, 3))
    border, *_ = sch.decompose_padding("P", sch.loops("P")[0])
    sch.stage(border, "P", sch.loops(border)[0], "thread")
    sch.cache_read("Q", "P")


def _joined(sch: Schedule) -> None:
    sch.join_axes("C", ((0, 1), (2,)))
    sch.cache_write("C")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "cache_read: block-reads": (matmul(2, 3, 2), lambda s: s.cache_read("C", "C")),
    "cache_read: another tensor": (chain(2, 3), lambda s: s.cache_read("Q", "bias")),
    "cache_read: writer-inside": (blur(2, 3), _writer_inside),
    "cache_read: block-role": (matmul(2, 3, 2), _of_a_copy),
    "cache_read: cache-part": (chain(2, 3), _part_that_stays),
    "cache_write: reader-inside": (matmul_relu(2, 3, 2), _reader_inside),
    "reindex: several places": (blur(2, 3), lambda s: s.reindex("R", "X")),
    "reindex: beyond its edges": (_windows(), lambda s: s.reindex("Y", "X")),
    "reindex: block-reads": (matmul(2, 3, 2), lambda s: s.reindex("C", "C")),
    "cache_write: cache-digits": (matmul(2, 3, 2), _joined),
    "cache_write: block-staged": (matmul(2, 3, 2), _staged),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_cache.txt", refusals(CASES))
