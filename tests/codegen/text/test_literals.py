"""Constants in C keep their bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.codegen.text.literals import c_type, float_literal, literal
from tilewright.tir.dtype import FLOAT32, FLOAT64, dtype
from tilewright.tir.expr import Const, const


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_read_back_with_its_bits(value: float) -> None:
    text = float_literal(value, FLOAT32)
    assert text.endswith("f")
    assert np.float32(text[:-1]).tobytes() == np.float32(value).tobytes()
    assert "." in text or "e" in text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_with_its_bits(value: float) -> None:
    assert np.float64(float_literal(value, FLOAT64)).tobytes() == np.float64(value).tobytes()


STORED = [
    ("float16", "uint16_t"),
    ("bfloat16", "uint16_t"),
    ("float8_e5m2", "uint8_t"),
    ("int4", "uint8_t"),
]


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
        (const(-8, "int4"), "0x8"),
        (const(15, "uint4"), "0xf"),
    ],
)
def test_the_text_of_a_constant(constant: Const, text: str) -> None:
    assert literal(constant) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [("float32", "float"), ("float64", "double"), ("bool", "uint8_t"), ("int8", "int8_t"), *STORED],
)
def test_the_type_of_an_element(name: str, text: str) -> None:
    assert c_type(dtype(name)) == text
