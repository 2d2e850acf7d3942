"""tir/reference/error_analysis.py: each element has the error that its own terms bring."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.tir.dtype import FLOAT64
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.definitions import definitions
from tilewright.tir.reference.error_analysis import (
    before_last_rounding,
    rounding_errors,
    summed_terms,
)
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.reference.evaluate import evaluate, evaluate_all
from tilewright.tir.reference.roundings import UNIT
from tilewright.tir.te import te

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def errors(func: PrimFunc, *arrays: Array, seen: float = 0.0) -> dict[str, Array]:
    values = evaluate_all(func, arrays, FLOAT64)
    found = rounding_errors(definitions(func), values, lambda buffer: seen)
    return {buffer.name: error for buffer, error in found.items()}


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def matmul(m: int, n: int, steps: int) -> PrimFunc:
    a = te.placeholder((m, steps), "float32", name="A")
    b = te.placeholder((steps, n), "float32", name="B")
    k = te.reduce_axis(steps, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="matmul")


def unary(make: object, n: int = 4096, kind: str = "float32") -> PrimFunc:
    x = te.placeholder((n,), kind, name="X")
    return te.func(x, te.compute((n,), lambda i: make(x[i]), name="Y"), name="unary")  # type: ignore[operator]


def test_a_sum_of_products_has_the_roundoff_of_its_terms() -> None:
    a, b = normal(7, 40), normal(40, 9, seed=1)
    found = errors(matmul(7, 9, 40), a, b)["C"]
    wanted = 2 * (np.abs(a).astype(np.float64) @ np.abs(b))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_an_inexact_factor_brings_its_own_error_along() -> None:
    x = te.placeholder((5, 30), "float32", name="X")
    w = te.placeholder((30, 4), "float32", name="W")
    k = te.reduce_axis(30, name="k")
    e = te.compute((5, 30), lambda i, j: te.exp(x[i, j]), name="E")
    y = te.compute((5, 4), lambda i, j: te.sum(e[i, k] * w[k, j], axis=k), name="Y")
    given = normal(5, 30), normal(30, 4, seed=1)
    found = errors(te.func(x, w, y, name="f"), *given)
    size = np.exp(given[0].astype(np.float64))
    wanted = (2 * size + found["E"]) @ np.abs(given[1]).astype(np.float64)
    np.testing.assert_allclose(found["Y"], wanted, rtol=1e-5)
    assert (found["E"] >= 2 * size).all()


def test_a_maximum_has_the_largest_error_of_its_operands_and_a_copy_none() -> None:
    x = te.placeholder((6, 50), "float32", name="X")
    k = te.reduce_axis(50, name="k")
    twice = te.compute((6, 50), lambda i, j: x[i, j] * 1.7, name="T")
    top = te.compute((6,), lambda i: te.max(twice[i, k], axis=k), name="top")
    copied = te.compute((6, 50), lambda i, j: x[i, 49 - j], name="copied")
    found = errors(te.func(x, top, copied, name="f"), normal(6, 50))
    np.testing.assert_allclose(found["top"], found["T"].max(axis=1))
    assert "copied" not in found


def test_what_has_no_rule_counts_as_far_off_as_the_sample_was() -> None:
    x = te.placeholder((6, 5), "float32", name="X")
    k = te.reduce_axis(5, name="k")
    y = te.compute((6,), lambda i: te.prod(x[i, k], axis=k), name="Y")
    func = te.func(x, y, name="f")
    np.testing.assert_array_equal(errors(func, normal(6, 5), seen=0.5)["Y"], 0.5 / UNIT)
    assert errors(func, normal(6, 5)) == {}


def test_the_last_rounding_of_a_storage_type_is_left_out() -> None:
    func = unary(lambda v: te.cast(v * 1.3, "bfloat16"))
    values = evaluate_all(func, [normal(4096)], FLOAT64)
    (definition,) = definitions(func)
    whole = rounding_errors([definition], values, lambda buffer: 0.0)[definition.target]
    inner = before_last_rounding(definition, values, {})
    assert inner is not None
    assert (whole > 1000 * inner).all()


def test_the_terms_of_all_sums_of_floats_are_counted() -> None:
    assert summed_terms(definitions(matmul(2, 3, 40))) == 40
    assert summed_terms(definitions(unary(te.exp))) == 0


# -- what the rule makes of it (error_bound.py)


def test_no_normal_result_of_an_exponential_may_be_flushed_to_zero() -> None:
    func, x = unary(lambda v: te.exp(v * 4.0)), normal(4096)
    expected = reference(func, [x])
    right = evaluate(func, [x])["Y"]
    assert expected.compare([right])
    (output,) = expected.outputs
    assert (output.allowed() < np.abs(output.value) / 1000).all()
    for at in np.argsort(right)[:5]:
        flushed = right.copy()
        flushed[at] = 0
        assert not expected.compare([flushed])


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_truncation_to_a_storage_type_is_refused(kind: str) -> None:
    func, x = unary(lambda v: te.cast(v * 1.7, kind)), normal(4096)
    type_ = np.dtype(getattr(ml_dtypes, kind, np.float16))
    wide = x * np.float32(1.7)
    assert reference(func, [x]).compare([wide.astype(type_)])
    down = np.nextafter(wide.astype(type_), type_.type(0))
    truncated = np.where(np.abs(wide.astype(type_)) > np.abs(wide), down, wide.astype(type_))
    verdict = reference(func, [x]).compare([truncated.astype(type_)])
    assert not verdict
    assert 1.5 < verdict.ratio <= 2


def long_sum(n: int) -> PrimFunc:
    x = te.placeholder((n,), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    return te.func(x, te.compute((1,), lambda i: te.sum(x[k], axis=k), name="Y"), name="total")


def test_a_chain_of_floats_that_loses_its_terms_is_refused_unless_the_build_is_strict() -> None:
    func, ones = long_sum((1 << 24) + (1 << 22)), np.ones((1 << 24) + (1 << 22), np.float32)
    chain = np.array([1 << 24], np.float32)  # adding 1 changes it no more
    assert not reference(func, [ones]).compare([chain])
    assert reference(func, [ones]).compare([np.array([ones.size], np.float32)])
    assert reference(func, [ones], strict=True).compare([chain])


def test_a_chain_of_a_million_positive_floats_passes() -> None:
    x = np.abs(normal(1_000_000))
    chain = np.add.accumulate(x)[-1:]
    assert reference(long_sum(x.size), [x]).compare([chain])


def test_the_bound_of_a_sum_of_wide_numbers_is_that_of_its_own_terms() -> None:
    a, b = np.ones((2, 40), np.float32), normal(40, 3, seed=1)
    a[0] *= 1e6
    a[1] *= 1e-6
    (output,) = reference(matmul(2, 3, 40), [a, b]).outputs
    large, small = output.allowed()
    assert (small < 1e-11 * large).all()


def test_a_value_beyond_its_type_on_the_way_says_nothing_of_the_result() -> None:
    func = unary(lambda v: 1.0 / (1.0 + (v * v) * (v * v)), 2)
    x = np.array([1e12, 2.0], np.float32)  # 1e48 is infinite in float32
    expected = reference(func, [x])
    for far in (0.0, 1e-48, 3.0, np.nan):
        assert expected.compare([np.array([far, 1 / 17], np.float32)])
    assert not expected.compare([np.array([0.0, 1 / 16], np.float32)])


def test_next_to_the_largest_number_infinity_is_right_too() -> None:
    func = unary(lambda v: v * 1.5, 1)
    x = np.array([np.finfo(np.float32).max / np.float32(1.5)], np.float32)
    for right in (np.finfo(np.float32).max, np.inf):
        assert reference(func, [x]).compare([np.array([right], np.float32)])
    assert not reference(func, [x]).compare([np.array([-np.inf], np.float32)])
