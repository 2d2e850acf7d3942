"""tir/te/dims.py: where the language takes sizes that a call decides; refusals with their text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_expr
from tilewright.tir.verify.verify import Stage, verify

n = te.dim("n", 1, 40)
m = te.dim("m", np.int64(2), 8)  # type: ignore[arg-type]
A = te.placeholder((n, 4), "float32", name="A")
S = te.state((40, 4), "float32", name="S")
J = te.placeholder((4,), "int64", name="J")
J4 = te.placeholder((4,), "float32", name="table")


def rows() -> PrimFunc:
    b = te.compute((n, 4), lambda i, j: A[n - 1 - i, j] / te.cast(n, "float32"), name="B")
    return te.func(A, b, name="rows")


def test_a_dim_stands_in_shapes_and_in_expressions() -> None:
    func = rows()
    verify(func, Stage.TENSOR)
    assert str(func) == (
        "def rows(n: dim(1, 40), A: float32[n, 4], B: output(float32[n, 4])):\n"
        "    for i in range(40):\n"
        "        for j in range(4):\n"
        '            with block("B", vi=spatial(n, i), vj=spatial(4, j)):\n'
        '                B[vi, vj] = A[n - 1 - vi, vj] / cast(n, "float32")'
    )
    assert str(parse(str(func))) == str(func)
    assert repr(A) == "Tensor A: float32[n, 4]"
    assert repr(m) == "Dim m: 2 .. 8"
    for count in (1, 7, 40):
        a = np.arange(count * 4, dtype=np.float32).reshape(count, 4)
        (found,) = interpret(func, a, checked=True)
        np.testing.assert_array_equal(found, a[::-1] / np.float32(count))


def test_a_dim_ends_any_axis_and_a_reduction() -> None:
    x = te.placeholder((m, n), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    assert repr(k) == "ReduceAxis k: 0 .. n - 1"
    y = te.compute((m,), lambda i: te.sum(x[i, k], axis=k, where=k >= i), name="Y")
    func = te.func(x, y, name="sums")
    verify(func, Stage.TENSOR)
    assert str(func) == (
        "def sums(m: dim(2, 8), n: dim(1, 40), X: float32[m, n], Y: output(float32[m])):\n"
        "    for i in range(8):\n"
        "        for k in range(40):\n"
        '            with block("Y", vi=spatial(m, i), vk=reduce(40, k)):\n'
        "                counts(vk < n and vi <= vk)\n"
        "                with init():\n"
        "                    Y[vi] = 0.0\n"
        "                Y[vi] = Y[vi] + X[vi, vk]"
    )
    assert str(parse(str(func))) == str(func)
    for shape in ((2, 1), (3, 40), (8, 7)):
        a = np.arange(1, 1 + shape[0] * shape[1], dtype=np.float32).reshape(shape)
        (found,) = interpret(func, a, checked=True)
        np.testing.assert_array_equal(found, [row[i:].sum() for i, row in enumerate(a)])


def test_a_check_of_indices_speaks_of_the_rows_that_there_are() -> None:
    at = te.placeholder((n,), "int64", name="at")
    y = te.compute((n,), lambda i: J[te.checked(at[i], 4)], name="y")
    func = te.func(at, J, y, name="pick")
    given = np.array([3, 0, 9], np.int64)
    table = np.array([1, 2, 3, 4], np.int64)
    _, worst = interpret(func, given, table, checked=True)
    assert worst == 9
    (found, worst) = interpret(func, given[:2], table, checked=True)
    assert found.tolist() == [4, 1]
    assert worst == 3


REFUSALS: dict[Callable[[], object], str] = {
    lambda: te.dim("n", 4, 3): (
        "IRError: te.dim: the bounds of 'n' are 4 and 3; expected integers 0 <= low <= high < "
        "2147483648. [te-dim-bounds]\n"
        '  Hint: te.dim("n", 1, 2048): every size of 1 .. 2048.'
    ),
    lambda: te.dim("n", 0.5, 3): (  # type: ignore[arg-type]
        "IRError: te.dim: the bounds of 'n' are 0.5 and 3; expected integers 0 <= low <= high < "
        "2147483648. [te-dim-bounds]\n"
        '  Hint: te.dim("n", 1, 2048): every size of 1 .. 2048.'
    ),
    lambda: te.placeholder((n, 4), "float32", name="B", constant=True): (
        "IRError: te.placeholder: 'B' is a constant of size 'n', which a call decides; expected "
        "numbers: a constant is bound when a kernel is built. [te-dim-constant]\n"
        "  Hint: te.placeholder(..., name='B') makes it an input of the call."
    ),
    lambda: te.compute((4,), lambda i: A[te.clamp_index(J[i], 2), 0], name="B"): (
        "IRError: te.compute: 'B' reads dimension 0 of 'A' at max(min(J[i], 1), 0), which is data; "
        "expected it checked, or clamped to 0 .. n-1. [te-index-data]\n"
        "  Hint: te.checked(max(min(J[i], 1), 0), n): a call raises IndexError for what lies "
        "outside.\n"
        "  Hint: te.clamp_index(max(min(J[i], 1), 0), n) takes the nearest index."
    ),
    lambda: te.state((n, 4), "float32", name="S"): (
        "IRError: te.scan: 'S' has the size 'n', which a call decides; expected numbers. "
        "[te-dim-scan]\n"
        "  Hint: build a kernel for each size that there is."
    ),
    lambda: te.scan(
        te.compute((n, 4), lambda t, i: A[t, i], name="first"),
        te.compute((40, 4), lambda t, i: S[t - 1, i], name="step"),
        S,
    ): (
        "IRError: te.scan: 'first' has the size 'n', which a call decides; expected numbers. "
        "[te-dim-scan]\n"
        "  Hint: build a kernel for each size that there is."
    ),
    lambda: te.func(A, te.compute((m, 4), lambda i, j: A[0, j], name="B"), name="f"): (
        "IRError: te.func: no input of 'f' has the size 'm'; expected one whose shape tells it. "
        "[te-dim-unknown]\n"
        "  Hint: te.placeholder((m, ...), ...) among the parameters of 'f'."
    ),
}


def test_a_check_of_indices_in_a_reduction_speaks_of_its_points_alone() -> None:
    x, at = te.placeholder((n,), "float32", name="X"), te.placeholder((n,), "int64", name="at")
    k = te.reduce_axis(n, name="k")
    y = te.compute((1,), lambda i: te.sum(x[k] * J4[te.checked(at[k], 4)], axis=k), name="y")
    func = te.func(x, at, J4, y, name="pick")
    check = func.block("y_check")
    assert print_expr(check.counts) == "vk < n"
    table, ones = np.arange(4, dtype=np.float32), np.ones(2, np.float32)
    (found, worst) = interpret(func, ones, np.array([3, 1], np.int64), table, checked=True)
    assert found.tolist() == [4.0]
    assert worst == 3


@pytest.mark.parametrize("make", REFUSALS)
def test_refusals_say_what_is_expected(make: Callable[[], object]) -> None:
    with pytest.raises(IRError) as caught:
        make()
    assert str(caught.value) == REFUSALS[make]
