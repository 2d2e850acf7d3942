"""Quotients of integers are made by floats: the text, what stays, and every value."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.arithmetic.integer_quotients import IntegerQuotients
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

from ...conftest import Outputs, run_artifact

AVX2, AVX512 = Target.parse("c:avx2"), Target.parse("c:avx512")
BOTH = """
def f(A: {kind}[{count}], B: {kind}[{count}], Q: output({kind}[{count}]), \
R: output({kind}[{count}])):
    for i in vectorized({count}):
        Q[i] = A[i] // B[i]
        R[i] = A[i] % B[i]
"""
KINDS = ("int32", "int64")
CONSTANTS = (-1, -3, 3, 7, 10, 1000003, 2**31 - 1)


def pairs(kind: str = "int32", count: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of the ends of the range and of small numbers, products of such and what is next
    to them, and random ones of all sizes.
    """
    bits, info = np.iinfo(kind).bits, np.iinfo(kind)
    powers = [2**n + d for n in (16, bits // 2, bits - 3, bits - 2, bits - 1) for d in (-1, 0, 1)]
    listed = {
        n for n in (*range(-5, 6), *powers, *(-p for p in powers)) if info.min <= n <= info.max
    }
    ends = np.array(sorted(listed), kind)
    a, b = (grid.reshape(-1) for grid in np.meshgrid(ends, ends))
    rng = np.random.default_rng(0)
    drawn = rng.integers(info.min, info.max, (2, count), kind, endpoint=True)
    drawn >>= rng.integers(0, bits - 1, (2, count), kind)
    with np.errstate(all="ignore"):
        near = np.floor_divide(*drawn) * drawn[1] + rng.integers(-1, 2, count, kind)
    left = np.concatenate([a, drawn[0], near])
    return left, np.concatenate([b, drawn[1], drawn[1]])


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


def test_with_avx512_one_reciprocal_serves_two_steps() -> None:
    text = """
def f(A: int64[8], B: int64[8], C: output(int64[8])):
    for i in range(8):
        C[i] = A[i] % B[i]
"""
    made = str(IntegerQuotients(AVX512)(parse(text)))
    assert 'let(y, float64(1.0) / cast(select(b == 0, 1, b), "float64"), ' in made
    assert 'let(q, cast(min_any(round(cast(a, "float64") * y), ' in made
    assert "let(r, a - q * b, " in made
    assert 'let(p, cast(round(cast(r, "float64") * y), "int64"), let(s, r - p * b, ' in made
    assert "select(b == 0, 0, select(s != 0 and s ^ b < 0, s + b, s))" in made


STAY = {
    "a shift": ("c:avx512", "A[i] // int32(8)"),
    "a number of a loop": ("c:avx512", 'cast(i // 3, "int32")'),
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


@pytest.mark.parametrize(
    ("target", "kind"), [(AVX2, "int32"), *((AVX512, kind) for kind in KINDS)], ids=str
)
def test_each_quotient_and_rest_is_that_of_the_integers(target: Target, kind: str) -> None:
    a, b = pairs(kind, 1024)
    found = interpret(IntegerQuotients(target)(parse(BOTH.format(kind=kind, count=len(a)))), a, b)
    for got, expected in zip(found, quotients(a, b), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("divisor", CONSTANTS)
def test_compiled_quotients_by_numbers_are_those_of_the_integers(
    divisor: int, kind: str, target: Target
) -> None:
    a, _ = pairs(kind)
    text = BOTH.format(kind=kind, count=len(a))
    one = divisor if kind == "int64" else f"int32({divisor})"
    artifact = build_artifact(parse(text.replace("B[i]", str(one))), target)
    wanted = quotients(a, np.full_like(a, divisor))
    for got, expected in zip(run_artifact(artifact, {"A": a, "B": a}), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_quotients_are_those_of_the_integers(target: Target, kind: str) -> None:
    a, b = pairs(kind, 1 << 18)
    artifact = build_artifact(parse(BOTH.format(kind=kind, count=len(a))), target)
    is_divided = target.isa == "scalar" or (target.isa == "avx2" and kind == "int64")
    assert ("tw_floordiv(" in artifact.source) == is_divided
    for got, expected in zip(
        run_artifact(artifact, {"A": a, "B": b}), quotients(a, b), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
