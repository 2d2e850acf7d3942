"""Zeros of both signs come out of C as the interpreter has them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.tir.interpreter.interpreter import interpret

from ..isas import HERE


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zero_minus_what_is_never_minus_zero_is_plus_zero(dtype: str, target: str) -> None:
    """gcc 12 takes -b for it, which is -0."""
    x = te.placeholder((3,), "int32", name="x")
    y = te.placeholder((3,), dtype, name="y")
    zero = te.const(0, dtype)

    def whole(i: te.Expr) -> te.Expr:
        return te.cast(x[i], dtype)

    differences = {
        "whole": lambda i: zero - whole(i),
        "cast": lambda i: te.cast(te.const(0, "int32"), dtype) - whole(i),
        "magnitude": lambda i: zero - te.abs(y[i]),
        "choice": lambda i: zero - te.select(y[i] < 1, whole(i), te.const(2, dtype)),
        "any": lambda i: zero - y[i],
    }
    made = [te.compute((3,), each, name=name) for name, each in differences.items()]
    func = te.func(x, y, *made, name="zeros")
    data = np.array([0, 1, 0], np.int32), np.array([0.0, -0.0, 2.0], dtype)
    expected = interpret(func, *data)
    for found, own in zip(tw.build(func, target)(*data), expected, strict=True):
        assert found.tobytes() == np.asarray(own).tobytes()
