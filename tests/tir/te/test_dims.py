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
from tilewright.tir.verify.verify import Stage, verify

n = te.dim("n", 1, 40)
m = te.dim("m", np.int64(2), 8)  # type: ignore[arg-type]
A = te.placeholder((n, 4), "float32", name="A")
S = te.state((40, 4), "float32", name="S")
J = te.placeholder((4,), "int64", name="J")


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
    lambda: te.placeholder((4, n), "float32", name="B"): (
        "IRError: te: axis 1 of 'B' has the size 'n', which a call decides; expected such a size "
        "as the outermost axis, where no address depends on it. [te-dim-axis]\n"
        "  Hint: order the axes so that 'n' comes first; or build a kernel for each size that "
        "there is."
    ),
    lambda: te.placeholder((n, 4), "float32", name="B", constant=True): (
        "IRError: te.placeholder: 'B' is a constant of size 'n', which a call decides; expected "
        "numbers: a constant is bound when a kernel is built. [te-dim-constant]\n"
        "  Hint: te.placeholder(..., name='B') makes it an input of the call."
    ),
    lambda: te.reduce_axis(n, name="k"): (  # type: ignore[arg-type]
        "IRError: te.reduce_axis: the extent of 'k' is 'n', which a call decides; expected a "
        "number. [te-dim-reduce]\n"
        "  Hint: k = te.reduce_axis(40), and te.sum(..., axis=k, where=k < n): what lies beyond "
        "does not count."
    ),
    lambda: te.compute((4,), lambda i: A[te.clamp_index(J[i], 1), 0], name="B"): (
        "IRError: te.compute: 'B' reads 'A' at row max(min(J[i], 0), 0), which is data, and a call "
        "decides how many rows there are: 'n'; expected an index of axes and numbers. "
        "[te-dim-data]\n"
        "  Hint: give 'A' a size that is a number."
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


@pytest.mark.parametrize("make", REFUSALS)
def test_refusals_say_what_is_expected(make: Callable[[], object]) -> None:
    with pytest.raises(IRError) as caught:
        make()
    assert str(caught.value) == REFUSALS[make]
