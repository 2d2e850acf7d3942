"""schedule/primitives/loops/annotate.py: hints on loops: text, values, replay, what becomes of
them, refusals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.c.build import build_artifact
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import ParseError, parse
from tilewright.tir.stmt import For
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.canonical import canonical_print, workload_key
from tilewright.tir.text.equal import equal
from tilewright.tir.visit import walk

from ...grids import tiled
from ...programs import assert_meaning_kept, body_of, chain, matmul, refusals, scheduled


def hinted(depth: int, copies: int = 4) -> Callable[[Schedule], object]:
    return lambda sch: sch.annotate(sch.loops("C")[depth], "unroll_hint", copies)


def hints(func: PrimFunc) -> dict[str, int]:
    """The unroll hint of each loop that has one, by the loop's name."""
    loops = (node for node in walk(func.body) if isinstance(node, For))
    return {x.var.name: dict(x.annotations)["unroll_hint"] for x in loops if x.annotations}


def test_a_hint_is_a_part_of_the_loop_and_changes_no_meaning() -> None:
    sch = scheduled(matmul(3, 5, 8), hinted(2))
    assert body_of(sch).splitlines()[2].strip() == "for k in range(8, unroll_hint=4):"
    assert sch.steps == ('annotate(k, key="unroll_hint", value=4)',)


def test_a_hint_takes_the_place_of_the_one_before() -> None:
    sch = scheduled(matmul(3, 5, 8), lambda s: (hinted(2)(s), hinted(2, 2)(s)))
    assert hints(sch.func) == {"k": 2}


def test_a_hint_is_read_back_and_compared() -> None:
    func = scheduled(matmul(3, 5, 8), hinted(2)).func
    assert equal(parse(str(func)), func)
    for other in (matmul(3, 5, 8), scheduled(matmul(3, 5, 8), hinted(2, 8)).func):
        assert not equal(other, func)
        assert workload_key(other) != workload_key(func)
    assert "in range(8, unroll_hint=4):" in canonical_print(func)


def test_an_unknown_hint_is_not_read() -> None:
    with pytest.raises(ParseError, match="a loop runs over"):
        parse("def f(A: output(float32[4])):\n    for i in range(4, hint=4):\n        A[i] = 0.0\n")


def test_split_and_fuse_give_the_hint_to_the_innermost_loop() -> None:
    sch = Schedule(chain(4, 6))
    i, j = sch.loops("P")
    sch.annotate(j, "unroll_hint", 2)
    sch.split(j, (3, None))
    assert hints(sch.func) == {"j_1": 2}
    sch.undo()
    sch.fuse(i, j)
    assert hints(sch.func) == {"i_j": 2}


def test_every_piece_of_a_cut_loop_keeps_the_hint() -> None:
    def steps(sch: Schedule) -> None:
        k, inner = sch.split(sch.loops("C")[2], (None, 4), tail="partition")
        sch.annotate(inner, "unroll_hint", 2)
        sch.annotate(k, "unroll_hint", 3)

    nest = assert_meaning_kept(scheduled(matmul(2, 3, 15), steps))
    loops = [n for n in walk(nest.body) if isinstance(n, For) and n.annotations]
    assert [(x.extent, x.annotations) for x in loops] == [
        (3, (("unroll_hint", 3),)),
        (4, (("unroll_hint", 2),)),
        (3, (("unroll_hint", 2),)),
    ]


@pytest.mark.parametrize("kind", ["vectorize", "unroll"])
def test_a_loop_that_is_no_loop_in_c_drops_its_hint(kind: str) -> None:
    def steps(sch: Schedule) -> None:
        _, j = sch.loops("P")
        sch.annotate(j, "unroll_hint", 2)
        getattr(sch, kind)(j)

    assert hints(scheduled(chain(4, 6), steps).func) == {}


