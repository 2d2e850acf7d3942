"""Kernels of functions of which a call decides sizes, beside those of numbers: their C has no tests
where whole tiles run, threads share out what there is, and an element has the same bits whatever
the sizes are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from tilewright import te
from tilewright.driver.build import build
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.machine.host import host
from tilewright.tir.func import PrimFunc

from .test_inner_dims import softmax

pytestmark = pytest.mark.needs_cc
ISAS = [isa for isa in ("scalar", "avx2", "avx512", "neon") if isa in host().isas]
X86 = [isa for isa in ISAS if isa in ("avx2", "avx512")]


def product_of(m: int, n: int, terms: int) -> PrimFunc:
    """A product of matrices of up to so many rows, columns and terms."""
    rows, columns, steps = te.dim("m", 1, m), te.dim("n", 1, n), te.dim("terms", 1, terms)
    a = te.placeholder((rows, steps), "float32", name="A")
    b = te.placeholder((steps, columns), "float32", name="B")
    k = te.reduce_axis(steps, name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="product")


def sums() -> PrimFunc:
    """A vector plus one."""
    n = te.dim("n", 1, 100)
    a = te.placeholder((n,), "float32", name="A")
    return te.func(a, te.compute((n,), lambda i: a[i] + 1.0, name="B"), name="sums")


def loops_of(source: str, comment: str) -> list[str]:
    """The bodies of the innermost loops of a source whose comment has a text."""
    lines, found = source.splitlines(), []
    for number, line in enumerate(lines):
        if "for (" not in line or comment not in line:
            continue
        depth = len(line) - len(line.lstrip())
        end = next(
            n for n, x in enumerate(lines[number + 1 :], number + 1) if x == " " * depth + "}"
        )
        body = "\n".join(lines[number + 1 : end])
        if "for (" not in body:
            found.append(body)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", X86)
@pytest.mark.parametrize("make", [sums, softmax, lambda: product_of(64, 96, 50)])
def test_no_loop_of_whole_tiles_has_a_test(make: type, isa: str) -> None:
    source = build(make(), f"c:{isa}", verify="off").source
    inner = loops_of(source, "serial")
    assert inner
    for body in inner:
        assert "if (" not in body
    assert any("mask" not in body for body in inner)
    assert not re.search(r"< 1\)", source)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", X86)
def test_threads_share_out_what_there_is(isa: str) -> None:
    source = build(softmax(), f"c:{isa}", verify="off").source
    assert "const int64_t i_end = m * (thread + 1) / threads;" in source
    assert "< m" not in source


@pytest.mark.parametrize("isa", X86)
def test_what_is_left_is_written_once(isa: str) -> None:
    source = build(sums(), f"c:{isa}", verify="off").source
    assert len(re.findall(r"/\* serial ", source)) == 1
    assert len(re.findall(r"/\* last of ", source)) == 1


@pytest.mark.skipif("avx512" not in host().isas, reason="masks of AVX-512")
def test_what_is_left_of_a_size_makes_a_plain_mask() -> None:
    source = build(sums(), "c:avx512", verify="off").source
    assert "on = (__mmask16)(0xffffu >> (16 - (n - i_1 * 16)));" in source


def sizes(most: int, tile: int) -> Iterator[int]:
    """Around the tiles, and the ends."""
    rng = np.random.default_rng(most)
    around = {1, tile - 1, tile, tile + 1, 2 * tile + 1, most, int(rng.integers(1, most + 1))}
    yield from sorted(size for size in around if 1 <= size <= most)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISAS)
def test_an_element_has_the_same_bits_at_each_size_and_on_any_threads(isa: str) -> None:
    kernel: Kernel[np.ndarray] = build(product_of(40, 70, 20), f"c:{isa}", verify="off")
    assert str(kernel.proof).startswith("proved (")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((40, 20), (20, 70)))
    for terms in (1, 16, 20):
        left, right = np.ascontiguousarray(a[:, :terms]), b[:terms]
        whole = kernel(left, right)
        np.testing.assert_allclose(whole, left @ right, rtol=1e-4, atol=1e-4)
        for m, n in product(sizes(40, 8), sizes(70, 16)):
            given = left[:m], np.ascontiguousarray(right[:, :n])
            for threads in (1, 2, 3):
                found = kernel(*given, threads=threads)
                assert found.tobytes() == np.ascontiguousarray(whole[:m, :n]).tobytes(), (m, n)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISAS)
def test_a_strict_build_sees_the_order_of_sums_in_all_tiles(isa: str) -> None:
    kernel = build(product_of(40, 70, 20), f"c:{isa}", verify="off", strict=True)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((13, 20), (20, 37)))
    wanted = np.zeros((13, 37), np.float32)
    for k in range(20):
        wanted += a[:, k, None] * b[k]
    assert kernel(a, b).tobytes() == wanted.tobytes()
