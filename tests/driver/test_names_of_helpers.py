"""Functions that are called like a helper of generated code."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te


@pytest.mark.needs_cc
def test_a_function_called_like_a_helper_of_ours_runs() -> None:
    a = te.placeholder((4,), "int64", name="a")
    half = te.compute((4,), lambda i: a[i] // (a[i] + 1), name="half")
    kernel = tw.build(te.func(a, half, name="trunc"), "c")
    data = np.array([4, 5, -7, -8])
    np.testing.assert_array_equal(kernel(data), data // (data + 1))
