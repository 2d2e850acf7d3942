"""Floats of a few bits are made by a disjunction: the text, what stays, and every value."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.arithmetic.masked_floats import MaskedFloats
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse

TEXT = """
def f(A: int32[{n}], B: uint8[{n}], C: output(float32[{n}])):
    for i in range({n}):
        C[i] = {value}
"""
LEVEL = 'cast(A[i] >> int32(4) & int32(15), "float32")'
FLOAT = 'reinterpret(A[i] >> int32(4) & int32(15) | int32(1258291200), "float32")'
MADE = {
    LEVEL: f"{FLOAT} - 8388608.0",
    f"{LEVEL} - 8.0": f"{FLOAT} - 8388616.0",
    f"{LEVEL} - -8.0": f"{FLOAT} - 8388600.0",
    f'{LEVEL} - cast(B[i], "float32")': (
        f'{FLOAT} - reinterpret(cast(B[i], "int32") | int32(1258291200), "float32")'
    ),
    f'{LEVEL} - cast(A[i] & int32(255), "float32")': (
        f'{FLOAT} - reinterpret(A[i] & int32(255) | int32(1258291200), "float32")'
    ),
    'cast(cast(A[i] & int32(255), "bfloat16"), "float32")': (
        'reinterpret(A[i] & int32(255) | int32(1258291200), "float32") - 8388608.0'
    ),
    f"{LEVEL} - 4194305.0": f"{FLOAT} - 8388608.0 - 4194305.0",
    f"{LEVEL} - 0.5": f"{FLOAT} - 8388608.0 - 0.5",
    f"{LEVEL} * {LEVEL}": f"({FLOAT} - 8388608.0) * ({FLOAT} - 8388608.0)",
}


@pytest.mark.parametrize("value", MADE)
def test_a_conjunction_becomes_the_mantissa_of_a_float(value: str) -> None:
    before, after = (parse(TEXT.format(n=8, value=one)) for one in (value, MADE[value]))
    assert str(MaskedFloats()(before)) == str(after)


STAY = {
    "bits beyond the mantissa": 'cast(A[i] & int32(8388608), "float32")',
    "a mask with the sign": 'cast(A[i] & int32(-16), "float32")',
    "a mask that is no constant": 'cast(A[i] & A[0], "float32")',
    "no mask": 'cast(A[i] >> int32(28), "float32")',
    "a byte alone": 'cast(B[i], "float32")',
    "more than float16 holds": 'cast(cast(A[i] & int32(4095), "float16"), "float32")',
    "more than bfloat16 holds": 'cast(cast(A[i] & int32(511), "bfloat16"), "float32")',
    "a wider float": 'cast(cast(A[i] & int32(15), "float64"), "float32")',
}


@pytest.mark.parametrize("what", STAY)
def test_what_no_conjunction_bounds_stays(what: str) -> None:
    func = parse(TEXT.format(n=8, value=STAY[what]))
    assert MaskedFloats()(func) is func


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_every_number_that_a_narrow_float_holds_is_the_same(kind: str) -> None:
    mask = {"float16": 2047, "bfloat16": 255}[kind]
    value = f'cast(cast(A[i] & int32({mask}), "{kind}"), "float32") - cast(B[i], "float32")'
    func = parse(TEXT.format(n=2048, value=value))
    a, b = np.arange(2048, dtype=np.int32), np.arange(2048).astype(np.uint8)
    (wanted,), (found,) = interpret(func, a, b), interpret(MaskedFloats()(func), a, b)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("mask", [15, (1 << 23) - 1])
@pytest.mark.parametrize(
    "other", ["", " - 4194304.0", " - -4194304.0", ' - cast(B[i], "float32")', " - 8.0"]
)
def test_every_value_is_the_same(mask: int, other: str) -> None:
    ends = [0, 1, 7, 8, 15, 16, 255, (1 << 22) - 1, 1 << 22, (1 << 23) - 1, 1 << 23, -1, -(1 << 31)]
    drawn = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, 499)
    a = np.array([*ends, *drawn], np.int32)
    b = (np.arange(len(a)) * 37).astype(np.uint8)
    value = f'cast(A[i] & int32({mask}), "float32"){other}'
    func = parse(TEXT.format(n=len(a), value=value))
    (wanted,), (found,) = interpret(func, a, b), interpret(MaskedFloats()(func), a, b)
    assert found.tobytes() == wanted.tobytes()
