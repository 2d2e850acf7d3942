"""schedule/primitives/storage/layout.py: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...programs import blur, body_of, chain, conv, matmul, matmul_relu, refusals, scheduled

AVX512 = Target.parse("c:avx512")
PANELS = "lambda k, n: (n // 4, k, n % 4)"


def test_incomplete_panels_are_padded_with_zeros() -> None:
    def steps(sch: Schedule) -> None:
        loops = sch.transform_layout(sch.cache_read("C", "B"), PANELS)
        assert [sch.extent(loop) for loop in loops] == [2, 2, 4]

    assert body_of(scheduled(matmul(2, 7, 2), steps)).splitlines() == [
        'B_cache = alloc(float32[2, 2, 4], "global")',
        "for B_cache_0 in range(2):",
        "    for B_cache_1 in range(2):",
        "        for B_cache_2 in range(4):",
        '            with block("B_cache", v0=spatial(2, B_cache_0), v1=spatial(2, B_cache_1), '
        "v2=spatial(4, B_cache_2), padded=True):",
        "                B_cache[v0, v1, v2] = select(v0 * 4 + v2 < 7, B[v1, v0 * 4 + v2], 0.0)",
        "for i in range(2):",
        "    for j in range(7):",
        "        for k in range(2):",
        '            with block("C", vi=spatial(2, i), vj=spatial(7, j), vk=reduce(2, k)):',
        "                with init():",
        "                    C[vi, vj] = 0.0",
        "                C[vi, vj] = C[vi, vj] + A[vi, vk] * B_cache[vj // 4, vk, vj % 4]",
    ]


def test_complete_panels_need_no_padding() -> None:
    def steps(sch: Schedule) -> None:
        sch.transform_layout(sch.cache_read("C", "B"), PANELS)

    assert "padded" not in body_of(scheduled(matmul(2, 8, 2), steps))


@pytest.mark.parametrize(
    "index_map",
    [
        "lambda i, j: (j, i)",
        "lambda i, j: (i // 2, j // 3, i % 2, j % 3)",
        "lambda i, j: (i, j // 4, j // 2 % 2, j % 2)",
        "lambda i, j: (i, j % 16)",
    ],
)
def test_an_intermediate_may_be_stored_in_any_digits(index_map: str) -> None:
    scheduled(blur(4, 7), lambda s: s.transform_layout("R", index_map))


def test_a_function_of_the_indices_is_a_map_too() -> None:
    def steps(sch: Schedule) -> None:
        sch.transform_layout("P", lambda i, j: (j, i))

    assert "P[v0, v1] = X[v1, v0] * 2.0 + bias[v0]" in body_of(scheduled(chain(3, 5), steps))


def _in_panels(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.split(i, (None, 3))
    _, lane = sch.split(j, (None, 4))
    sch.reorder(k, lane)
    sch.vectorize(lane)
    sch.decompose_reduction("C", k)
    assert sch.transform_layout("C", PANELS) == ()


def test_a_sum_is_stored_in_whole_panels_from_the_loops_that_it_has() -> None:
    sch = scheduled(matmul_relu(4, 8, 2), _in_panels)
    lines = body_of(sch).splitlines()
    at = next(n for n, line in enumerate(lines) if 'block("C",' in line)
    assert lines[0] == 'C = alloc(float32[2, 4, 4], "global")'
    assert lines[at : at + 3] == [
        " " * 20 + 'with block("C", v0=spatial(2, j_0), v1=spatial(4, i_0 * 3 + i_1), '
        "v2=spatial(4, j_1), vk=reduce(2, k)):",
        " " * 24 + "where(i_0 * 3 + i_1 < 4)",
        " " * 24 + "C[v0, v1, v2] = C[v0, v1, v2] + A[v1, vk] * B[vk, v0 * 4 + v2]",
    ]
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.needs_cc
def test_a_sum_in_whole_panels_gives_the_same_numbers_in_c() -> None:
    rng = np.random.default_rng(0)
    shapes = ((4, 2), (2, 8), (8,))
    a, b, bias = (rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
    kernel = tw.build(Schedule(matmul_relu(4, 8, 2)).apply(_in_panels))
    np.testing.assert_array_equal(kernel(a, b, bias), np.maximum(a @ b + bias, 0.0))


def test_what_moved_below_a_loop_of_its_reader_may_be_stored_in_another_order() -> None:
    def steps(sch: Schedule) -> None:
        y, _ = sch.loops("Y")
        sch.compute_at("R", y)
        sch.rolling_buffer("R", y)
        sch.transform_layout("R", "lambda i, j: (j, i)")

    sch = scheduled(blur(5, 3), steps)
    text = body_of(sch)
    assert text.count("R[v0, v1] = X[v1, v0] + X[v1, v0 + 1]") == 2  # both parts of the family
    assert "Y[vi, vj] = R[vj, vi] + R[vj, vi + 1]" in text
    assert tw.prove(sch, AVX512).status == "proved"


def test_a_layout_may_be_changed_twice_and_drops_loops_and_prefetches_of_the_old_one() -> None:
    def steps(sch: Schedule) -> None:
        i, _ = sch.loops("P")
        sch.split(i, (None, 2), tail="mask")
        sch.prefetch("P", sch.loops("Q")[0], spread=(sch.loops("Q")[1],))
        sch.transform_layout("P", "lambda i, j: (j // 4, i, j % 4)")
        sch.transform_layout("P", "lambda a, b, c: (b, a, c)")

    text = body_of(scheduled(chain(3, 5), steps))
    assert "where" not in text
    assert "prefetch" not in text


# -- refusals --------------------------------------------------------------------------------------


def transformed(index_map: str | Callable[..., object]) -> Callable[[Schedule], object]:
    return lambda sch: sch.transform_layout("P", index_map)  # type: ignore[arg-type]


def _staged(sch: Schedule) -> None:
    sch.stage("Q", "P", sch.loops("Q")[0], "thread")
    sch.transform_layout("P", "lambda i, j: (j, i)")


def _moved(sch: Schedule) -> None:
    sch.compute_at("P", sch.loops("Q")[0])
    sch.transform_layout("P", "lambda i, j: (i, j // 2, j % 2)")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "not-intermediate": (chain(2, 3), lambda s: s.transform_layout("X", "lambda i, j: (j, i)")),
    "layout-writer: a sum in panels that are not whole": (
        matmul_relu(2, 3, 2),
        lambda s: s.transform_layout("C", PANELS),
    ),
    "tensor-staged": (chain(2, 3), _staged),
    "layout-writer": (chain(2, 3), _moved),
    "layout-digit": (chain(2, 3), transformed("lambda i, j: (i + j, j)")),
    "layout-digit: a negative width": (chain(2, 3), transformed(lambda i, j: (i, j // -2))),
    "layout-lost": (chain(2, 3), transformed("lambda i, j: (i,)")),
    "layout-lost: a digit is missing": (chain(2, 3), transformed("lambda i, j: (i, j // 2)")),
    "layout-lost: a digit twice": (chain(2, 3), transformed("lambda i, j: (i, j, j)")),
    "layout-lost: digits overlap": (chain(2, 6), transformed("lambda i, j: (i, j // 2, j % 4)")),
    "layout-lost: the last digit wraps": (chain(2, 6), transformed("lambda i, j: (i, j % 4)")),
    "layout-rank": (chain(2, 3), transformed("lambda i: (i,)")),
    "layout-text": (chain(2, 3), transformed("swap i and j")),
    "layout-text: a division by 0": (chain(2, 3), transformed("lambda i, j: (i // 0, j)")),
    "layout-text: another name": (chain(2, 3), transformed("lambda i, j: (n, j)")),
    "layout-tuple": (chain(2, 3), transformed(lambda i, j: i)),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_layout.txt", refusals(CASES))


def test_padding_of_a_convolution_may_be_stored_channels_first() -> None:
    def steps(sch: Schedule) -> None:
        sch.transform_layout("X_pad", "lambda n, h, w, c: (n, c, h, w)")

    scheduled(conv(5, 4, 2, 4), steps)
