"""Quotients of int32 are made by floats of 64 bits: the text, what stays, and every value."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.arithmetic.integer_quotients import IntegerQuotients
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

from ...conftest import Outputs, run_artifact

AVX2 = Target.parse("c:avx2")
BOTH = """
def f(A: int32[{count}], B: int32[{count}], Q: output(int32[{count}]), R: output(int32[{count}])):
    for i in vectorized({count}):
        Q[i] = A[i] // B[i]
        R[i] = A[i] % B[i]
"""
ENDS = np.array(
    [
        *range(-5, 6),
        *(sign * (2**n + d) for n in (16, 29, 30, 31) for d in (-1, 0, 1) for sign in (1, -1)),
    ]
)


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Every pair of the ends of the range and of small numbers, and random ones of all sizes."""
    ends = np.unique(np.clip(ENDS, -(2**31), 2**31 - 1)).astype(np.int32)
    a, b = (grid.reshape(-1) for grid in np.meshgrid(ends, ends))
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 31, (2, 4096))
    drawn = rng.integers(-(2**31), 2**31, (2, 4096)) >> sizes
    return np.concatenate([a, drawn[0]]).astype(np.int32), np.concatenate([b, drawn[1]]).astype(
        np.int32
    )


def test_a_quotient_is_a_rounded_one_of_floats() -> None:
    text = """
def f(A: int32[8], B: int32[8], C: output(int32[8])):
    for i in range(8):
        C[i] = A[i] // B[i]
"""
    divisor = 'cast(select(b == int32(0) or b == int32(-1), int32(1), b), "float64")'
    floor = f'cast(floor(cast(a, "float64") / {divisor}), "int32")'
    chosen = f"select(b == int32(-1), int32(0) - a, {floor})"
    whole = f"let(a, A[i], let(b, B[i], select(b == int32(0), int32(0), {chosen})))"
    assert f"C[i] = {whole}" in str(IntegerQuotients(AVX2)(parse(text)))


STAY = {
    "a constant divisor": ("c:avx2", "A[i] // int32(3)"),
    "a wider type": ("c:avx2", 'cast(cast(A[i], "int64") // cast(B[i], "int64"), "int32")'),
    "an index": ("c:avx2", "A[i // 2]"),
    "an index that data decide": ("c:avx2", 'A[min(max(cast(B[i] % A[i], "int64"), 0), 7)]'),
    "no vectors": ("c:scalar", "A[i] // B[i]"),
}


@pytest.mark.parametrize(("target", "value"), STAY.values(), ids=STAY)
def test_other_quotients_stay_as_they_are(target: str, value: str) -> None:
    text = f"""
def f(A: int32[8], B: int32[8], C: output(int32[8])):
    for i in range(8):
        C[i] = {value}
"""
    func = parse(text)
    assert IntegerQuotients(Target.parse(target))(func) is func


def quotients(a: np.ndarray, b: np.ndarray) -> Outputs:
    """Those of NumPy, which are 0 for a divisor of 0, and wrap around."""
    with np.errstate(all="ignore"):
        return np.floor_divide(a, b), np.remainder(a, b)


def test_each_quotient_and_rest_is_that_of_the_integers() -> None:
    a, b = pairs()
    found = interpret(IntegerQuotients(AVX2)(parse(BOTH.format(count=len(a)))), a, b)
    for got, expected in zip(found, quotients(a, b), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.needs_cc
def test_compiled_quotients_are_those_of_the_integers(target: Target) -> None:
    a, b = pairs()
    artifact = build_artifact(parse(BOTH.format(count=len(a))), target)
    assert ("tw_floordiv(" in artifact.source) == (target.isa == "scalar")
    for got, expected in zip(
        run_artifact(artifact, {"A": a, "B": b}), quotients(a, b), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
