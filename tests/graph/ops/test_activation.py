"""Activations over opsets and special values, against ONNX's reference; how exact their tails
are.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.driver.build import build
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.activation import Gelu, Mish, Relu, Sigmoid, Softplus
from tilewright.graph.ops.elementwise import Elementwise
from tilewright.graph.types import Array, TensorType
from tilewright.tir.te import te

from ..cases import Case, check_case, check_compiled, model_of


def normal(*shape: int, dtype: str = "float32") -> Array:
    return (4 * np.random.default_rng(1).standard_normal(shape)).astype(dtype)


SPECIAL = np.array([np.nan, np.inf, 0.0, -0.0, 1.0, -1.0, 3, -3, 90, -90, 200, -200], np.float32)
INPUTS = (SPECIAL, normal(3, 70), normal(4, dtype="float64"), normal(), normal(0, 2))
CASES = [
    *(Case("Relu", (x,), {}, (7, 13, 14)) for x in INPUTS),
    *(Case("LeakyRelu", (x,), {}, (7, 16)) for x in INPUTS),
    Case("LeakyRelu", (SPECIAL,), {"alpha": 0.3}, (16,)),
    *(Case("Sigmoid", (x,), {}, (7, 13)) for x in INPUTS),
    *(Case("Softplus", (x,), {}, (7, 22)) for x in (SPECIAL[:-2], *INPUTS[1:])),
    *(Case("HardSigmoid", (x,), {}, (7, 22)) for x in INPUTS),
    Case("HardSigmoid", (SPECIAL,), {"alpha": 0.5, "beta": 0.25}, (22,)),
    *(Case("HardSwish", (x,), {}, (14, 22)) for x in INPUTS),
    *(Case("Elu", (x,), {}, (7, 22)) for x in INPUTS),
    Case("Elu", (SPECIAL,), {"alpha": 2.5}, (22,)),
    *(Case("PRelu", (normal(2, 3, 4), normal(*shape)), {}, (7, 9, 16)) for shape in ((4,), (3, 1))),
    Case("PRelu", (normal(2, 3).astype("int64"), np.array([-2, 3, 0])), {}, (9, 16)),
    *(Case("Selu", (x,), {}, (7, 13, 22)) for x in INPUTS),
    Case("Selu", (SPECIAL,), {"alpha": 1.5, "gamma": 2.0}, (13,)),
    *(Case("Celu", (x,), {"alpha": 2.0}, (12, 17, 22)) for x in INPUTS[:2]),
    *(Case("ThresholdedRelu", (x,), {"alpha": 0.5}, (10, 22)) for x in INPUTS[1:]),
    *(Case("Shrink", (x,), {"lambd": 1.5, "bias": 1.0}, (9, 22)) for x in INPUTS[1:]),
    *(Case("Mish", (x,), {}, (18, 22)) for x in INPUTS[1:]),
    *(Case("Swish", (x,), {"alpha": 0.5}, (24,)) for x in INPUTS[1:]),
    *(Case("Softsign", (x,), {}, (7, 22)) for x in INPUTS if x.ndim),
    *(Case("Gelu", (x,), {}, (20,)) for x in INPUTS),
    *(Case("Gelu", (x,), {"approximate": "tanh"}, (20,)) for x in INPUTS),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_activations_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_activations_agree_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) >= 14])


def test_interpreted_activations_agree_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) >= 14], "python")


def test_relu_keeps_integers() -> None:
    (y,) = Relu().reference(np.array([-3, 0, 4], dtype=np.int32))
    assert y.dtype == np.int32
    assert y.tolist() == [0, 0, 4]


def ulps(op: Elementwise, x: Array) -> float:
    """The largest error of compiled code, in units in the last place of the result."""
    source = te.placeholder(x.shape, "float32", name="x")
    kernel = build(te.func(source, *op.express(source, name="y"), name="f"))
    y = kernel(x)
    (expected,) = op.reference(x.astype(np.float64))
    return float(np.max(np.abs(y - expected) / np.spacing(np.abs(expected).astype(np.float32))))


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("op", "least", "bound"),
    [
        (Sigmoid(), -87.0, 4.0),
        (Softplus(), -87.0, 4.0),
        (Mish(), -80.0, 8.0),
        (Gelu(), -12.9, 8.0),
        (Gelu(True), -4.0, 16.0),
    ],
    ids=str,
)
def test_small_results_are_good_to_a_few_ulp(op: Elementwise, least: float, bound: float) -> None:
    x = np.linspace(least, 87, 20000, dtype=np.float32)
    assert ulps(op, x) <= bound


def test_a_slope_that_makes_more_of_its_input_is_refused() -> None:
    model, _ = model_of([Case("PRelu", (normal(3, 1), normal(4)))], 16)
    with pytest.raises(ModelError) as refused:
        import_onnx(model)
    assert str(refused.value) == (
        "ModelError: model: node 'y0' (PRelu) has the slope float32[4]; expected one that "
        "broadcasts to float32[3, 1]. [onnx-prelu]"
    )


def test_an_unknown_approximation_is_refused() -> None:
    model, _ = model_of([Case("Gelu", (SPECIAL,), {"approximate": "fast"})], 20)
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    assert "approximate is 'fast'" in str(caught.value)
    assert Gelu().infer((TensorType("float32", (2,)),)) == (TensorType("float32", (2,)),)
