"""Kernels and engines take, keep and give arrays of the types that are only stored."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver.build_program import build_program
from tilewright.driver.check.data import random_array
from tilewright.driver.load import load
from tilewright.runtime.machine.host import host
from tilewright.tir.dtype import BFLOAT16, FLOAT32, NAMES, DType, dtype
from tilewright.tir.func import PrimFunc
from tilewright.tir.number import integer_range
from tilewright.tir.program.program import Launch, Program, ProgramTensor, Slice
from tilewright.tir.program.syncs import place_syncs

pytestmark = pytest.mark.needs_cc

STORAGE = tuple(name for name in NAMES if dtype(name).is_storage)
N, K, M = 5, 70, 37


def square(kind: DType) -> PrimFunc:
    """x * x + 1 of 100 values, in float32 or int32, stored as they came."""
    wide = "float32" if kind.is_float else "int32"
    x = te.placeholder((100,), kind, name="X")
    y = te.compute(
        (100,), lambda i: te.cast(te.cast(x[i], wide) * te.cast(x[i], wide) + 1, kind), name="Y"
    )
    return te.func(x, y, name="square")


def matmul(kind: DType) -> PrimFunc:
    """Y = X W, summed in float32 or int32; X, W and Y are stored."""
    wide = "float32" if kind.is_float else "int32"
    x = te.placeholder((N, K), kind, name="X")
    w = te.placeholder((K, M), kind, name="W", constant=True)
    k = te.reduce_axis(K, name="k")
    c = te.compute(
        (N, M),
        lambda i, j: te.sum(te.cast(x[i, k], wide) * te.cast(w[k, j], wide), axis=k),
        name="C",
    )
    y = te.compute((N, M), lambda i, j: te.cast(c[i, j], kind), name="Y")
    return te.func(x, w, y, name="matmul")


@pytest.mark.parametrize("target", ["python", *(f"c:{isa}" for isa in host().isas)])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_floats_of_16_bits_are_computed_with_in_float32_and_rounded_where_they_are_stored(
    name: str, target: str
) -> None:
    kind = dtype(name)
    x = random_array(np.random.default_rng(0), kind, (100,))
    wide = x.astype(np.float32)
    tensor = te.placeholder((100,), kind, name="X")
    square = te.compute((100,), lambda i: tensor[i] * tensor[i], name="S")
    stored = te.compute((100,), lambda i: te.cast(square[i] * 0.1, kind), name="Y")
    with np.errstate(all="ignore"):
        wanted = (wide * wide * np.float32(0.1)).astype(kind.numpy)
    kernel = tw.build(te.func(tensor, stored, name="scaled"), target)
    np.testing.assert_array_equal(kernel(x), wanted)
    k = te.reduce_axis(100, name="k")
    total = te.compute((), lambda: te.sum(tensor[k], axis=k), name="T")
    ones = np.full(100, 1.5, kind.numpy)  # of which no float of 16 bits holds the sums
    ones[0] = 256
    found = tw.build(te.func(tensor, total, name="total"), target)(ones)
    assert (found.dtype, float(found)) == (np.float32, 404.5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", host().isas)
@pytest.mark.parametrize("name", STORAGE)
def test_a_kernel_takes_and_gives_arrays_of_the_type(name: str, isa: str) -> None:
    kind = dtype(name)
    x = random_array(np.random.default_rng(0), kind, (100,))
    wide = x.astype(np.float32 if kind.is_float else np.int32)
    kernel = tw.build(square(kind), f"c:{isa}")
    got = kernel(x)
    assert got.dtype == kind.numpy
    if kind.is_float:
        np.testing.assert_array_equal(got, tw.build(square(kind), "python")(x))
    else:
        mask = (1 << kind.bits) - 1
        np.testing.assert_array_equal(got.astype(np.int32) & mask, (wide * wide + 1) & mask)
    out = np.zeros(100, kind.numpy)
    assert kernel(x, out) is out
    np.testing.assert_array_equal(out, got)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("isa", host().isas)
@pytest.mark.parametrize("name", STORAGE)
def test_a_contraction_reads_constants_of_the_type(name: str, isa: str) -> None:
    kind, rng = dtype(name), np.random.default_rng(1)
    x, w = random_array(rng, kind, (N, K)), random_array(rng, kind, (K, M))
    kernel = tw.build(matmul(kind), f"c:{isa}", constants={"W": w})
    got = kernel(x).astype(np.float64)
    if kind.is_float:
        wanted = x.astype(np.float64) @ w.astype(np.float64)
        info = ml_dtypes.finfo(kind.numpy)
        eps, most = float(info.eps), float(info.max)
        wanted = wanted.clip(-most, most)
        np.testing.assert_allclose(got, wanted, rtol=eps, atol=eps)
    else:
        wide = x.astype(np.int64) @ w.astype(np.int64)
        mask = (1 << kind.bits) - 1
        np.testing.assert_array_equal(got.astype(np.int64) & mask, wide & mask)


def test_random_integers_reach_both_ends_of_their_type() -> None:
    for name in ("int4", "uint4", "int2", "uint2"):
        values = random_array(np.random.default_rng(0), dtype(name), (1000,)).astype(int)
        assert (values.min(), values.max()) == integer_range(dtype(name))


def narrow_model(kind: DType) -> Program:
    """y = x * w, stored as `kind`, where w is a constant of `kind`; x and y are bfloat16."""
    a = te.placeholder((64,), BFLOAT16, name="A")
    w = te.placeholder((64,), kind, name="W", constant=True)
    product = te.compute(
        (64,), lambda i: te.cast(a[i], "float32") * te.cast(w[i], "float32"), name="P"
    )
    b = te.placeholder((64,), FLOAT32, name="B")
    stored = te.compute((64,), lambda i: te.cast(b[i], BFLOAT16), name="S")
    between = Slice("arena", 0, FLOAT32, (64,))
    return Program(
        "narrow",
        (ProgramTensor("x", BFLOAT16, (64,)),),
        (ProgramTensor("y", BFLOAT16, (64,)),),
        (ProgramTensor("w", kind, (64,)),),
        (te.func(a, w, product, name="product"), te.func(b, stored, name="stored")),
        (
            Launch(
                "product",
                (Slice("input", 0, BFLOAT16, (64,)), Slice("constant", 0, kind, (64,)), between),
            ),
            Launch("stored", (between, Slice("output", 0, BFLOAT16, (64,)))),
        ),
        256,
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STORAGE)
def test_an_engine_keeps_constants_of_the_type_in_its_file(name: str, tmp_path: Path) -> None:
    kind, rng = dtype(name), np.random.default_rng(2)
    w, x = random_array(rng, kind, (64,)), random_array(rng, BFLOAT16, (64,))
    engine = build_program(place_syncs(narrow_model(kind)), {"w": w}, f"c:{host().isas[0]}")
    loaded = load(engine.save(tmp_path / "narrow.twe"))
    wanted = (x.astype(np.float32) * w.astype(np.float32)).astype(ml_dtypes.bfloat16)
    for made in (engine, loaded):
        got = made(x)
        assert got.dtype == BFLOAT16.numpy
        np.testing.assert_array_equal(got, wanted)
    assert loaded.inputs[0].dtype == BFLOAT16.numpy


def test_a_constant_of_one_value_is_kept_as_one(tmp_path: Path) -> None:
    kind = dtype("float8_e4m3fn")
    w = np.broadcast_to(np.array(1.5, kind.numpy), (64,))
    engine = build_program(place_syncs(narrow_model(kind)), {"w": w}, f"c:{host().isas[0]}")
    x = np.arange(64).astype(ml_dtypes.bfloat16)
    loaded = load(engine.save(tmp_path / "one.twe"))
    np.testing.assert_array_equal(loaded(x), engine(x))
