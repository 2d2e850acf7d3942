"""schedule/primitives/storage/rolling.py: text, storage, values, proof, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_stmt

from ...programs import (
    assert_meaning_kept,
    blur,
    body_of,
    chain,
    pool,
    refusals,
    refused,
    scheduled,
)

AVX512 = Target.parse("c:avx512")


def rolled(sch: Schedule) -> None:
    y, _ = sch.loops("Y")
    sch.compute_at("R", y)
    assert sch.rolling_buffer("R", y) == "R_first"


def in_strips(sch: Schedule) -> None:
    y, _ = sch.loops("Y")
    strip, y = sch.split(y, (None, 3), tail="partition")
    sch.compute_at("R", y)
    sch.rolling_buffer("R", y)
    for name in ("R", "R_first", "Y"):
        sch.vectorize(sch.loops(name)[-1])
    sch.parallel(strip)


def test_an_iteration_computes_the_rows_that_are_new() -> None:
    assert body_of(scheduled(blur(4, 3), rolled)) == (
        'R = alloc(float32[5, 3], "global")\n'
        "for i in range(1):\n"
        "    for j in range(3):\n"
        '        with block("R_first", vi=spatial(5, 0 + i), vj=spatial(3, j), family="R"):\n'
        "            R[vi, vj] = X[vi, vj] + X[vi, vj + 1]\n"
        "for i in range(4):\n"
        "    for i_1 in range(1):\n"
        "        for j in range(3):\n"
        '            with block("R", vi=spatial(5, i + (i_1 + 1)), vj=spatial(3, j)):\n'
        "                R[vi, vj] = X[vi, vj] + X[vi, vj + 1]\n"
        "    for j in range(3):\n"
        '        with block("Y", vi=spatial(4, i), vj=spatial(3, j)):\n'
        "            Y[vi, vj] = R[vi, vj] + R[vi + 1, vj]"
    )


def test_storage_keeps_the_window_and_its_indices_go_round() -> None:
    sch = Schedule(blur(8, 3)).apply(rolled)
    text = print_stmt(assert_meaning_kept(sch).body)
    assert 'R = alloc(float32[2, 3], "global")' in text
    assert "Y[vi, vj] = R[vi % 2, vj] + R[(vi + 1) % 2, vj]" in text
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.parametrize("rows", [2, 3, 7, 8])
def test_strips_begin_their_windows_anew(rows: int) -> None:
    sch = scheduled(blur(rows, 5), in_strips)
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.parametrize(("kernel", "stride", "made"), [(3, 1, 2), (3, 2, 1), (4, 2, 2)])
def test_a_window_moves_by_the_stride_of_its_reader(kernel: int, stride: int, made: int) -> None:
    def steps(sch: Schedule) -> None:
        h = sch.loops("Y")[1]
        sch.compute_at("X_pad", h)
        sch.rolling_buffer("X_pad", h)
        assert sch.extent(sch.loops("X_pad_first")[2]) == made

    sch = scheduled(pool(7, 5, 2, kernel=kernel, stride=stride, pad=1), steps)
    assert tw.prove(sch, AVX512).status == "proved"


def test_a_window_may_live_in_registers_of_a_strip() -> None:
    def steps(sch: Schedule) -> None:
        strip, y = sch.split(sch.loops("Y")[0], (None, 4), tail="partition")
        sch.compute_at("R", y)
        sch.rolling_buffer("R", y)
        sch.set_scope("R", "register")
        sch.unroll(y)
        sch.parallel(strip)

    sch = scheduled(blur(8, 3), steps)
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.isa
@pytest.mark.needs_cc
def test_the_window_gives_the_same_numbers_in_c() -> None:
    x = np.random.default_rng(0).standard_normal((24, 34), dtype=np.float32)
    sums = x[:, :-1] + x[:, 1:]
    kernel = tw.build(Schedule(blur(23, 33)).apply(in_strips))
    np.testing.assert_array_equal(kernel(x), sums[:-1] + sums[1:])


def _parallel_window(sch: Schedule) -> None:
    rolled(sch)
    sch.parallel(sch.loops("Y")[0])


def _staged_and_parallel(sch: Schedule) -> None:
    rolled(sch)
    sch.stage("R", "R", sch.loops("R")[1], "thread")
    sch.parallel(sch.loops("Y")[0])


def _staged_window(sch: Schedule) -> None:
    rolled(sch)
    sch.stage("R", "R", sch.loops("R")[0], "thread")


def windows(rows: int, columns: int) -> PrimFunc:
    """Sums over three rows of sums over three rows."""
    x = te.placeholder((rows + 4, columns), "float32", name="X")
    p = te.compute((rows + 4, columns), lambda i, j: x[i, j] * 2.0, name="P")
    r = te.compute((rows + 2, columns), lambda i, j: p[i, j] + p[i + 1, j] + p[i + 2, j], name="R")
    y = te.compute((rows, columns), lambda i, j: r[i, j] + r[i + 1, j] + r[i + 2, j], name="Y")
    return te.func(x, y, name="windows")


def _both_rolled(first: str, second: str) -> Callable[[Schedule], None]:
    def steps(sch: Schedule) -> None:
        y, _ = sch.loops("Y")
        sch.compute_at("R", y)
        sch.compute_at("P", y)
        sch.rolling_buffer(first, y)
        sch.rolling_buffer(second, y)

    return steps


def test_the_windows_of_a_chain_roll_from_its_beginning() -> None:
    sch = scheduled(windows(6, 2), _both_rolled("P", "R"))
    made = {name: sch.extent(sch.loops(name)[-2]) for name in ("P_first", "R_first", "P", "R")}
    assert made == {"P_first": 4, "R_first": 2, "P": 1, "R": 1}
    text = print_stmt(assert_meaning_kept(sch).body)
    assert 'R = alloc(float32[3, 2], "global")' in text
    assert tw.prove(sch, AVX512).status == "proved"


def _own_storage(sch: Schedule) -> None:
    y = sch.loops("Y")[0]
    sch.compute_at("R", y)
    sch.set_scope("R", "thread")
    sch.rolling_buffer("R", y)


def _split_window(sch: Schedule) -> None:
    y = sch.loops("Y")[0]
    sch.compute_at("R", y)
    sch.split(sch.loops("R")[1], (2, None))
    sch.rolling_buffer("R", y)


def _vector_window() -> PrimFunc:
    x = te.placeholder((9,), "float32", name="X")
    p = te.compute((9,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((8,), lambda i: p[i] + p[i + 1], name="Y")
    return te.func(x, y, name="pairs")


def _lanes(sch: Schedule) -> None:
    i = sch.loops("Y")[0]
    sch.compute_at("P", i)
    sch.rolling_buffer("P", i)
    (inner,) = sch.loops("P")[1:]
    sch.unroll(inner)
    sch.parallel(i)


def test_another_tensor_may_be_staged_beside_a_window() -> None:
    def steps(sch: Schedule) -> None:
        rolled(sch)
        sch.stage("R", "X", sch.loops("Y")[0], "thread")

    scheduled(blur(4, 3), steps)


def test_a_window_may_not_be_staged_where_its_block_has_a_tail() -> None:
    def steps(sch: Schedule) -> None:
        rolled(sch)
        sch.split(sch.loops("R")[1], (None, 8))
        sch.stage("R", "R", sch.loops("Y")[0], "thread")

    assert "[loop-carries]" in refused(blur(4, 3), steps)


def _out_of_turn(sch: Schedule) -> None:
    """Rows whose window begins in an iteration that comes later."""
    rolled(sch)
    sch.reorder(*reversed(sch.split(sch.loops("Y")[0], (None, 2))))


def _diagonals() -> PrimFunc:
    x = te.placeholder((4, 3), "float32", name="X")
    r = te.compute((4, 3), lambda i, j: x[i, j] * 2.0, name="R")
    y = te.compute((3,), lambda i: r[i, i] + r[i + 1, i], name="Y")
    return te.func(x, y, name="diagonals")


def _rolled_along_the_diagonal(sch: Schedule) -> None:
    (i,) = sch.loops("Y")
    sch.compute_at("R", i)
    sch.rolling_buffer("R", i)


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "operand-ahead: the second window of a chain first": (
        windows(3, 2),
        _both_rolled("R", "P"),
    ),
    "reader-early: reorder": (blur(4, 3), _out_of_turn),
    "rolling-window: nothing is shared": (
        chain(2, 3),
        lambda s: (
            s.compute_at("Q", s.loops("Y")[0]),
            s.rolling_buffer("Q", s.loops("Y")[0]),
        ),
    ),
    "rolling-window: the window is split": (blur(3, 4), _split_window),
    "rolling-window: it moves along two axes": (_diagonals(), _rolled_along_the_diagonal),
    "block-outside: not moved": (blur(3, 4), lambda s: s.rolling_buffer("R", s.loops("Y")[0])),
    "block-part: twice": (
        blur(3, 4),
        lambda s: (rolled(s), s.rolling_buffer("R", s.loops("Y")[0])),
    ),
    "stage-inside: storage of an iteration": (blur(3, 4), _own_storage),
    "loop-carries: parallel": (blur(3, 4), _parallel_window),
    "loop-carries: parallel over single elements": (_vector_window(), _lanes),
    "loop-carries: parallel, staged below": (blur(3, 4), _staged_and_parallel),
    "loop-carries: stage": (blur(3, 4), _staged_window),
    "loop-kind": (
        blur(3, 4),
        lambda s: (
            s.compute_at("R", s.loops("Y")[0]),
            s.parallel(s.loops("Y")[0]),
            s.rolling_buffer("R", s.loops("Y")[0]),
        ),
    ),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_rolling.txt", refusals(CASES))
