"""The optimisers of ai.onnx.preview.training, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

DOMAIN = "ai.onnx.preview.training"
MOMENTUM = {"alpha": 0.9, "beta": 0.75, "norm_coefficient": 0.01}
STEPS: list[tuple[str, int, dict[str, object]]] = [
    ("Adagrad", 3, {"decay_factor": 0.1, "epsilon": 1e-5, "norm_coefficient": 0.02}),
    ("Adagrad", 3, {}),
    ("Adam", 4, {"alpha": 0.8, "beta": 0.95, "norm_coefficient": 0.1}),
    ("Adam", 4, {"norm_coefficient_post": 0.25}),
    ("Momentum", 3, {"mode": "standard", **MOMENTUM}),
    ("Momentum", 3, {"mode": "nesterov", **MOMENTUM}),
]


def training(
    operator: str, kinds: int, attributes: dict[str, object], dtype: str, step: int, count: int = 2
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A step of `count` tensors, and its inputs."""
    random = np.random.default_rng(count)
    feeds = {"r": np.array(0.125, "float32"), "t": np.array(step)}
    for kind in range(kinds):  # what is summed up is not negative
        for number in range(count):
            feeds[f"x{kind}{number}"] = random.uniform(0.1, 2, (number + 2, 3)).astype(dtype)
    outputs = [f"y{n}" for n in range((kinds - 1) * count)]
    node = helper.make_node(operator, list(feeds), outputs, "step", domain=DOMAIN, **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    graph = helper.make_graph(
        [node], "training", inputs, [onnx.ValueInfoProto(name=n) for n in outputs]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", STEPS, ids=str)
def test_a_step_is_that_of_the_reference(
    case: tuple[str, int, dict[str, object]], dtype: str, step: int
) -> None:
    model, feeds = training(*case, dtype, step)
    wanted = ReferenceEvaluator(model).run(None, feeds)
    found = evaluate(import_onnx(model), feeds, dtype=None)
    for name, array in zip(found, wanted, strict=True):
        assert found[name].dtype == dtype
        np.testing.assert_allclose(found[name], array, rtol=1e-5, err_msg=name)


@pytest.mark.needs_cc
def test_a_step_is_compiled() -> None:
    model, feeds = training(*STEPS[2], "float32", 2, count=1)
    engine = compile(model, cache=False)
    for name, array in evaluate(import_onnx(model), feeds, dtype=None).items():
        np.testing.assert_allclose(engine.run(feeds)[name], array, rtol=1e-5)


def test_what_is_no_step_is_refused() -> None:
    model, _ = training(*STEPS[0], "float32", 0)
    model.graph.node[0].input.pop()
    with pytest.raises(ModelError) as refused:
        import_onnx(model)
    assert str(refused.value) == (
        "ModelError: model: node 'step' (Adagrad) has 5 inputs behind the step; expected 3 for "
        "each tensor. [onnx-optimiser]"
    )
    model, _ = training("Momentum", 3, {"mode": "heavy", **MOMENTUM}, "float32", 0)
    with pytest.raises(UnsupportedOperator, match="mode is 'heavy'; known are standard, nesterov"):
        import_onnx(model)
