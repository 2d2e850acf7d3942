"""Products of floats of 16 bits: what they are in float32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.half_products import HalfConv, HalfMatMul
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.reference.reference import apply
from tilewright.graph.types import TensorType

rng = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("narrow_data", [False, True])
def test_a_product_is_that_of_float32_of_the_same_numbers(
    kind: type[np.generic], narrow_data: bool
) -> None:
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 70), (70, 4)))
    x, w = a.astype(kind) if narrow_data else a, b.astype(kind)
    (y,) = apply(HalfMatMul(), x, w)
    (wanted,) = apply(MatMul(), x.astype(np.float32), w.astype(np.float32))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, wanted)


def test_a_convolution_is_that_of_float32_of_the_same_numbers() -> None:
    x = rng.standard_normal((1, 5, 6, 4)).astype(np.float32)
    w = rng.standard_normal((3, 3, 4, 7)).astype(ml_dtypes.bfloat16)
    fields = {"pads": (1, 1, 1, 1), "strides": (2, 1), "layout": "NHWC"}
    (y,) = apply(HalfConv(**fields), x, w)
    (wanted,) = apply(Conv(**fields), x, w.astype(np.float32))
    np.testing.assert_array_equal(y, wanted)


def test_a_check_in_float64_stays_there() -> None:
    a, b = (rng.standard_normal(s) for s in ((2, 3), (3, 4)))
    (y,) = apply(HalfMatMul(), a, b)
    np.testing.assert_array_equal(y, a @ b)


def test_other_types_are_refused() -> None:
    types = (TensorType("float64", (2, 3)), TensorType("float16", (3, 4)))
    with pytest.raises(ModelError) as caught:
        HalfMatMul().infer(types)
    assert str(caught.value) == (
        "ModelError: HalfMatMul: expected float16, bfloat16 or float32, got float64[2, 3], "
        "float16[3, 4]. [half-types]"
    )
