"""codegen/text/scalars.py: data wrap around, also where a variable holds them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.isas import HERE
from tilewright import te

LARGEST = np.iinfo(np.int64).max


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
def test_data_that_a_variable_holds_wrap_around(target: str) -> None:
    """x is read once; C says nothing of x + 1 where x is the largest signed number, and gcc takes
    it for larger than x.
    """
    x = te.placeholder((3,), "int64", name="x")
    y = te.compute(
        (3,), lambda i: te.select(x[i] + 1 > x[i], te.const(1, "int64"), x[i] * 2 - 1), name="y"
    )
    kernel = tw.build(te.func(x, y, name="grows"), target)
    found = np.zeros(3, np.int64)
    kernel(np.array([5, LARGEST, -7]), found)
    np.testing.assert_array_equal(found, [1, -3, 1])
