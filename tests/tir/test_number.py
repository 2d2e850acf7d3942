"""tir/number.py: which Python numbers a type holds; each refusal with its whole text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.dtype import INT64, dtype
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Const
from tilewright.tir.number import (
    check_number,
    common_type,
    has_infinity,
    holds,
    integer_range,
)
from tilewright.tir.te import te

A = te.placeholder((3, 4), "float32", name="A")
N = te.placeholder((3,), "int8", name="N")


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint64", "int64"])
def test_a_range_is_that_of_numpy_and_its_ends_fit(name: str) -> None:
    info = np.iinfo(name)
    assert integer_range(dtype(name)) == (info.min, info.max)
    assert te.const(int(info.min), name).value == info.min
    assert te.const(int(info.max), name).value == info.max


def test_numbers_that_fit_are_taken_whatever_their_python_type() -> None:
    assert te.const(2.0, "int8") == te.const(np.int64(2), "int8")
    assert te.const(np.bool_(True), "bool") == te.const(1, "bool")
    assert te.const(np.float32(0.5), "float32") == te.const(0.5, "float32")
    assert A[0, np.int32(2)].indices[1] == Const(2, INT64)


def test_floats_are_rounded_and_infinities_and_nan_are_values() -> None:
    greatest = float(np.finfo("f4").max)
    assert te.const(3.4028235e38, "float32").value == greatest
    assert te.const(float("inf"), "float32").value == float("inf")
    assert te.const(-np.inf, "float32").value == -float("inf")
    assert np.isnan(te.const(float("nan"), "float32").value)
    check_number(1e300, dtype("float64"))


def test_storage_types_round_to_the_nearest_and_hold_their_ends() -> None:
    assert te.const(0.1, "bfloat16").value == 0.10009765625
    assert te.const(65519, "float16").value == 65504.0
    assert te.const(460, "float8_e4m3fn").value == 448.0
    assert te.const(-np.inf, "float8_e5m2").value == -float("inf")
    assert np.isnan(te.const(float("nan"), "float8_e4m3fn").value)
    assert te.const(-240, "float8_e4m3fnuz").value == -240.0
    assert te.const(57344, "float8_e5m2fnuz").value == 57344.0
    assert te.const(5, "float4_e2m1fn").value == 4.0
    assert [has_infinity(dtype(n)) for n in ("float16", "float8_e4m3fn")] == [True, False]
    assert not has_infinity(dtype("float4_e2m1fn"))
    assert (integer_range(dtype("int4")), integer_range(dtype("uint4"))) == ((-8, 7), (0, 15))
    assert (integer_range(dtype("int2")), integer_range(dtype("uint2"))) == ((-2, 1), (0, 3))


REFUSALS: dict[Callable[[], object], tuple[type[Exception], str]] = {
    lambda: te.const(300, "int8"): (
        ValueError,
        "IRError: expression: the number 300 does not fit type int8; expected -128 to 127. "
        "[expr-range]\n"
        "  Hint: int16 holds it: te.const(300, 'int16'), te.cast(x, 'int16').",
    ),
    lambda: N[0] + 10**20: (
        ValueError,
        "IRError: expression: the number 100000000000000000000 does not fit type int8; expected "
        "-128 to 127. [expr-range]",
    ),
    lambda: te.const(2, "bool") < 1: (
        ValueError,
        "IRError: expression: the number 2 does not fit type bool; expected 0 to 1. [expr-range]\n"
        "  Hint: int16 holds it: te.const(2, 'int16'), te.cast(x, 'int16').",
    ),
    lambda: te.const(1.5, "int32"): (
        ValueError,
        "IRError: expression: the number 1.5 does not fit type int32; expected an integer. "
        "[expr-number]\n"
        "  Hint: cast the other operand: te.cast(x, 'float32') * 1.5.",
    ),
    lambda: te.const(500, "float8_e4m3fn"): (
        ValueError,
        "IRError: expression: the number 500 does not fit type float8_e4m3fn; expected a magnitude "
        "of at most 448.0. [expr-overflow]\n"
        "  Hint: te.cast(x, 'float32') has a wider range, and infinities.",
    ),
    lambda: te.const(8, "int4"): (
        ValueError,
        "IRError: expression: the number 8 does not fit type int4; expected -8 to 7. [expr-range]\n"
        "  Hint: int16 holds it: te.const(8, 'int16'), te.cast(x, 'int16').",
    ),
    lambda: A[0, 0] * 1e300: (
        ValueError,
        "IRError: expression: the number 1e+300 does not fit type float32; expected a magnitude of "
        "at most 3.4028234663852886e+38, or infinity. [expr-overflow]\n"
        "  Hint: float('inf') is infinity; te.cast(x, 'float64') has a wider range.",
    ),
    lambda: A[0, 0] * "a": (
        TypeError,
        "IRTypeError: expression: an operand is 'a'; expected an expression or a number. "
        "[expr-operand]\n"
        "  Hint: an element of a tensor is an expression: A[i, j].",
    ),
    lambda: A[0, 1.0]: (
        TypeError,
        "IRTypeError: load: an index of 'A' is 1.0; expected an integer or an expression. "
        "[load-index]\n"
        "  Hint: one element at a time: te.compute(shape, lambda i, j: A[i, j], name=...).",
    ),
    lambda: A[0, :]: (
        TypeError,
        "IRTypeError: load: an index of 'A' is :; expected an integer or an expression. "
        "[load-index]\n"
        "  Hint: one element at a time: te.compute(shape, lambda i, j: A[i, j], name=...).",
    ),
}


@pytest.mark.parametrize("build", REFUSALS, ids=[text for _, text in REFUSALS.values()])
def test_what_does_not_fit_is_refused(build: Callable[[], object]) -> None:
    builtin, text = REFUSALS[build]
    with pytest.raises(IRError) as refusal:
        build()
    assert isinstance(refusal.value, builtin)
    assert str(refusal.value) == text


@pytest.mark.parametrize("number", [10**400, -(10**39)])
def test_an_integer_beyond_a_float_type_is_refused(number: int) -> None:
    with pytest.raises(IRError, match="expr-overflow"):
        te.const(number, "float32")


COMMON = {  # what holds the numbers of both types
    ("int32", "int64"): "int64",
    ("int8", "int16"): "int16",
    ("uint8", "int8"): "int32",
    ("uint32", "int32"): "int64",
    ("uint64", "int64"): None,
    ("bool", "int8"): "int8",
    ("int64", "float32"): "float32",
    ("float32", "float64"): "float64",
    ("float16", "float32"): "float32",
    ("float16", "bfloat16"): "float32",
    ("float16", "int32"): "float32",
    ("int4", "int8"): "int8",
    ("int4", "uint4"): "int32",
}


@pytest.mark.parametrize("pair", COMMON, ids=str)
def test_the_common_type_holds_both_and_can_be_computed_with(pair: tuple[str, str]) -> None:
    a, b = map(dtype, pair)
    found = common_type(a, b)
    assert found == common_type(b, a)
    assert (None if found is None else str(found)) == COMMON[pair]
    if found is not None:
        assert not found.is_storage
        for kind in (a, b):
            assert holds(found, kind)


@pytest.mark.parametrize("wide", ["int16", "int32", "float64", "uint64"])
@pytest.mark.parametrize("narrow", ["bool", "int8", "uint8", "int32", "uint32", "float32"])
def test_what_a_type_holds_is_what_numpy_casts_safely(wide: str, narrow: str) -> None:
    assert holds(dtype(wide), dtype(narrow)) == np.can_cast(narrow, wide, "safe")


def test_of_two_floats_of_16_bits_neither_holds_the_other() -> None:
    half, brain = dtype("float16"), dtype("bfloat16")
    assert not holds(half, brain)
    assert not holds(brain, half)
    assert holds(half, half)
    assert holds(brain, dtype("float8_e5m2"))
