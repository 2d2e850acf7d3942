"""graph/kernels/codes.py: codes are ordered as elements are, and give back where these stood."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.kernels.codes import (
    BEHIND,
    PLACE_BITS,
    code,
    marked,
    negated,
    number_of,
    place_of,
    words,
)
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te

RNG = np.random.default_rng(0)
NAN, INF = np.nan, np.inf
FLOATS = [NAN, -NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 3e38, -3e38, 0.1, 65504.0]
INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
KINDS = ["float32", "float64", *INTEGERS]
LOW = 7


def sample(kind: str) -> np.ndarray:
    """Ends of the type, what is special of floats, and others, some of them twice."""
    if kind.startswith("float"):
        listed = np.array(FLOATS, kind)
        return np.concatenate([listed, RNG.standard_normal(40).astype(kind), listed])
    info = np.iinfo(kind)
    ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, info.max // 2, info.max // 3]
    listed = np.array(ends, kind)
    drawn = RNG.integers(info.min, info.max, 40, kind, endpoint=True)
    return np.concatenate([listed, drawn, listed])


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_words_are_ordered_as_elements_are(kind: str, largest: bool) -> None:
    values = sample(kind)
    x = te.placeholder(values.shape, kind, name="x")
    count = 2 if values.itemsize == 8 else 1
    names = tuple(f"w{n}" for n in range(count))
    made = te.compute(values.shape, lambda i: words(x[i], largest=largest), name=names)
    found = interpret(te.func(x, *made, name="f"), values, checked=True)
    assert len(found) == count
    order = np.lexsort([np.arange(values.size), *reversed(found)])
    if largest:
        expected = values.size - 1 - np.argsort(values[::-1], kind="stable")[::-1]
    else:
        expected = np.argsort(values, kind="stable")
    np.testing.assert_array_equal(order, expected)


def test_codes_are_positive_and_give_back_place_and_number() -> None:
    word = np.array([-(2**31), -1, 0, 1, 2**31 - 1], np.int32)
    place = np.array([0, 1, 2**20, 2 ** (PLACE_BITS - LOW) - 1, 5], np.int32)
    number = np.array([0, 1, 127, 3, 64], np.int32)
    w, p, n = (te.placeholder((5,), "int32", name=name) for name in "wpn")
    codes = te.compute((5,), lambda i: code(w[i], p[i], LOW), name="codes")
    both = te.compute((5,), lambda i: marked(codes[i], n[i]), name="both")
    turned = te.compute((5,), lambda i: negated(codes[i], n[i] & 1), name="turned")
    places = te.compute((5,), lambda i: place_of(both[i], LOW), name="places")
    numbers = te.compute((5,), lambda i: number_of(both[i], LOW), name="numbers")
    func = te.func(w, p, n, codes, turned, places, numbers, name="f")
    made, other, at, beside = interpret(func, word, place, number, checked=True)
    assert np.all(np.diff(made) > 0)
    assert np.all(np.isfinite(made))
    assert made.min() >= np.finfo(np.float64).tiny
    assert made.max() < BEHIND.value
    np.testing.assert_array_equal(other, np.where(number & 1, -made, made))
    np.testing.assert_array_equal(at, place)
    np.testing.assert_array_equal(beside, number)


def test_equal_elements_are_ordered_by_their_places() -> None:
    place = RNG.permutation(1000).astype(np.int32)
    p = te.placeholder((1000,), "int32", name="p")
    codes = te.compute((1000,), lambda i: code(te.const(-5, "int32"), p[i], LOW), name="codes")
    (made,) = interpret(te.func(p, codes, name="f"), place, checked=True)
    np.testing.assert_array_equal(np.argsort(made), np.argsort(place))
