"""Vectors of 8 and 16 bits on AVX2: values, tails, and that there are vectors."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.runtime.machine.host import host
from tilewright.tir.dtype import dtype as as_dtype
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

pytestmark = pytest.mark.skipif("avx2" not in host().isas, reason="this machine has no AVX2")
AVX2 = Target.parse("c:avx2")
NARROW = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16")
PAIRS = [
    *((kind, "float32") for kind in NARROW),
    *(("float32", kind) for kind in NARROW),
    *((kind, "int32") for kind in NARROW[:4]),
    *(("int32", kind) for kind in NARROW[:4]),
    *((kind, wider) for kind in NARROW[:2] for wider in NARROW[2:4]),
]


def conversion(source: str, to: str, count: int) -> PrimFunc:
    """y = x in another type."""
    x = te.placeholder((count,), source, name="x")
    return te.func(x, te.compute((count,), lambda i: te.cast(x[i], to), name="y"), name="convert")


def mixed(kind: str) -> PrimFunc:
    """y = sums, differences, and the larger and smaller ones of these."""
    a, b = (te.placeholder((77,), kind, name=name) for name in "ab")
    y = te.compute(
        (77,), lambda i: te.maximum(a[i] + b[i], te.minimum(a[i] - b[i], b[i])), name="y"
    )
    return te.func(a, b, y, name="mixed")


def numbers(kind: str, count: int) -> np.ndarray:
    """Numbers of a type: of its whole range, and of floats those around the ends of others, too."""
    rng, found = np.random.default_rng(0), as_dtype(kind)
    if found.is_integer:
        ends = np.iinfo(kind)
        return rng.integers(ends.min, ends.max, count, np.int64, endpoint=True).astype(kind)
    values = rng.standard_normal(count) * 10.0 ** rng.integers(-3, 6, count)
    special = (np.nan, np.inf, -np.inf, 127.5, 128.5, 255.5, -128.5, 32767.5, -0.5, 65535.5)
    values[: len(special)] = special
    with np.errstate(over="ignore"):
        return values.astype(found.numpy)


@pytest.mark.needs_cc
@pytest.mark.isa
@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_numbers_are_converted_in_vectors_as_they_mean(source: str, to: str) -> None:
    x, func = numbers(source, 1003), conversion(source, to, 1003)
    kernel = tw.build(func, AVX2)
    found, expected = (one(x).astype(np.float64) for one in (kernel, tw.build(func, "python")))
    np.testing.assert_array_equal(found, expected)
    assert "_mm256_" in kernel.source or "_mm_cvtep" in kernel.source


@pytest.mark.needs_cc
@pytest.mark.isa
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16"])
def test_integers_are_computed_with(kind: str) -> None:
    func = mixed(kind)
    given = numbers(kind, 77), numbers(kind, 77)[::-1].copy()
    kernel = tw.build(func, AVX2)
    np.testing.assert_array_equal(kernel(*given), tw.build(func, "python")(*given))
    assert "__m128i" in kernel.source
