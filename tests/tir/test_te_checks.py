"""tir/te_checks.py: shapes, axes and elements without a meaning; each refusal with its text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir import te
from tilewright.tir.errors import IRError, IRTypeError

A = te.placeholder((3, 4), "float32", name="A")
K = te.reduce_axis(4, name="k")


def test_extents_of_numpy_become_python_integers() -> None:
    made = te.placeholder((np.int64(3), np.uint8(4)), "float32", name="B")
    one = te.placeholder(np.int32(5), "float32", name="C")
    assert (made.shape, one.shape) == ((3, 4), (5,))
    axis = te.reduce_axis(np.int64(2))
    assert {type(n) for n in (*made.shape, *one.shape, axis.extent)} == {int}


REFUSALS: dict[Callable[[], object], str] = {
    lambda: te.placeholder((1.5,), "float32", name="A"): (  # type: ignore[arg-type]
        "IRError: te: shape (1.5,) of 'A' holds 1.5; expected integers of 0 or more. [te-shape]"
    ),
    lambda: te.compute(None, lambda: A[0, 0], name="C"): (  # type: ignore[arg-type]
        "IRError: te: shape (None,) of 'C' holds None; expected integers of 0 or more. [te-shape]"
    ),
    lambda: te.sum(A[0, 0], axis=()): (
        "IRError: te.sum: axis is (); expected at least one reduction axis. [te-axis-none]\n"
        "  Hint: k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2)."
    ),
    lambda: te.sum(A[0, K], axis=(K, K)): (
        "IRError: te.sum: axis lists 'k' twice; expected each axis once. [te-axis-twice]"
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
