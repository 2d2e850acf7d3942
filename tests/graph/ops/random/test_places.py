"""CountAtMost: what NumPy's searchsorted finds in each row."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.random.places import CountAtMost
from tilewright.graph.types import TensorType
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 7, 5), (2, 0, 4), (1, 6, 0), (0, 3, 2)])
def test_it_counts_what_is_not_above(shape: tuple[int, int, int], dtype: str) -> None:
    rows, n, m = shape
    random = np.random.default_rng(3)
    totals = np.sort(random.integers(0, 9, (rows, n)), axis=1).astype(dtype)
    numbers = random.integers(-1, 10, (rows, m)).astype(dtype)
    expected = [np.searchsorted(a, b, "right") for a, b in zip(totals, numbers, strict=True)]
    (found,) = CountAtMost().reference(totals, numbers)
    np.testing.assert_array_equal(found, np.array(expected).reshape(rows, m))
    a = te.placeholder(totals.shape, dtype, name="a")
    b = te.placeholder(numbers.shape, dtype, name="b")
    (made,) = CountAtMost().express(a, b, name="y")
    (compiled,) = interpret(te.func(a, b, made, name="f"), totals, numbers)
    np.testing.assert_array_equal(compiled, found)


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError) as refused:
        CountAtMost().infer((TensorType("float32", (2, 3)), TensorType("float32", (4, 3))))
    assert str(refused.value) == (
        "ModelError: CountAtMost: expected matrices of as many rows, got float32[2, 3] and "
        "float32[4, 3]. [places]"
    )
