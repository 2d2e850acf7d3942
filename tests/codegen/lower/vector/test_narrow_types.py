"""Numbers of 16 and 8 bits go in vectors of AVX-512: what they are there is what they are alone."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.isas import HERE, reads_x86
from tilewright import te
from tilewright.tir.dtype import dtype
from tilewright.tir.expr import Expr

pytestmark = pytest.mark.needs_cc

STORED = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float4_e2m1fn")
WIDE = pytest.mark.skipif("c:avx512" not in HERE, reason="this machine has no AVX-512")
COUNT = 83  # a whole vector, and parts of one


def conversion(source: str, to: str, count: int = COUNT) -> tw.PrimFunc:
    x = te.placeholder((count,), source, name="X")
    y = te.compute((count,), lambda i: te.cast(x[i], to), name="Y")
    return te.func(x, y, name="convert")


def values(kind: str) -> np.ndarray:
    """Every number of 16 bits or fewer; of float32 those, what lies between two, and beyond all."""
    if kind != "float32":
        bits = dtype(kind).bits
        return np.arange(1 << bits, dtype=f"uint{max(8, bits)}").view(dtype(kind).numpy)
    halves = [values(half).astype(np.float32) for half in ("float16", "bfloat16")]
    given = np.concatenate([*halves, np.float32([0, 2**-149, 2**-126, 3e38, np.inf, np.nan])])
    near = [np.nextafter(given, np.float32(end)) for end in (-np.inf, np.inf)]
    with np.errstate(invalid="ignore"):
        middle = (given + np.roll(given, 1)) / 2
    return np.concatenate([given, *near, middle, -given])


@WIDE
@pytest.mark.parametrize("kind", STORED)
@pytest.mark.filterwarnings("ignore:(overflow|invalid)")
def test_vectors_convert_as_numbers_alone_do(kind: str) -> None:
    for source, to in (("float32", kind), (kind, "float32")):
        x = values(source)
        func = conversion(source, to, len(x))
        found, alone = (
            tw.build(func, target=f"c:{isa}", verify="off")(x) for isa in ("avx512", "scalar")
        )
        same = found.view(f"u{found.itemsize}") == alone.view(f"u{alone.itemsize}")
        neither = np.isnan(x.astype(np.float32))
        assert (same | neither).all()
        if kind != "float4_e2m1fn":  # which has none
            assert np.isnan(found.astype(np.float32)[neither]).all()


@WIDE
@pytest.mark.parametrize("kind", ["int4", "uint4", "int2", "uint2"])
def test_integers_of_less_than_a_byte_have_the_low_bits(kind: str) -> None:
    x = np.arange(-40, 43, dtype=np.int32)
    stored, alone = (
        tw.build(conversion("int32", kind), target=f"c:{isa}", verify="off")(x)
        for isa in ("avx512", "scalar")
    )
    np.testing.assert_array_equal(stored.astype(np.int32), alone.astype(np.int32))
    wide = tw.build(conversion(kind, "int32"), target="c:avx512", verify="off")(stored)
    np.testing.assert_array_equal(wide, stored.astype(np.int32))


@WIDE
@pytest.mark.parametrize("kind", ["int16", "uint16"])
def test_integers_of_16_bits_are_added_and_chosen_in_vectors(kind: str) -> None:
    a, b = (te.placeholder((COUNT,), kind, name=name) for name in "AB")

    def element(i: Expr) -> Expr:
        return te.select(a[i] < b[i], te.maximum(a[i] - b[i], b[i]), a[i] + b[i])

    kernel = tw.build(te.func(a, b, te.compute((COUNT,), element, name="Y"), name="chosen"))
    rng, ends = np.random.default_rng(0), np.iinfo(kind)
    x, y = (rng.integers(ends.min, ends.max, COUNT, kind, endpoint=True) for _ in "xy")
    with np.errstate(over="ignore"):
        expected = np.where(x < y, np.maximum(x - y, y), x + y)
    np.testing.assert_array_equal(kernel(x, y), expected)


@reads_x86
def test_a_conversion_is_one_instruction_or_arithmetic_of_lanes() -> None:
    half = tw.build(conversion("float32", "float16"), target="c:avx512", verify="off").source
    assert "_mm512_cvtps_ph(" in str(half)
    brain = tw.build(conversion("float32", "bfloat16"), target="c:avx512", verify="off").source
    assert "_mm512_cvtepi32_epi16(" in str(brain)
    assert "neps" not in str(brain)  # that makes 0 of numbers without a full mantissa


@pytest.mark.parametrize("target", [target for target in HERE if target != "c:scalar"])
@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_truth_values_are_read_and_stored_in_vectors(kind: str, target: str) -> None:
    c = te.placeholder((COUNT,), "bool", name="C")
    a, b = (te.placeholder((COUNT,), kind, name=name) for name in "AB")
    less = te.compute((COUNT,), lambda i: te.logical_not(a[i] < b[i]), name="L")
    taken = te.compute((COUNT,), lambda i: te.select(c[i], a[i], b[i]), name="T")
    kernel = tw.build(te.func(c, a, b, less, taken, name="truths"), target)
    rng = np.random.default_rng(0)
    flags = rng.integers(0, 2, COUNT).astype(bool)
    x, y = (rng.integers(-3, 4, COUNT).astype(kind) for _ in range(2))
    found = kernel(flags, x, y)
    np.testing.assert_array_equal(found[0], x >= y)
    np.testing.assert_array_equal(found[1], np.where(flags, x, y))
    loaded = "cvtepu8_epi32(_mm_loadl" if target == "c:avx2" else "cmpneq_epi8_mask"
    assert loaded in kernel.source
