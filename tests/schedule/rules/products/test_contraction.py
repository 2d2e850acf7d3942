"""schedule/rules/products/contraction.py: which loops a product with constant weights has, by its
sizes.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import image_conv, matmul
from ...rule_checks import check

pytestmark = pytest.mark.sampled(3)

AVX512 = Target.parse("c:avx512")
NEAR = replace(AVX512, l2_bytes=1 << 14)  # large enough for a row, too small for weights
LARGE = replace(AVX512, l2_bytes=8 << 20)
SMALL = replace(AVX512, l1_bytes=1024, l2_bytes=1024)  # what small products do not fit into


def sizes(text: str, *loops: str) -> tuple[int, ...]:
    """The extents of the loops of these names, which stand one inside the other."""
    pattern = ".*?".join(rf"for {loop} in \w+\((\d+)" for loop in loops)
    found = re.search(pattern, text, re.DOTALL)
    assert found is not None
    return tuple(map(int, found.groups()))


def scheduled(rows: int, columns: int, inner: int) -> str:
    return str(default_schedule(matmul(rows, columns, inner, constant=True), AVX512))


def test_a_panel_is_read_once_where_the_data_of_all_rows_stay_in_the_first_cache() -> None:
    target = replace(AVX512, threads=2, l1_bytes=48 << 10, l2_bytes=2 << 20)
    few, many = (
        str(default_schedule(matmul(rows, 512, 512, constant=True), target)) for rows in (16, 64)
    )
    panels, rows = sizes(few, "j_0", "i_0")
    assert panels > rows > 1
    rows, panels = sizes(many, "i_0", "j_0")
    assert panels > rows > 1


@pytest.mark.parametrize("rows", [70, 135])
def test_all_panels_pass_over_one_block_of_many_rows_before_the_next(rows: int) -> None:
    sch = check(matmul(rows, 100, 8, constant=True), SMALL)
    blocks, panels, tiles = sizes(str(sch), "i_0_0", "j_0", "i_0_1")
    assert min(blocks, panels, tiles) > 1


def test_rows_whose_data_stays_in_the_cache_are_one_block() -> None:
    assert sizes(scheduled(128, 768, 768), "j_0", "i_0") == (16, 15)


@pytest.mark.parametrize("rows", [512, 1024, 2048])
def test_blocks_of_rows_are_shared_out_evenly(rows: int) -> None:
    text = scheduled(rows, 1024, 1024)
    blocks, count = sizes(text, "i_0_0", "i_0_1")
    (tile,) = sizes(text, "i_1")
    busiest = -(-blocks // AVX512.threads) * count * tile
    assert busiest <= 1.05 * rows / AVX512.threads


@pytest.mark.parametrize("columns", [509, 768, 1021, 3072])
def test_panels_are_shared_out_evenly(columns: int) -> None:
    (panels,) = sizes(scheduled(127, columns, 1021), "j_0")
    assert -(-panels // AVX512.threads) * AVX512.threads <= 1.05 * panels


@pytest.mark.parametrize("rows", [16, 32, 64, 128])
def test_no_place_asks_for_more_than_eight_lines_at_once(rows: int) -> None:
    assert 1 <= scheduled(rows, 4096, 4096).count("prefetch(") <= 8


def test_the_taps_of_windows_stand_outside_of_channels_that_come_first() -> None:
    text = str(check(image_conv(9, 27, 20), AVX512))
    assert sizes(text, "r", "s", "c") == (3, 3, 3)


@pytest.mark.parametrize("shape", [(3, 17, 5), (9, 200, 8)])
@pytest.mark.parametrize("target", ["c:avx512", "c:avx2"])
def test_columns_that_are_read_backwards_leave_the_registers_first(
    shape: tuple[int, int, int], target: str
) -> None:
    rows, columns, inner = shape
    a = te.placeholder((rows, inner), "float32", name="A")
    b = te.placeholder((inner, columns), "float32", name="B")
    q = te.reduce_axis(inner, name="q")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, q] * b[q, j], axis=q), name="C")
    y = te.compute((rows, columns), lambda i, j: c[i, columns - 1 - j] * 2.0, name="Y")
    check(te.func(a, b, y, name="backwards"), target)


def open_product(m: int, n: int, terms: int) -> str:
    """The schedule of a product of which a call decides all sizes, up to these."""
    rows, columns, steps = te.dim("m", 1, m), te.dim("n", 1, n), te.dim("terms", 1, terms)
    a = te.placeholder((rows, steps), "float32", name="A")
    b = te.placeholder((steps, columns), "float32", name="B")
    k = te.reduce_axis(steps, name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    func = te.func(a, b, c, name="product")
    assert rule_for(func, AVX512).name == "contraction"
    return str(default_schedule(func, AVX512))


@pytest.mark.parametrize("most", [256, 512, 2048])
def test_threads_share_out_panels_where_a_call_decides_the_rows(most: int) -> None:
    text = open_product(most, most, most)
    panels, _ = sizes(text, "j_0", "i_0")
    assert panels > 1
    assert "for j_0 in parallel(" in text
    assert "i_0_0" not in text  # a block of rows may be all there are
    assert "B_packed" not in text  # a layout of its own needs sizes that are numbers


def open_convolution(side: int, *, with_relu: bool = False) -> str:
    """The schedule of 1 x 1 filters on images of which a call decides the number."""
    n = te.dim("n", 1, 8)
    x = te.placeholder((n, side, side, 64), "float32", name="X")
    w = te.placeholder((64, 256), "float32", name="W", constant=True)
    c = te.reduce_axis(64, name="c")
    y = te.compute(
        (n, side, side, 256), lambda b, i, j, k: te.sum(x[b, i, j, c] * w[c, k], axis=c), name="Y"
    )
    relu = te.compute((n, side, side, 256), lambda *at: te.maximum(y[at], 0.0), name="R")
    return str(default_schedule(te.func(x, w, relu if with_relu else y, name="filters"), AVX512))


@pytest.mark.parametrize("with_relu", [False, True])
def test_threads_share_out_the_rows_of_all_images_where_each_has_many(with_relu: bool) -> None:
    text = open_convolution(56, with_relu=with_relu)
    assert "    for b_i_0 in parallel(448):\n        for k_0 in range(8):\n" in text


def test_threads_share_out_panels_where_one_image_has_few_rows() -> None:
    assert "    for k_0 in parallel(4):\n" in open_convolution(4)


def steps(rows: int, constant: bool, target: Target) -> list[str]:
    made = default_schedule(matmul(rows, 600, 1024, constant=constant), target)
    return list(map(str, made.steps))


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_that_stream_as_they_lie_are_read_a_block_of_rows_at_a_time(threads: int) -> None:
    found = steps(1, False, replace(NEAR, threads=threads))
    assert f'j_0_0, j_0_1 = split(j_0, factors=({threads}, None), tail="partition")' in found
    shares = "j_0_0, " if threads > 1 else ""
    assert any(step.startswith(f"reorder({shares}k_0, j_0_1, ") for step in found)
    assert any(step.startswith("k_0, k_1 = split(k, factors=(None, 128)") for step in found)


@pytest.mark.parametrize(
    ("rows", "constant", "caches"), [(40, False, NEAR), (1, True, NEAR), (1, False, LARGE)]
)
def test_other_weights_are_read_by_panels(rows: int, constant: bool, caches: Target) -> None:
    found = steps(rows, constant, replace(caches, threads=2))
    assert not any(step.startswith("j_0_0, j_0_1 = split(j_0") for step in found)


def test_blocks_of_rows_add_up_to_the_product() -> None:
    target = replace(Target.parse("c:avx2"), threads=2, l2_bytes=1 << 14)
    sch = check(matmul(1, 130, 1024), target)
    assert any("j_0_0, j_0_1 = split(j_0" in step for step in map(str, sch.steps))
