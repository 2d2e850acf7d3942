"""LayerNormalization, RMSNormalization and what is made of them, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.layer_norm import LayerNormalization, RMSNormalization
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

from ..cases import Case, check_case, check_compiled, model_of


def normal(seed: int, *shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


X = normal(1, 2, 6, 4, 5)
CASES = [
    *(
        Case("LayerNormalization", (X, normal(2, *X.shape[axis:]), bias), {"axis": axis}, (17, 22))
        for axis in (-1, 1, 2, -2)
        for bias in (normal(3, *X.shape[axis:]), None)
    ),
    Case("LayerNormalization", (X, normal(2, 5)), {"epsilon": 0.5}, (17,)),
    Case("LayerNormalization", (X, normal(2, 1), normal(3, 4, 1)), {"axis": 2}, (17,)),
    Case("LayerNormalization", (X * 0 + 3, normal(2, 5), normal(3, 5)), {}, (17,), (1, 2)),
    *(Case("RMSNormalization", (X, normal(2, 5)), {"epsilon": e}, (23,)) for e in (1e-5, 0.5)),
    Case("RMSNormalization", (X, normal(2, 4, 5)), {"axis": -2}, (23,)),
    *(Case("InstanceNormalization", (X, normal(2, 6), normal(3, 6)), {}, (o,)) for o in (7, 22)),
    Case("InstanceNormalization", (normal(1, 2, 3, 7), normal(2, 3), normal(3, 3)), {}, (17,)),
    *(
        Case("GroupNormalization", (X, normal(2, n), normal(3, n)), {"num_groups": g}, (opset,))
        for opset, n, g in [(18, 3, 3), (21, 6, 3), (21, 6, 1), (22, 6, 6)]
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_normalisation_agrees_with_the_reference(case: Case) -> None:
    check_case(case, rtol=1e-4, atol=1e-5)


@pytest.mark.needs_cc
def test_compiled_normalisation_agrees_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) > 18], rtol=1e-4, atol=1e-5)


def test_interpreted_normalisation_agrees_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) > 18], "python", rtol=1e-4)


def test_a_large_mean_costs_no_digits() -> None:
    x = normal(1, 3, 64) + np.float32(4096)
    ones = np.ones(64, dtype=np.float32)
    (y,) = LayerNormalization(1).reference(x, ones)
    (exact,) = LayerNormalization(1).reference(x.astype(np.float64), ones.astype(np.float64))
    np.testing.assert_allclose(y, exact, atol=2e-3)  # the mean is rounded by 2.4e-4 at most


def test_group_normalisation_is_views_around_one_operator() -> None:
    model, feeds = model_of([CASES[-1]], 22)
    graph = import_onnx(model)
    titles = [node.op.title for node in graph.nodes]
    assert titles == ["Reshape", "Reshape", "Reshape", "LayerNormalization", "Reshape"]
    assert evaluate(graph, feeds)["y0"].shape == X.shape


def test_what_does_not_fit_is_refused() -> None:
    x, scale = TensorType("float32", (2, 3, 4)), TensorType("float32", (3,))
    with pytest.raises(ModelError) as caught:
        LayerNormalization(3).infer((x, scale))
    assert str(caught.value) == (
        "ModelError: LayerNormalization: float32[2, 3, 4] has no axis 3 to begin with. "
        "[layer-norm-axis]"
    )
    with pytest.raises(ModelError) as caught:
        RMSNormalization(1).infer((x, TensorType("float32", (5, 1, 1, 1))))
    assert str(caught.value) == (
        "ModelError: RMSNormalization: scale and bias must broadcast to the data, got "
        "float32[2, 3, 4], float32[5, 1, 1, 1]. [layer-norm-scale]"
    )


def test_models_that_ask_for_something_else_are_refused() -> None:
    model, _ = model_of([Case("LayerNormalization", (X, normal(2, 5)), {"stash_type": 10})], 17)
    with pytest.raises(UnsupportedOperator) as unknown:
        import_onnx(model)
    assert "stash_type is 10" in str(unknown.value)
    case = Case("GroupNormalization", (X, normal(2, 6), normal(3, 6)), {"num_groups": 4})
    with pytest.raises(ModelError) as caught:
        import_onnx(model_of([case], 21)[0])
    assert str(caught.value) == (
        "ModelError: model: node 'y0' (GroupNormalization) has 4 groups, data "
        "float32[2, 6, 4, 5], scale float32[6] and bias float32[6]; expected groups of equal size, "
        "with 6 numbers in scale and bias. [onnx-groups]"
    )
