"""tir/numpy_calls.py: NumPy's functions of expressions are ours, or are answered with ours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.errors import IRError, IRTypeError
from tilewright.tir.expr import Expr
from tilewright.tir.te import te

A = te.placeholder((4,), "float32", name="A")
X = A[0]
N = te.placeholder((4,), "int32", name="I")[0]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lambda: np.exp(X), lambda: te.exp(X)),
        (lambda: np.log1p(X), lambda: te.log1p(X)),
        (lambda: np.rint(X), lambda: te.round(X)),
        (lambda: np.abs(X), lambda: te.abs(X)),
        (lambda: np.power(X, 2.0), lambda: X**2.0),
        (lambda: np.float32(2) * X, lambda: 2 * X),
        (lambda: X - np.float64(0.5), lambda: X - 0.5),
        (lambda: np.int64(3) < N, lambda: N > 3),
        (lambda: np.multiply(X, X), lambda: X * X),
        (lambda: np.greater(X, X), lambda: X > X),
        (lambda: np.greater_equal(X, X), lambda: X >= X),
        (lambda: np.left_shift(N, 2), lambda: N << 2),
        (lambda: np.right_shift(N, 2), lambda: N >> 2),
    ],
)
def test_a_function_that_we_have_is_ours(
    theirs: Callable[[], Expr], ours: Callable[[], Expr]
) -> None:
    assert theirs() == ours()


def refusal(build: Callable[[], object], kind: type[IRError] = IRTypeError) -> str:
    with pytest.raises(kind) as caught:
        build()
    return str(caught.value)


def test_others_are_answered_with_their_name() -> None:
    assert refusal(lambda: np.sign(X)) == (
        "IRTypeError: numpy.sign: an operand is an expression, which is computed when a kernel "
        "runs; expected a function of te. [expr-numpy]\n"
        "  Hint: te.sign(a); dir(te) lists all functions."
    )
    assert "Hint: te.eq(a, b);" in refusal(lambda: np.equal(X, X))
    assert "[expr-numpy]" in refusal(lambda: np.exp(X, out=np.empty(4)))
    assert "[expr-numpy]" in refusal(lambda: np.multiply.outer(X, X))


def test_an_array_is_no_operand() -> None:
    assert refusal(lambda: np.arange(3) * X) == (
        "IRTypeError: numpy.multiply: an operand is an array of shape (3,); expected an expression "
        "or a number. [expr-array]\n"
        "  Hint: te.placeholder(shape, dtype, name=..., constant=True) stands for an array that is "
        "bound when the kernel is built."
    )


def test_the_type_of_an_operand_is_checked() -> None:
    assert "te.exp: the argument has type int32" in refusal(lambda: np.exp(N), IRError)
