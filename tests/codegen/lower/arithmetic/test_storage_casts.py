"""Conversions of storage types: every bit pattern, and every rounding, is that of ml_dtypes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright import te
from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.arithmetic.storage_casts import StorageCasts
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.codegen.lower.passes import lowering
from tilewright.tir.dtype import dtype
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import ISAS, Target
from tilewright.tir.text.printer import print_stmt
from tilewright.tir.visit import stores

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")

FLOATS = (
    *("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"),
    *("float8_e5m2fnuz", "float4_e2m1fn"),
)
STORAGE = (*FLOATS, "int4", "uint4", "int2", "uint2")
OTHERS = ("float32", "float64", "int8", "uint16", "int32", "int64", "bool", *STORAGE)


def every_value(name: str) -> np.ndarray:
    """All bit patterns of a type; of less than a byte all that are stored."""
    kind = dtype(name)
    return np.arange(1 << kind.bits).astype(f"u{kind.bytes}").view(kind.numpy)


def conversions(source: str, size: int, targets: tuple[str, ...]) -> PrimFunc:
    a = te.placeholder((size,), source, name="A")
    outputs = [
        te.compute((size,), lambda i, k=k: te.cast(a[i], k), name=f"to_{k}") for k in targets
    ]
    return te.func(a, *outputs, name="conversions")


def to_round(name: str) -> np.ndarray:
    """float32 values: each number of a type, each tie, their neighbours, the ends, random bits."""
    with np.errstate(all="ignore"):
        values = np.unique(every_value(name).astype(np.float32))
        finite = values[np.isfinite(values)]
        ties = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
        if name != "float16":
            ends = finite[-1] * np.array([1, 1.01, 1.03, 1.04, 1.07, 1.2, 2, 1e9], np.float32)
        else:
            ends = np.array([65504, 65519.99, 65520, 65536, 1e9, 3e38], np.float32)
    near = [np.nextafter(ties, np.float32(end)) for end in (-np.inf, np.inf)]
    bits = np.random.default_rng(0).integers(0, 1 << 32, 4096, dtype=np.uint32).view(np.float32)
    return np.concatenate(
        [finite, ties, *near, ends, -ends, bits, [np.inf, -np.inf, np.nan, 0.0]]
    ).astype(np.float32)


def same_bits(got: np.ndarray, expected: np.ndarray, what: str, values: np.ndarray) -> None:
    """Equal bits, but that any NaN is as good as another, and any zero that a NaN becomes."""
    assert got.dtype == expected.dtype, what
    bits = f"u{got.dtype.itemsize}"
    nan = np.not_equal(expected, expected)
    np.testing.assert_array_equal(np.not_equal(got, got), nan, err_msg=what)
    nan |= np.not_equal(values, values) & np.equal(expected, 0) & np.equal(got, 0)
    np.testing.assert_array_equal(got.view(bits)[~nan], expected.view(bits)[~nan], err_msg=what)


def lowered(value: str, stored: str, source: str, isa: str = "scalar") -> str:
    """The text of a stored conversion after the pass."""
    text = f"""
def f(A: {source}[4], C: output({stored}[4])):
    for i in range(4):
        C[i] = {value}
