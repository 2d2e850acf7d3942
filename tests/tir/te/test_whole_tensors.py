"""tir/te/whole_tensors.py: what to write for an operator on whole tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.errors import IRTypeError
from tilewright.tir.te import te

A = te.placeholder((4, 8), "float32", name="A")
B = te.placeholder((4, 8), "float32", name="B")
ROW = te.placeholder((8,), "float32", name="R")
COLUMN = te.placeholder((4, 1), "float32", name="L")
W = te.placeholder((8, 3), "float32", name="W")
STACK = te.placeholder((5, 4, 8), "float32", name="S")
N = te.dim("n", 1, 16)
BATCH = te.placeholder((N, 8), "float32", name="X")
SCALAR = te.placeholder((), "float32", name="c")

CALLS: dict[Callable[[], object], str] = {
    lambda: A + B: "(4, 8), lambda i, j: A[i, j] + B[i, j]",
    lambda: A - ROW: "(4, 8), lambda i, j: A[i, j] - R[j]",
    lambda: COLUMN * A: "(4, 8), lambda i, j: L[i, 0] * A[i, j]",
    lambda: 2 * A: "(4, 8), lambda i, j: 2 * A[i, j]",
    lambda: np.float32(2) * ROW: "(8,), lambda i: 2.0 * R[i]",
    lambda: np.ones(8) * ROW: "(8,), lambda i: x * R[i]",
    lambda: STACK / A: "(5, 4, 8), lambda i, j, l: S[i, j, l] / A[j, l]",
    lambda: BATCH + ROW: "(n, 8), lambda i, j: X[i, j] + R[j]",
    lambda: SCALAR + SCALAR: "(), lambda: c[()] + c[()]",
    lambda: A < B: "(4, 8), lambda i, j: A[i, j] < B[i, j]",
    lambda: A @ W: "(4, 3), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k)",
    lambda: STACK @ W: "(5, 4, 3), lambda i, j, l: te.sum(S[i, j, k] * W[k, l], axis=k)",
    lambda: np.exp(A): "(4, 8), lambda i, j: te.exp(A[i, j])",
    lambda: np.sin(BATCH): "(n, 8), lambda i, j: te.sin(X[i, j])",
}


def refusal(build: Callable[[], object]) -> str:
    with pytest.raises(IRTypeError) as caught:
        build()
    return str(caught.value)


@pytest.mark.parametrize(("build", "call"), CALLS.items(), ids=CALLS.values())
def test_the_hint_is_the_call(build: Callable[[], object], call: str) -> None:
    hint = f'te.compute({call}, name="C")'
    assert refusal(build).endswith(f"  Hint: {hint}")
    k = te.reduce_axis(8, name="k")
    names = {"A": A, "R": ROW, "L": COLUMN, "S": STACK, "X": BATCH, "c": SCALAR, "B": B, "W": W}
    made = eval(hint, {"te": te, "k": k, "n": N, "x": 1.0, **names})
    assert isinstance(made, te.Tensor)


def test_a_tensor_is_named_and_so_is_the_reduction_axis() -> None:
    assert refusal(lambda: A @ W) == (
        "IRTypeError: te: tensors 'A' and 'W' stand where numbers are expected; expected elements. "
        "[te-tensor-operand]\n"
        '  Hint: k = te.reduce_axis(8, name="k")\n'
        '  Hint: te.compute((4, 3), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k), name="C")'
    )
    assert refusal(lambda: np.tanh(A)).startswith(
        "IRTypeError: numpy.tanh: tensor 'A' stands where numbers are expected; it has none until "
        "a kernel runs. [te-tensor-function]"
    )


@pytest.mark.parametrize(
    ("build", "hint"),
    [
        (lambda: A + W, "shapes (4, 8) and (8, 3) do not broadcast: name the elements that belong"),
        (
            lambda: A @ B,
            "shapes (4, 8) and (4, 8) are no product of matrices: expected [..., m, k]",
        ),
        (lambda: ROW @ W, "shapes (8,) and (8, 3) are no product of matrices"),
    ],
)
def test_shapes_that_do_not_fit_are_named(build: Callable[[], object], hint: str) -> None:
    assert f"  Hint: {hint}" in refusal(build)
