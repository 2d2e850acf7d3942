"""Constants keep their bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.codegen.c.dialect import C
from tilewright.codegen.cuda.dialect import CUDA
from tilewright.codegen.text.literals import float_literal, literal
from tilewright.tir.expr import Const, const


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_read_back_with_its_bits(value: float) -> None:
    text = float_literal(value, 32, C)
    assert text.endswith("f")
    assert np.float32(text[:-1]).tobytes() == np.float32(value).tobytes()
    assert "." in text or "e" in text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_with_its_bits(value: float) -> None:
    assert np.float64(float_literal(value, 64, C)).tobytes() == np.float64(value).tobytes()


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (const(0.1, "float32"), "0.1f"),
        (const(-0.0, "float32"), "-0.0f"),
        (const(1e30, "float32"), "1.0e+30f"),
        (const(float("inf"), "float32"), "__builtin_inff()"),
        (const(float("-inf"), "float64"), "-__builtin_inf()"),
        (const(float("nan"), "float32"), '__builtin_nanf("")'),
        (const(-7, "int64"), "-7"),
        (const(-(1 << 63), "int64"), "INT64_MIN"),
        (const(-(1 << 31), "int32"), "INT32_MIN"),
        (const((1 << 64) - 1, "uint64"), "18446744073709551615u"),
        (const(True, "bool"), "1"),
        (const(1.5, "float16"), "0x3e00"),
        (const(-0.0, "bfloat16"), "0x8000"),
        (const(-448, "float8_e4m3fn"), "0xfe"),
        (const(float("inf"), "float8_e5m2"), "0x7c"),
        (const(-6, "float4_e2m1fn"), "0xf"),
        (const(0.5, "float8_e4m3fnuz"), "0x38"),
        (const(-2, "int2"), "0x2"),
        (const(-8, "int4"), "0x8"),
        (const(15, "uint4"), "0xf"),
    ],
)
def test_the_text_of_a_constant(constant: Const, text: str) -> None:
    assert literal(constant, C) == text


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (const(0.1, "float32"), "0.1f"),
        (const(float("-inf"), "float32"), "-__int_as_float(0x7f800000)"),
        (const(float("nan"), "float64"), "__longlong_as_double(0x7ff8000000000000)"),
        (const(-(1 << 63), "int64"), "(-9223372036854775807LL - 1)"),
        (const(-(1 << 31), "int32"), "(-2147483647 - 1)"),
        (const(1.5, "float16"), "0x3e00"),
    ],
)
def test_the_text_of_a_constant_in_cuda(constant: Const, text: str) -> None:
    assert literal(constant, CUDA) == text