"""
    (store,) = stores(StorageCasts(Target.parse(f"c:{isa}"))(parse(text)).body)
    return print_stmt(store).removeprefix("C[i] = ")


def test_bfloat16_is_the_upper_half_of_a_float32() -> None:
    assert lowered('cast(A[i], "float32")', "float32", "bfloat16") == (
        'reinterpret(cast(reinterpret(A[i], "uint16"), "int32") << int32(16), "float32")'
    )


def test_a_float32_is_rounded_to_bfloat16_by_an_integer_sum() -> None:
    assert lowered('cast(A[i], "bfloat16")', "bfloat16", "float32") == (
        "reinterpret(cast("
        'let(x, A[i], let(whole, reinterpret(x, "int32"), '
        "let(magnitude, whole & int32(2147483647), "
        "select(x == x, min(magnitude + int32(32767) + (magnitude >> int32(16) & int32(1)) "
        ">> int32(16), int32(32640)), int32(32704)) | whole >> int32(16) & int32(32768)))), "
        '"uint16"), "bfloat16")'
    )


def test_an_integer_of_four_bits_goes_by_way_of_int32() -> None:
    assert lowered('cast(A[i], "float32")', "float32", "uint4") == (
        'cast(cast(reinterpret(A[i], "uint8"), "int32") & int32(15), "float32")'
    )
    assert lowered('cast(A[i], "int64")', "int64", "int4") == (
        'cast((cast(reinterpret(A[i], "uint8"), "int32") & int32(15) ^ int32(8)) - int32(8), '
        '"int64")'
    )
    assert lowered('cast(A[i], "int4")', "int4", "int64") == (
        'reinterpret(cast(cast(A[i], "int32") & int32(15), "uint8"), "int4")'
    )


def test_what_the_target_converts_stays_a_cast_from_or_to_float32() -> None:
    assert lowered('cast(A[i], "float32")', "float32", "float16", "avx2") == (
        'cast(A[i], "float32")'
    )
    assert lowered('cast(A[i], "float16")', "float16", "float64", "avx2") == (
        'cast(cast(A[i], "float32"), "float16")'
    )
    assert "reinterpret" in lowered('cast(A[i], "float32")', "float32", "float16")


def test_a_function_without_storage_types_stays_the_same_object() -> None:
    a = te.placeholder((4,), "int32", name="A")
    func = te.func(a, te.compute((4,), lambda i: te.cast(a[i], "float32"), name="C"), name="f")
    assert StorageCasts(Target.parse("c:scalar"))(func) is func


@pytest.mark.parametrize("name", FLOATS)
def test_the_evaluator_rounds_as_ml_dtypes(name: str) -> None:
    values = to_round(name)
    (got,) = evaluate(conversions("float32", values.size, (name,)), (values,)).values()
    with np.errstate(all="ignore"):
        same_bits(got, values.astype(dtype(name).numpy), name, values)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STORAGE)
def test_every_value_converts_alike_in_interpreter_and_evaluator(name: str) -> None:
    values = every_value(name)[:: 64 if dtype(name).bytes == 2 else 1]
    func = conversions(name, values.size, OTHERS)
    expected = evaluate(func, (values,))
    for kind, got in zip(OTHERS, interpret(func, values), strict=True):
        same_bits(got, expected[f"to_{kind}"], kind, values)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", STORAGE)
def test_the_lowered_function_means_what_its_definition_does(name: str, isa: str) -> None:
    values = every_value(name)[:: 64 if dtype(name).bytes == 2 else 1]
    func = conversions(name, values.size, OTHERS)
    expected, lowered = evaluate(func, (values,)), lower_to_nest(func)
    for step in lowering(Target.parse(f"c:{isa}")).passes:
        lowered = step(lowered)
    for kind, got in zip(OTHERS, interpret(lowered, values), strict=True):
        same_bits(got, expected[f"to_{kind}"], kind, values)


@pytest.mark.sampled(3)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", STORAGE)
def test_compiled_code_converts_every_value(
    name: str, target: Target, run_artifact: Callable[..., tuple[np.ndarray, ...]]
) -> None:
    values = every_value(name)
    func = conversions(name, values.size, OTHERS)
    expected = evaluate(func, (values,))
    results = run_artifact(build_artifact(lower_to_nest(func), target), {"A": values})
    for kind, got in zip(OTHERS, results, strict=True):
        same_bits(got, expected[f"to_{kind}"], kind, values)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", FLOATS)
def test_compiled_code_rounds_every_tie(
    name: str, target: Target, run_artifact: Callable[..., tuple[np.ndarray, ...]]
) -> None:
    values = to_round(name)
    func = conversions("float32", values.size, (name,))
    (expected,) = evaluate(func, (values,)).values()
    (got,) = run_artifact(build_artifact(lower_to_nest(func), target), {"A": values})
    same_bits(got, expected, name, values)
