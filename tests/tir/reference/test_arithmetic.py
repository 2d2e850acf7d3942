"""tir/reference/arithmetic.py: what NumPy lacks, against exact rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.dtype import BOOL, FLOAT32, INT32, dtype
from tilewright.tir.number import integer_range
from tilewright.tir.reference import arithmetic

FLOATS32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
FLOATS64 = st.floats(allow_nan=False, allow_infinity=False)


def rounded_once_to_float32(exact: Fraction) -> np.float32:
    """Round to nearest, ties to even, by comparing exact distances to the two neighbours."""
    with np.errstate(over="ignore"):
        near = np.float32(float(exact))
    around = {near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))}
    finite = [x for x in around if np.isfinite(x)]
    distance = {x: abs(Fraction(float(x)) - exact) for x in finite}
    least = min(distance.values())
    best = [x for x in finite if distance[x] == least]
    return min(best, key=lambda x: int(x.view(np.int32)) & 1)


@given(FLOATS32, FLOATS32, FLOATS32)
def test_fma_of_float32_rounds_the_exact_value_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0 or abs(exact) >= Fraction(float(np.finfo(np.float32).max)):
        return
    with np.errstate(all="ignore"):
        result = arithmetic.fma32(np.float32(a), np.float32(b), np.float32(c))
    assert result == rounded_once_to_float32(exact)


def test_fma_of_float32_avoids_double_rounding() -> None:
    a = np.float32(1 + 2**-12)  # a*a is a tie of two float32 values, as seen from float64
    c = np.float32(2**-60)
    assert arithmetic.fma32(a, a, c) == np.float32(1 + 2**-11 + 2**-23)
    assert np.float32(float(a) * float(a) + float(c)) == np.float32(1 + 2**-11)


@given(FLOATS64, FLOATS64, FLOATS64)
def test_fma_of_float64_rounds_the_exact_value_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    with np.errstate(all="ignore"):
        result = arithmetic.fma64(np.float64(a), np.float64(b), np.float64(c))
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    assert float(result) == expected


@pytest.mark.parametrize("fma", [arithmetic.fma32, arithmetic.fma64])
def test_fma_keeps_infinities_nan_and_the_sign_of_zero(fma: object) -> None:
    kind = np.float32 if fma is arithmetic.fma32 else np.float64
    inf, zero, one = kind(np.inf), kind(0.0), kind(1.0)
    with np.errstate(all="ignore"):
        assert fma(inf, one, one) == inf
        assert np.isnan(fma(inf, zero, one))
        assert np.isnan(fma(inf, one, -inf))
        assert fma(np.finfo(kind).max, kind(-2.0), inf) == inf
        assert np.isnan(fma(one, one, kind(np.nan)))
        assert not np.signbit(fma(one, one, -one))
        assert np.signbit(fma(-one, zero, -zero))


def test_fma_of_vectors_is_that_of_their_lanes() -> None:
    rng = np.random.default_rng(0)
    for kind, single in ((np.float32, arithmetic.fma32), (np.float64, arithmetic.fma64)):
        a, b, c = (rng.standard_normal(16).astype(kind) for _ in range(3))
        lanes = [single(*items) for items in zip(a, b, c, strict=True)]
        assert np.array_equal(arithmetic.fma_vector(a, b, c), np.array(lanes, dtype=kind))


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_become_integers_by_truncation_and_the_nearest_end_outside(
    kind: str, source: str
) -> None:
    low, high = integer_range(dtype(kind))
    ends = [float(low), float(high), float(high) + 1, low - 0.75, low - 1.0, high + 0.5]
    values = np.array([2.9, -2.9, -0.5, *ends, 1e30, -1e30, np.inf, -np.inf, np.nan], source)
    around = np.nextafter(values, np.array([[-np.inf], [np.inf]], source)).reshape(-1)
    values = np.concatenate([values, around])
    expected = [
        0
        if math.isnan(v)
        else min(max(int(v) if math.isfinite(v) else int(v > 0) * 2**99 - 2**98, low), high)
        for v in values
    ]
    assert [arithmetic.float_to_integer(v, low, high) for v in values] == expected
    with np.errstate(all="ignore"):
        assert arithmetic.convert_array(values, np.dtype(kind)).tolist() == expected


def test_shifts_of_numbers_wrap_around_and_know_counts_beyond_the_width() -> None:
    low, high = integer_range(dtype("int8"))
    assert [arithmetic.shift_left(3, n, low, high) for n in (0, 5, 6, 7, 8, -1)] == [
        *(3, 96, -64, -128, 0, 0)
    ]
    assert [arithmetic.shift_right(-9, n, 8) for n in (0, 1, 7, 8, -1)] == [-9, -5, -1, -1, -1]
    assert [arithmetic.shift_right(9, n, 8) for n in (0, 3, 4, 8, -1)] == [9, 1, 0, 0, 0]


def test_vectors_convert_as_scalars_do() -> None:
    values = np.array([300, -1, 0, 128], dtype=np.int32)
    assert arithmetic.convert_array(values, np.dtype("int8")).tolist() == [44, -1, 0, -128]
    assert arithmetic.convert_array(values, np.dtype(bool)).tolist() == [True, True, False, True]
    assert arithmetic.convert_array(np.array([np.nan]), np.dtype(bool)).tolist() == [True]
    assert arithmetic.convert_array(values, np.dtype("f8")).dtype == np.float64


def test_vector_division_rounds_down_and_fails_only_in_lanes_that_are_on() -> None:
    a, b = np.array([7, -7, 7, 1]), np.array([2, 2, -2, 0])
    on = np.array([True, True, True, False])
    assert list(arithmetic.divide_vectors(a, b, on, False)[:3]) == [3, -4, -4]
    assert list(arithmetic.divide_vectors(a, b, on, True)[:3]) == [1, 1, -1]
    with pytest.raises(ZeroDivisionError):
        arithmetic.divide_vectors(a, b, None, False)


def test_smaller_and_larger_propagate_nan_from_either_side() -> None:
    nan, one = np.float32(np.nan), np.float32(1)
    for pick in (arithmetic.smaller, arithmetic.larger):
        assert np.isnan(pick(nan, one))
        assert np.isnan(pick(one, nan))
    assert arithmetic.smaller(one, -one) == -1
    assert arithmetic.larger(one, -one) == 1


def test_gather_and_scatter_touch_only_the_lanes_that_are_on() -> None:
    data = np.arange(5.0)
    on = np.array([True, False, True])
    beyond = np.array([4, 99, 0])
    assert list(arithmetic.gather(data, beyond, on, -1.0)) == [4, -1, 0]
    arithmetic.scatter(data, beyond, np.array([7.0, 8.0, 9.0]), on)
    assert list(data) == [9, 1, 2, 3, 7]
    with pytest.raises(IndexError):
        arithmetic.gather_row(data, 3, 3)
    with pytest.raises(IndexError):
        arithmetic.scatter_row(data, -1, np.zeros(2))


def test_fresh_storage_holds_what_nobody_should_use() -> None:
    assert np.isnan(arithmetic.poisoned((2,), FLOAT32)).all()
    assert list(arithmetic.poisoned((2,), INT32)) == [-(2**31)] * 2
    assert list(arithmetic.poisoned((1,), BOOL)) == [True]
