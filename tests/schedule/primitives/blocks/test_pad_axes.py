"""schedule/primitives/blocks/pad_axes.py: text, values, proof, replay (in `scheduled`),
refusals.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
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


def padded(*multiples: int) -> Callable[[Schedule], object]:
    """A product of padded copies, over whole tiles."""

    def steps(sch: Schedule) -> None:
        m, n, k = multiples
        a, b = sch.cache_read("C", "A"), sch.cache_read("C", "B")
        sch.pad(a, (m, k))
        sch.pad(b, (k, n))
        if "Y" not in sch.blocks():
            sch.cache_write("C")
        sch.pad_axes("C" if "Y" in sch.blocks() else "C_cache", multiples)

    return steps


def test_a_product_runs_over_whole_tiles() -> None:
    sch = scheduled(matmul(3, 5, 6), padded(4, 4, 4))
    text = body_of(sch)
    assert "C_cache = alloc(float32[4, 8]" in text
    assert text.partition("for i in range(4):\n")[2].startswith(
        "    for j in range(8):\n"
        "        for k in range(8):\n"
        '            with block("C_cache", vi=spatial(4, i), vj=spatial(8, j), vk=reduce(8, k), '
        "padded=True):\n"
    )
    assert "for C_cache_0 in range(3):\n    for C_cache_1 in range(5):\n" in text


@pytest.mark.parametrize("multiples", [(4, 4, 4), (1, 1, 4), (7, 2, 1), (1, 1, 1)])
def test_values_and_proof(multiples: tuple[int, int, int]) -> None:
    for func in (matmul(3, 5, 6), matmul_relu(5, 6, 3)):
        sch = scheduled(func, padded(*multiples))
        assert_meaning_kept(sch)
        assert tw.prove(sch, AVX512).status == "proved"


def test_what_stands_at_its_end_is_left_as_it_is() -> None:
    before = scheduled(matmul_relu(4, 4, 4), lambda s: None).func
    after = scheduled(matmul_relu(4, 4, 4), lambda s: s.pad_axes("C", (2, 4, 1))).func
    assert equal(before, after)


def test_tiles_of_it_need_no_condition_but_where_results_are_copied_out() -> None:
    def steps(sch: Schedule) -> None:
        padded(4, 4, 4)(sch)
        i, j, k = sch.loops("C_cache")
        i, i1 = sch.split(i, (None, 4))
        j, j1 = sch.split(j, (None, 4))
        k, k1 = sch.split(k, (None, 4))
        sch.reorder(i, j, k, i1, j1, k1)

    sch = scheduled(matmul(6, 5, 7), steps)
    assert_meaning_kept(sch)
    assert "where" not in body_of(sch)


def maxima() -> PrimFunc:
    """Y[i] = the largest of A[i, k] * B[k], and 1."""
    a = te.placeholder((3, 5), "float32", name="A")
    b = te.placeholder((5,), "float32", name="B")
    k = te.reduce_axis(5, name="k")
    c = te.compute((3,), lambda i: te.max(a[i, k] * b[k], axis=k), name="C")
    return te.func(a, b, te.compute((3,), lambda i: c[i] + 1.0, name="Y"), name="maxima")


def of_copies(multiples: tuple[int, ...], block: str = "C") -> Callable[[Schedule], object]:
    def steps(sch: Schedule) -> None:
        for tensor in ("A", "B"):
            copy = sch.cache_read("C", tensor)
            sch.pad(copy, (4,) * (2 if tensor == "A" else 1))
        sch.pad_axes(block, multiples)

    return steps


def one_copy(sch: Schedule) -> None:
    sch.pad(sch.cache_read("C", "A"), (4, 4))
    sch.cache_write("C")
    sch.pad_axes("C_cache", (4, 1, 4))


def split_before(sch: Schedule) -> None:
    sch.cache_write("C")
    sch.split(sch.loops("C_cache")[0], (None, 2))
    sch.pad_axes("C_cache", (2, 1, 1))


def not_zero(sch: Schedule) -> None:
    """A has room along k, and other numbers there."""
    sch.pad_axes("C", (1, 4))


def wider() -> PrimFunc:
    """Sums along what A has of K, which has more."""
    a = te.placeholder((3, 8), "float32", name="A")
    k = te.reduce_axis(5, name="k")
    c = te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="C")
    return te.func(a, te.compute((3,), lambda i: c[i] + 1.0, name="Y"), name="wider")


def staged(sch: Schedule) -> None:
    i, _ = sch.loops("Q")
    sch.stage("Q", "Q", i, "register")
    sch.pad_axes("Q", (2, 2))


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "pad-axes-multiples": (matmul_relu(3, 4, 5), lambda s: s.pad_axes("C", (4, 0, 1))),
    "pad-axes-loops": (matmul(3, 4, 5), split_before),
    "pad-axes-room": (matmul(3, 4, 5), one_copy),
    "pad-axes-zeros: another reduction": (maxima(), of_copies((1, 4))),
    "pad-axes-zeros: other numbers": (wider(), not_zero),
    "pad_axes: not-intermediate": (matmul(3, 4, 5), lambda s: s.pad_axes("C", (4, 4, 1))),
    "pad_axes: staged": (chain(2, 3), staged),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_pad_axes.txt", refusals(CASES))
