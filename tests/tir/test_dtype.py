"""tir/dtype.py: names, NumPy's types, lanes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.dtype import BOOL, FLOAT32, INT64, NAMES, DType, TypeKind, dtype
from tilewright.tir.errors import IRError


@pytest.mark.parametrize("name", NAMES)
def test_a_name_and_its_numpy_type_give_one_dtype(name: str) -> None:
    kind = dtype(name)
    assert str(kind) == name
    assert dtype(kind) is kind
    assert dtype(kind.numpy) is kind
    assert dtype(kind.numpy.type) is kind
    assert kind.bytes == kind.numpy.itemsize


def test_each_type_is_a_float_an_integer_or_a_bool() -> None:
    for name in NAMES:
        kind = dtype(name)
        assert [kind.is_float, kind.is_integer, kind.is_bool].count(True) == 1
    assert FLOAT32.is_float
    assert INT64.is_integer
    assert dtype("uint8").is_integer
    assert BOOL.is_bool


def test_storage_types_are_those_without_arithmetic() -> None:
    assert [name for name in NAMES if dtype(name).is_storage] == [
        *("int4", "int2", "uint4", "uint2", "float16", "bfloat16", "float8_e4m3fn"),
        *("float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn"),
    ]
    assert dtype("float16x8").is_storage
    assert not dtype("int8x16").is_storage


def test_what_is_smaller_takes_a_byte() -> None:
    assert (dtype("int4").bits, dtype("int4").bytes) == (4, 1)
    assert (dtype("uint2").bits, dtype("uint2").bytes) == (2, 1)
    assert (dtype("float4_e2m1fn").bits, dtype("float4_e2m1fn").bytes) == (4, 1)
    assert str(dtype("uint4x32")) == "uint4x32"
    assert str(dtype("float8_e5m2x4")) == "float8_e5m2x4"


def test_lanes_are_a_suffix_and_the_scalar_is_one_lane() -> None:
    vector = dtype("float32x16")
    assert vector == DType(TypeKind.FLOAT, 32, 16)
    assert str(vector) == "float32x16"
    assert vector.scalar == FLOAT32
    assert vector.bytes == 4
    assert vector.numpy == np.float32
    assert FLOAT32.with_lanes(16) == vector
    assert FLOAT32.scalar is FLOAT32
    assert str(dtype("boolx8")) == "boolx8"


def test_an_unknown_type_is_refused_with_those_that_exist() -> None:
    with pytest.raises(IRError) as refusal:
        dtype("float31")
    assert str(refusal.value) == (
        "IRError: dtype: unknown type 'float31'; expected one of 'float32', 'float16', "
        "'bfloat16', 'bool', 'int8', 'int16', 'int32', 'int64', 'int4', 'int2', 'uint8', "
        "'uint16', 'uint32', 'uint64', 'uint4', 'uint2', 'float64', 'float8_e4m3fn', "
        "'float8_e5m2', 'float8_e4m3fnuz', 'float8_e5m2fnuz', 'float4_e2m1fn'. [dtype-unknown]"
    )


@pytest.mark.parametrize("text", ["int32y", "complex64", "float32x", "", "uint3", "float8"])
def test_what_is_not_a_type_is_refused(text: str) -> None:
    with pytest.raises(IRError, match=r"\[dtype-unknown\]"):
        dtype(text)