def _tile(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    panel, lane = sch.split(j, (None, 16), tail="mask")
    sch.reorder(i, panel, k, lane)
    sch.vectorize(lane)
    sch.parallel(i)
    sch.stage("C", "C", panel, "register")
    sch.annotate(k, "unroll_hint", 4)
    sch.annotate(i, "unroll_hint", 2)


def test_the_c_compiler_reads_the_hint_right_before_the_loop() -> None:
    nest = assert_meaning_kept(scheduled(matmul(2, 32, 8), _tile))
    artifact = build_artifact(nest, Target.parse("c:avx512"))
    lines = [line.strip() for line in artifact.source.splitlines()]
    found = {lines[n + 1].split(";")[0]: line for n, line in enumerate(lines) if "#pragma" in line}
    assert found == {
        "for (int64_t i = (int64_t)2 * thread / threads": "#pragma GCC unroll 2",
        "for (int64_t k = 0": "#pragma GCC unroll 4",
    }


@pytest.mark.isa
@pytest.mark.needs_cc
def test_a_kernel_with_hints_computes_the_same() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((2, 8), (8, 32)))
    plain = Schedule(matmul(2, 32, 8)).apply(_tile).undo().undo()
    hinted_too = Schedule(matmul(2, 32, 8)).apply(_tile)
    np.testing.assert_array_equal(tw.build(hinted_too)(a, b), tw.build(plain)(a, b))


def twice(rows: int, columns: int) -> PrimFunc:
    """E = the powers of X, S their sums by rows, Y = E / S."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    e = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="E")
    s = te.compute((rows,), lambda i: te.sum(e[i, k], axis=k), name="S")
    y = te.compute(x.shape, lambda i, j: e[i, j] / s[i], name="Y")
    return te.func(x, y, name="twice")


def _rows(sch: Schedule, *, stream: bool) -> None:
    i, j = sch.loops("Y")
    chunk, lane = sch.split(j, (None, 16), tail="mask")
    sch.vectorize(lane)
    if stream:
        sch.annotate(chunk, "stream", 1)
    for name in ("S", "E"):
        sch.compute_at(name, i)
    sch.parallel(i)


def _streamed(sch: Schedule) -> None:
    _rows(sch, stream=True)


def test_what_is_streamed_shares_no_storage_and_is_fenced() -> None:
    nest = assert_meaning_kept(scheduled(twice(3, 40), _streamed))
    assert [buffer.name for buffer in nest.allocations] == ["S", "E"]
    lines = build_artifact(nest, Target.parse("c:avx512")).source.splitlines()
    (store,) = [n for n, line in enumerate(lines) if "_stream_" in line]
    assert lines[store].strip() == (
        "tw_aligned(&Y[i * 40 + j_0 * 16], 64) ? _mm512_stream_ps(&Y[i * 40 + j_0 * 16], quotient)"
        " : _mm512_storeu_ps(&Y[i * 40 + j_0 * 16], quotient);"
    )
    (fence,) = [n for n, line in enumerate(lines) if "_mm_sfence" in line]
    assert [line.strip() for line in lines[fence - 1 : fence + 2]] == ["}", "_mm_sfence();", "}"]


def test_short_vectors_and_those_of_other_machines_stay_in_the_caches() -> None:
    nest = assert_meaning_kept(scheduled(twice(3, 40), _streamed))
    text = build_artifact(nest, Target.parse("c:avx512")).source
    assert "_mm512_mask_storeu_ps(&Y[" in text  # the 8 elements at the end of a row
    for name in ("c:scalar", "c:neon"):
        source = build_artifact(nest, Target.parse(name)).source
        assert "stream_" not in source
        assert "fence" not in source


@pytest.mark.isa
@pytest.mark.needs_cc
def test_a_streamed_result_has_the_same_bits_at_any_address() -> None:
    x = np.random.default_rng(0).random((3, 40), np.float32)
    streamed = tw.build(Schedule(twice(3, 40)).apply(_streamed))
    plain = tw.build(Schedule(twice(3, 40)).apply(lambda sch: _rows(sch, stream=False)))
    expected = plain(x)
    store = np.empty(3 * 40 + 64, np.float32)
    for offset in range(0, 64, 4):
        result = store[offset : offset + 120].reshape(3, 40)
        streamed(x, result, threads=2)
        np.testing.assert_array_equal(result, expected)


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "annotate-key": (matmul(2, 2, 2), lambda s: s.annotate(s.loops("C")[2], "unroll", 4)),
    "annotate-value": (matmul(2, 2, 2), hinted(2, 0)),
    "annotate-stages: nothing shared": (
        matmul(2, 2, 2),
        lambda s: s.annotate(s.loops("C")[2], "stages", 2),
    ),
    "annotate-stages: threads": (
        matmul(16, 16, 9),
        lambda s: (tiled()(s), s.annotate(s.loops("C")[3], "stages", 2)),
    ),
    "annotate-kind": (
        matmul(2, 2, 2),
        lambda s: (s.unroll(s.loops("C")[2]), hinted(2)(s)),
    ),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_annotate.txt", refusals(CASES))
