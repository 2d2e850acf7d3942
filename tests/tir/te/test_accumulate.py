"""tir/te/accumulate.py: the type of a sum or a product, and the refusal of one that may wrap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.expr import Expr
from tilewright.tir.reduce import Reduce
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_expr

A = te.placeholder((4, 300), "int8", name="A")
B = te.placeholder((300,), "int8", name="B")
U = te.placeholder((300,), "uint16", name="U")
H = te.placeholder((300,), "float16", name="H")
X = te.placeholder((300,), "float32", name="X")
K = te.reduce_axis(300, name="k")
SHORT = te.reduce_axis(3, name="s")

RNG = np.random.default_rng(0)
DATA = RNG.integers(-128, 128, (4, 300), np.int8)
WEIGHTS = RNG.integers(-128, 128, 300, np.int8)


def refusal(build: Callable[[], object]) -> str:
    with pytest.raises(IRError) as caught:
        build()
    return str(caught.value)


def bounded(low: int, high: int) -> Expr:
    """A number of int8 between two others."""
    return te.minimum(te.maximum(B[SHORT], low), high)


def test_a_sum_that_may_wrap_is_refused_with_both_ways_out() -> None:
    assert refusal(lambda: te.sum(A[0, K], axis=K)) == (
        "IRError: te.sum: 300 terms of type int8 are combined in int8, which wraps around outside "
        "of -128 .. 127; expected a type for the result. [te-wraps]\n"
        '  Hint: te.sum(..., dtype="int32") computes the terms and the result in int32.\n'
        '  Hint: te.sum(..., dtype="int8") wraps around on purpose.'
    )


@pytest.mark.parametrize(
    ("build", "wide"),
    [
        (lambda: te.sum(A[0, K] * B[K], axis=K), "int32"),
        (lambda: te.sum(U[K], axis=(K, te.reduce_axis(1 << 16))), "int64"),
        (lambda: te.prod(B[K], axis=K), "int64"),
        (lambda: te.sum(bounded(0, 32), axis=te.reduce_axis(4)), "int32"),  # 128
        (lambda: te.sum(bounded(-43, 0), axis=SHORT), "int32"),  # -129
        (lambda: te.prod(te.cast(SHORT, "int8") - 100, axis=SHORT), "int64"),
    ],
)
def test_the_type_that_is_named_holds_the_result(build: Callable[[], Reduce], wide: str) -> None:
    assert f'(..., dtype="{wide}") computes' in refusal(build)


@pytest.mark.parametrize(
    "build",
    [
        lambda: te.sum(te.select(A[0, SHORT] < 0, te.const(1, "int8"), 0), axis=SHORT),
        lambda: te.sum(te.minimum(te.maximum(B[SHORT], -40), 40), axis=SHORT),
        lambda: te.sum(B[K], axis=te.reduce_axis(1)),
        lambda: te.sum(bounded(-32, 0), axis=te.reduce_axis(4)),  # -128
        lambda: te.sum(bounded(0, 1), axis=te.reduce_axis(127)),
        lambda: te.prod(B[K], axis=te.reduce_axis(1)),
        lambda: te.prod(te.select(B[K] < 0, te.const(1, "int8"), -1), axis=K),
        lambda: te.max(B[K], axis=K),
    ],
)
def test_one_that_cannot_wrap_needs_no_type(build: Callable[[], Reduce]) -> None:
    assert str(build().dtype) == "int8"


def test_a_wider_type_is_that_of_the_products_too() -> None:
    c = te.compute((4,), lambda i: te.sum(A[i, K] * B[K], axis=K, dtype="int32"), name="C")
    found = evaluate(te.func(A, B, c, name="dots"), (DATA, WEIGHTS))["C"]
    np.testing.assert_array_equal(found, DATA.astype(np.int32) @ WEIGHTS.astype(np.int32))


def test_the_type_of_the_terms_wraps_as_asked_for() -> None:
    c = te.compute((4,), lambda i: te.sum(A[i, K] * B[K], axis=K, dtype="int8"), name="C")
    found = evaluate(te.func(A, B, c, name="dots"), (DATA, WEIGHTS))["C"]
    np.testing.assert_array_equal(found, DATA @ WEIGHTS)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (A[0, K] - 3, "int32", 'cast(A[0, k], "int32") - int32(3)'),
        (-B[K] // 2, "int16", '(int16(0) - cast(B[k], "int16")) // int16(2)'),
        (B[K] // 2, "float32", 'cast(B[k] // int8(2), "float32")'),
        (te.select(B[K] < 0, B[K], 1), "int64", 'select(B[k] < int8(0), cast(B[k], "int64"), 1)'),
        (B[K] >> 1, "int32", 'cast(B[k] >> int8(1), "int32")'),
        (B[K] < 0, "int32", 'cast(B[k] < int8(0), "int32")'),
        (H[K], "float32", 'cast(H[k], "float32")'),
        (te.exp(X[K]) / 2, "float64", 'cast(exp(X[k]), "float64") / float64(2.0)'),
    ],
)
def test_arithmetic_is_widened_and_what_is_below_is_converted(
    value: Expr, dtype: str, text: str
) -> None:
    (found,) = te.sum(value, axis=K, dtype=dtype).values
    assert (print_expr(found), str(found.dtype)) == (text, dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(te.cast(B[K], "int32"), "int8"), (B[K], "uint32"), (X[K], "int64"), (X[K] < 0, "bool")],
)
def test_a_type_that_does_not_hold_the_terms_is_refused(value: Expr, dtype: str) -> None:
    text = refusal(lambda: te.sum(value, axis=K, dtype=dtype))
    assert text == (
        f"IRError: te.sum: dtype is {dtype}, and the terms have type {value.dtype}; expected a "
        "number type that holds them. [te-accumulator]\n"
        f"  Hint: te.cast(x, '{dtype}') converts the terms first."
    )
