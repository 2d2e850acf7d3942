"""schedule/rules/products/prefetching.py: what a tiled product asks for, where, and when it does
not.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.rules.products.prefetching import PREFETCH_STEPS, spacing
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import conv, matmul, matmul_relu
from ...rule_checks import check

AVX512 = Target.parse("c:avx512")


def prefetches(func: PrimFunc, target: Target = AVX512) -> list[str]:
    """The prefetches in the rule's schedule."""
    return steps_of(default_schedule(func, target))


def steps_of(sch: Schedule) -> list[str]:
    """The prefetches of a schedule."""
    return [step for step in sch.steps if step.startswith("prefetch")]


def tensors(steps: list[str]) -> list[str]:
    """The tensors that prefetches ask for."""
    return [step.split('"')[1] for step in steps]


def residual(
    images: int, size: int, columns: int, inner: int, *, backwards: bool = False
) -> PrimFunc:
    """Y = A B + R at each point of square images; backwards: the columns of the product turned
    round.
    """
    a = te.placeholder((images, size, size, inner), "float32", name="A")
    b = te.placeholder((inner, columns), "float32", name="B", constant=True)
    r = te.placeholder((images, size, size, columns), "float32", name="R")
    k = te.reduce_axis(inner, name="k")
    c = te.compute(r.shape, lambda n, h, v, j: te.sum(a[n, h, v, k] * b[k, j], axis=k), name="C")
    last = columns - 1
    y = te.compute(
        r.shape,
        lambda n, h, v, j: c[n, h, v, last - j if backwards else j] + r[n, h, v, j],
        name="Y",
    )
    return te.func(a, b, r, y, name="residual")


def test_rows_are_asked_for_ahead_where_they_do_not_stay_in_the_cache() -> None:
    data, results = prefetches(matmul(3136, 64, 256))
    assert data.startswith('prefetch("A", at=i_0, ')
    assert 'distance=1, rw="read", level=1' in data
    assert results.startswith('prefetch("C", at=i_0, ')
    assert 'distance=1, rw="write", level=1' in results
    far = prefetches(conv(56, 56, 128, 128))  # what several taps read again
    assert tensors(far) == ["X_pad", "relu"]
    assert all("level=2" in step for step in far)
    assert not prefetches(matmul(256, 64, 256))


@pytest.mark.parametrize("images", [1, 4])
def test_the_loop_asks_whose_next_iteration_the_cache_keeps(images: int) -> None:
    steps = prefetches(residual(images, 56, 256, 64))
    assert tensors(steps) == ["A", "R", "Y"]
    assert all("at=h_0, " in step for step in steps)


def test_where_weights_stream_a_tile_asks_for_what_follows_its_sum() -> None:
    weights, *others = prefetches(residual(1, 14, 1024, 256))
    assert 'prefetch("B_packed", ' in weights
    assert tensors(others) == ["R", "Y"]
    assert all("distance=0" in step for step in others)


def test_a_short_sum_is_cut_so_that_a_place_asks_for_few_lines() -> None:
    sch = default_schedule(matmul_relu(12544, 96, 16, constant=True), AVX512)
    assert 'split(k, factors=(None, 4), tail="partition")' in str(sch.steps)
    sch = default_schedule(matmul_relu(196, 96, 16, constant=True), AVX512)
    assert "split(k, " not in str(sch.steps)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(1, 9, 17, 20), (2, 9, 17, 20)])
def test_products_that_ask_for_rows_compute_the_same(shape: tuple[int, int, int, int]) -> None:
    small = replace(AVX512, l1_bytes=1 << 10, l2_bytes=1 << 13)
    assert tensors(steps_of(check(residual(*shape), small))) == ["A", "R", "Y"]
    turned = steps_of(check(residual(*shape, backwards=True), small))
    assert tensors(turned) == ["A"]  # what follows has a nest of its own


def test_the_lines_of_results_are_asked_for_where_weights_stream() -> None:
    for shape in ((128, 3072, 768), (49, 2048, 512)):
        weights, results = prefetches(matmul(*shape))
        assert weights.startswith('prefetch("B_packed", ')
        assert results.startswith('prefetch("C", at=i_0, ')
        assert 'distance=0, rw="write", level=1' in results
    (weights,) = prefetches(matmul(128, 768, 3072))  # summed in parts: results come back at once
    assert weights.startswith('prefetch("B_packed", ')


def test_weights_of_a_part_are_asked_for_ahead_whatever_its_taps() -> None:
    (step,) = prefetches(conv(28, 28, 256, 256, stride=2))
    assert 'prefetch("W_packed", at=' in step


def test_places_that_ask_lie_as_far_apart_as_leaves_each_a_few_lines() -> None:
    assert spacing(192 * 4, 1) == 1
    assert spacing(192 * 4, 8) == 4
    assert spacing(1, 1000) == PREFETCH_STEPS
    assert spacing(192 * 4, 1, 4) == 4
