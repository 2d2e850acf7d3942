"""schedule/primitives/blocks/padding.py and pad of layout.py: text, values, proof, replay,
refusals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower.lower import lower
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import equal
from tilewright.tir.text.printer import print_stmt

from ...programs import (
    assert_meaning_kept,
    body_of,
    chain,
    conv,
    matmul,
    matmul_relu,
    pool,
    refusals,
    scheduled,
)

AVX512 = Target.parse("c:avx512")


def shifted(n: int, before: int, after: int, *, fill: float = 0.0) -> PrimFunc:
    """Y[i] = P[i] + P[i + 1], where P is X with `before` and `after` elements around it."""
    x = te.placeholder((n,), "float32", name="X")

    def element(i: Expr) -> Expr:
        return te.select(te.all_of(i >= before, i < before + n), x[i - before], fill)

    p = te.compute((before + n + after,), element, name="P")
    y = te.compute((n,), lambda i: p[i] + p[i + 1], name="Y")
    return te.func(x, y, name="shifted")


# -- decompose_padding -----------------------------------------------------------------------------


def test_the_border_is_filled_in_blocks_of_their_own_before_the_loop() -> None:
    def steps(sch: Schedule) -> None:
        (i,) = sch.loops("P")
        assert sch.decompose_padding("P", i) == ("P_fill0", "P_fill1")
        assert sch.loops("P") == (i,)
        assert sch.extent(i) == 4

    sch = scheduled(shifted(4, 1, 2, fill=5.0), steps)
    value = "P[vi] = select(1 <= vi and vi < 5, X[vi - 1], 5.0)"
    assert body_of(sch) == (
        'P = alloc(float32[7], "global")\n'
        "for i in range(1):\n"
        '    with block("P_fill0", vi=spatial(7, i), family="P"):\n'
        f"        {value}\n"
        "for i in range(2):\n"
        '    with block("P_fill1", vi=spatial(7, i + 5), family="P"):\n'
        f"        {value}\n"
        "for i in range(4):\n"
        '    with block("P", vi=spatial(7, i + 1)):\n'
        f"        {value}\n"
        "for i in range(4):\n"
        '    with block("Y", vi=spatial(4, i)):\n'
        "        Y[vi] = P[vi] + P[vi + 1]"
    )
    assert sch.steps == ('P_fill0, P_fill1 = decompose_padding("P", i)',)


def test_lowering_leaves_no_condition_in_any_of_the_blocks() -> None:
    sch = Schedule(shifted(4, 1, 2, fill=5.0))
    sch.decompose_padding("P", sch.loops("P")[0])
    assert print_stmt(assert_meaning_kept(sch).body).splitlines()[1:9] == [
        'with block("P_fill0", vi=spatial(7, 0), family="P"):',
        "    P[0] = 5.0",
        "for i in range(2):",
        '    with block("P_fill1", vi=spatial(7, i + 5), family="P"):',
        "        P[vi] = 5.0",
        "for i in range(4):",
        '    with block("P", vi=spatial(7, i + 1)):',
        "        P[vi] = X[vi - 1]",
    ]


@pytest.mark.parametrize(("depth", "fills"), [(0, 4), (1, 4), (2, 2)])
def test_the_axes_at_and_inside_the_loop_are_cut(depth: int, fills: int) -> None:
    def steps(sch: Schedule) -> None:
        made = sch.decompose_padding("X_pad", sch.loops("X_pad")[depth])
        assert len(made) == fills

    sch = scheduled(pool(3, 4, 2, pad=1, stride=1), steps)
    verdict = tw.prove(sch, AVX512)
    assert verdict.status == "proved", str(verdict)


def test_the_parts_are_one_block_of_the_canonical_form() -> None:
    func = conv(4, 3, 2, 4)
    sch = Schedule(func)
    sch.decompose_padding("X_pad", sch.loops("X_pad")[1])
    assert equal(canonical_form(sch.func), canonical_form(func))


def test_a_side_without_padding_needs_no_block() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.decompose_padding("P", sch.loops("P")[0]) == ("P_fill0",)

    scheduled(shifted(4, 0, 1), steps)


def test_each_part_may_be_split_and_vectorized_below_one_parallel_loop() -> None:
    def steps(sch: Schedule) -> None:
        _, h, w, _ = sch.loops("X_pad")
        for block in (*sch.decompose_padding("X_pad", w), "X_pad"):
            _, lane = sch.split(sch.loops(block)[-1], (None, 4), tail="mask")
            sch.vectorize(lane)
        sch.parallel(h)

    sch = scheduled(conv(5, 4, 6, 4), steps)
    assert str(assert_meaning_kept(sch)).count("barrier()") == 1
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.isa
@pytest.mark.needs_cc
def test_the_parts_compute_the_padded_tensor_in_c() -> None:
    func = pool(6, 5, 17, pad=1, stride=1)
    sch = Schedule(func)
    fills = sch.decompose_padding("X_pad", sch.loops("X_pad")[1])
    for block in (*fills, "X_pad"):
        sch.vectorize(sch.loops(block)[-1])
    x = np.random.default_rng(0).standard_normal((1, 6, 5, 17), dtype=np.float32)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    np.testing.assert_array_equal(tw.build(sch)(x), windows.max((-2, -1)))


def decomposed(block: str, depth: int) -> Callable[[Schedule], object]:
    return lambda sch: sch.decompose_padding(block, sch.loops(block)[depth])


def _after_split(sch: Schedule) -> None:
    i, _ = sch.split(sch.loops("P")[0], (None, 2))
    sch.decompose_padding("P", i)


def _twice(sch: Schedule) -> None:
    sch.decompose_padding("P", sch.loops("P")[0])
    sch.decompose_padding("P", sch.loops("P")[0])


def test_a_tensor_in_parts_is_inlined_whole() -> None:
    def steps(sch: Schedule) -> None:
        sch.decompose_padding("P", sch.loops("P")[0])
        sch.compute_inline("P_fill1")

    sch = scheduled(shifted(3, 1, 1), steps)
    assert sch.blocks() == ("Y",)
    assert body_of(sch) == body_of(
        Schedule(shifted(3, 1, 1)).apply(lambda s: s.compute_inline("P"))
    )
    assert tw.prove(sch, AVX512).status == "proved"


def test_a_part_has_the_border_that_lies_in_its_piece() -> None:
    def steps(sch: Schedule) -> None:
        sch.loop_partition(sch.loops("X_pad")[2], (3,))
        for name in ("X_pad", "X_pad_part1"):
            assert len(sch.decompose_padding(name, sch.loops(name)[2])) == 1
            assert sch.extent(sch.loops(name)[2]) == 2

    sch = scheduled(pool(3, 4, 2, pad=1, stride=1), steps)
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_the_parts_of_a_loop_keep_its_kind(kind: str) -> None:
    def steps(sch: Schedule) -> None:
        getattr(sch, kind)(sch.loops("P")[0])
        sch.decompose_padding("P", sch.loops("P")[0])

    def later(sch: Schedule) -> None:
        for block in ("P", *sch.decompose_padding("P", sch.loops("P")[0])):
            getattr(sch, kind)(sch.loops(block)[0])

    sch = scheduled(shifted(6, 1, 1), steps)
    assert body_of(sch) == body_of(Schedule(shifted(6, 1, 1)).apply(later))
    assert tw.prove(sch, AVX512).status == "proved"


def test_the_border_of_a_staged_tensor_is_filled_in_its_copy() -> None:
    def steps(sch: Schedule) -> None:
        h = sch.loops("X_pad")[1]
        sch.stage("X_pad", "X_pad", h, "thread")
        sch.decompose_padding("X_pad", sch.loops("X_pad")[2])

    sch = scheduled(pool(3, 4, 2, pad=1, stride=1), steps)
    assert tw.prove(sch, AVX512).status == "proved"


def _reader_of_a_part(sch: Schedule) -> None:
    sch.decompose_padding("P", sch.loops("P")[0])
    sch.reverse_compute_at("Y", sch.loops("P")[0])


def _elsewhere(sch: Schedule) -> None:
    sch.decompose_padding("P", sch.loops("Y")[0])


def _diagonal() -> PrimFunc:
    x = te.placeholder((3, 3), "float32", name="X")
    y = te.compute((3, 3), lambda i, j: te.select(i + j < 3, x[i, j], 0.0), name="Y")
    return te.func(x, y, name="triangle")


def _only_at(element: int) -> PrimFunc:
    """Y, which is 0 but for one element of X."""
    x = te.placeholder((3,), "float32", name="X")
    y = te.compute((3,), lambda i: te.select(te.eq(i, element), x[i], 0.0), name="Y")
    return te.func(x, y, name="one")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "padding-block: no select": (chain(2, 3), decomposed("P", 0)),
    "padding-block: a value for the border that is computed": (
        te.func(
            x := te.placeholder((3,), "float32", name="X"),
            te.compute((3,), lambda i: te.select(i < 2, x[i], x[0]), name="Y"),
            name="edge",
        ),
        decomposed("Y", 0),
    ),
    "padding-loops: a split loop": (shifted(3, 1, 1), _after_split),
    "padding-box: the padded axes lie outside": (
        conv(2, 2, 1, 1, kernel=1),
        decomposed("X_pad", 3),
    ),
    "padding-box: no box": (_diagonal(), decomposed("Y", 0)),
    "padding-box: nothing inside": (shifted(0, 1, 1), decomposed("P", 0)),
    "padding-box: what is inside lies before the axis": (_only_at(-1), decomposed("Y", 0)),
    "padding-box: what is inside lies behind the axis": (_only_at(3), decomposed("Y", 0)),
    "not-pointwise": (matmul(2, 2, 2), decomposed("C", 0)),
    "block-outside": (shifted(3, 1, 1), _elsewhere),
    "padding-box: nothing is left to cut": (shifted(3, 1, 1), _twice),
    "block-part: its reader is moved": (shifted(3, 1, 1), _reader_of_a_part),
}


def test_each_refusal_of_decompose_padding_says_what_is_wrong(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_padding.txt", refusals(CASES))


# -- pad -------------------------------------------------------------------------------------------


def test_a_padded_tensor_has_room_that_is_set_to_zero() -> None:
    def steps(sch: Schedule) -> None:
        loops = sch.pad("P", (1, 8))
        assert [sch.extent(loop) for loop in loops] == [2, 16]

    sch = scheduled(chain(2, 13), steps)
    assert body_of(sch).splitlines()[:6] == [
        'P = alloc(float32[2, 16], "global")',
        'Q = alloc(float32[2, 13], "global")',
        "for P_0 in range(2):",
        "    for P_1 in range(16):",
        '        with block("P", v0=spatial(2, P_0), v1=spatial(16, P_1), padded=True):',
        "            P[v0, v1] = select(v1 < 13, X[v0, v1] * 2.0 + bias[v1], 0.0)",
    ]
    assert sch.steps == ('P_0, P_1 = pad("P", multiples=(1, 8))',)
    assert tw.prove(sch, AVX512).status == "proved"


def test_a_tensor_that_fits_stays_as_it_is() -> None:
    assert "padded" not in body_of(scheduled(chain(2, 16), lambda s: s.pad("P", (2, 8))))


def _in_vectors(sch: Schedule) -> None:
    for name in ("P", "Q"):
        rows, columns = sch.pad(name, (1, 16))
        sch.parallel(rows)
        sch.vectorize(columns)


def test_vectors_over_a_padded_tensor_need_no_masked_store() -> None:
    func = chain(3, 13)
    ragged = Schedule(func)
    for name in ("P", "Q"):
        ragged.vectorize(ragged.loops(name)[1])
    padded = scheduled(func, _in_vectors)
    stores = {
        sch: [
            line
            for line in str(lower(assert_meaning_kept(sch), AVX512)).splitlines()
            if line.strip().startswith("masked(")
        ]
        for sch in (ragged, padded)
    }
    assert len(stores[ragged]) == 2
    assert stores[padded] == []
    assert tw.prove(padded, AVX512).status == "proved"


@pytest.mark.isa
@pytest.mark.needs_cc
def test_a_padded_tensor_keeps_the_values_in_c() -> None:
    rng = np.random.default_rng(0)
    x, bias = (rng.standard_normal(s, dtype=np.float32) for s in ((3, 13), (13,)))
    kernel = tw.build(Schedule(chain(3, 13)).apply(_in_vectors))
    np.testing.assert_allclose(kernel(x, bias), np.maximum(2 * x + bias, 0) * x, rtol=1e-6)


PAD_CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "pad-multiples: one missing": (chain(2, 3), lambda s: s.pad("P", (8,))),
    "pad-multiples: zero": (chain(2, 3), lambda s: s.pad("P", (0, 8))),
    "pad-multiples: no integer": (chain(2, 3), lambda s: s.pad("P", (1, 1.5))),  # type: ignore[arg-type]
    "not-intermediate": (chain(2, 3), lambda s: s.pad("X", (1, 8))),
    "pad-writer: a sum": (matmul_relu(2, 3, 2), lambda s: s.pad("C", (1, 8))),
    "pad-writer: in parts": (
        shifted(3, 1, 1),
        lambda s: (s.decompose_padding("P", s.loops("P")[0]), s.pad("P", (8,))),
    ),
}


def test_each_refusal_of_pad_says_what_is_wrong(golden: Callable[[str, str], None]) -> None:
    golden("errors/schedule_pad.txt", refusals(PAD_CASES))
