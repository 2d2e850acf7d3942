"""tir/te/checks.py: shapes, axes and elements without a meaning; each refusal with its text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.errors import IRError, IRTypeError
from tilewright.tir.te import te

A = te.placeholder((3, 4), "float32", name="A")
E = te.placeholder((3, 4), "float8_e5m2", name="E")
K = te.reduce_axis(4, name="k")


def test_extents_of_numpy_become_python_integers() -> None:
    made = te.placeholder((np.int64(3), np.uint8(4)), "float32", name="B")
    one = te.placeholder(np.int32(5), "float32", name="C")
    assert (made.shape, one.shape) == ((3, 4), (5,))
    axis = te.reduce_axis(np.int64(2))
    assert {type(n) for n in (*made.shape, *one.shape, axis.extent)} == {int}


N = te.placeholder((3,), "int64", name="N")

REFUSALS: dict[Callable[[], object], str] = {
    lambda: te.placeholder((1.5,), "float32", name="A"): (  # type: ignore[arg-type]
        "IRError: te: shape (1.5,) of 'A' holds 1.5; expected integers of 0 or more. [te-shape]"
    ),
    lambda: te.compute(None, lambda: A[0, 0], name="C"): (  # type: ignore[arg-type]
        "IRError: te: shape (None,) of 'C' holds None; expected integers of 0 or more. [te-shape]"
    ),
    lambda: te.compute((3,), lambda i: A[te.checked(N[i], 3), N[i]], name="C"): (
        "IRError: te.compute: 'C' reads dimension 1 of 'A' at N[i], which is data; expected it "
        "checked, or clamped to 0 .. 3. [te-index-data]\n"
        "  Hint: te.checked(N[i], 4): a call raises IndexError for what lies outside.\n"
        "  Hint: te.clamp_index(N[i], 4) takes the nearest index."
    ),
    lambda: te.compute((3,), lambda i: A[te.clamp_index(N[i], 4), 0], name="C"): (
        "IRError: te.compute: 'C' reads dimension 0 of 'A' at max(min(N[i], 3), 0), which is data; "
        "expected it checked, or clamped to 0 .. 2. [te-index-data]\n"
        "  Hint: te.checked(max(min(N[i], 3), 0), 3): a call raises IndexError for what lies "
        "outside.\n"
        "  Hint: te.clamp_index(max(min(N[i], 3), 0), 3) takes the nearest index."
    ),
    lambda: te.checked(A[0, 0], 3): (
        "IRTypeError: te.checked: the value is type float32; expected an integer expression. "
        "[te-index-value]\n"
        "  Hint: te.cast(x, 'int64') converts it; A[2] needs no check."
    ),
    lambda: te.clamp_index(2, 3): (  # type: ignore[arg-type]
        "IRTypeError: te.clamp_index: the value is 2; expected an integer expression. "
        "[te-index-value]\n"
        "  Hint: te.cast(x, 'int64') converts it; A[2] needs no check."
    ),
    lambda: te.checked(N[0], 0): (
        "IRError: te.checked: the extent is 0; expected an integer of 1 or more, or a size that a "
        "call decides. [te-index-extent]"
    ),
    lambda: te.sum(A[0, 0], axis=()): (
        "IRError: te.sum: axis is (); expected at least one reduction axis. [te-axis-none]\n"
        "  Hint: k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2)."
    ),
    lambda: te.sum(A[0, K], axis=(K, K)): (
        "IRError: te.sum: axis lists 'k' twice; expected each axis once. [te-axis-twice]"
    ),
    lambda: te.sum(E[0, K], axis=K): (
        "IRError: te.sum: the operands have type float8_e5m2, which is only stored; expected a "
        "type to compute with. [expr-storage]\n"
        "  Hint: te.cast(x, 'float32') holds its values; te.cast(y, 'float8_e5m2') converts back."
    ),
    lambda: te.compute((3,), lambda i: A[i, K], name="C"): (
        "IRError: te.compute: the element of 'C' uses 'k', which nothing runs over; expected its "
        "own axes and those of its reduction: 'i'. [te-axis-free]\n"
        "  Hint: a reduction axis runs inside of a reduction: te.sum(..., axis=k)."
    ),
}


@pytest.mark.parametrize("build", REFUSALS, ids=list(REFUSALS.values()))
def test_what_has_no_meaning_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(IRError) as refusal:
        build()
    assert str(refusal.value) == REFUSALS[build]


@pytest.mark.parametrize(
    "function",
    [te.sum, te.prod, te.min, te.max, te.max_any],
    ids=["sum", "prod", "min", "max", "max_any"],
)
def test_no_reduction_computes_with_a_storage_type(function: Callable[..., object]) -> None:
    with pytest.raises(IRError, match=r"\[expr-storage\]"):
        function(E[0, K], axis=K)


@pytest.mark.parametrize("function", [te.exp, te.sqrt, te.floor, te.erf, te.minimum, te.pow, abs])
def test_no_function_computes_with_a_storage_type(function: Callable[..., object]) -> None:
    arguments = (E[0, 0], E[0, 1])[: 2 if function in (te.minimum, te.pow) else 1]
    with pytest.raises(IRError, match=r"\[expr-storage\]"):
        function(*arguments)


def test_values_of_a_storage_type_are_moved_and_chosen() -> None:
    chosen = te.select(A[0, 0] > 0.0, E[0, 0], E[0, 1])
    assert chosen.dtype == E.type
    half = te.placeholder((2,), "float16", name="H")
    assert te.select(A[0, 0] > 0.0, half[0], half[1]).dtype == half.type


def test_what_is_no_tensor_makes_no_function() -> None:
    total = te.compute((3,), lambda i: te.sum(A[i, K], axis=K), name="C")
    with pytest.raises(IRTypeError) as refusal:
        te.func("A", total, name="f")  # type: ignore[arg-type]
    assert isinstance(refusal.value, TypeError)
    assert str(refusal.value) == (
        "IRTypeError: te.func: 'f' lists 'A'; expected tensors of te.placeholder and te.compute. "
        "[te-func-tensor]\n"
        "  Hint: te.func(A, B, C, name='f') takes the tensors themselves."
    )
