"""Sum, Max, Min, Mean and Concat of hundreds of inputs, which become several nodes."""

from __future__ import annotations

from collections import Counter
from functools import reduce

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.rules.variadic import MOST_PIECES, MOST_TERMS
from tilewright.graph.reference.reference import evaluate

SHAPE = (2, 3)


def wide(operator: str, count: int, **attributes: int) -> onnx.ModelProto:
    """A model of one node with `count` inputs."""
    names = [f"x{n}" for n in range(count)]
    shape = [2, 3 * count] if operator == "Concat" else SHAPE
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], "wide", **attributes)],
        "wide",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    opset = helper.make_operatorsetid("", 13)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def inputs(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    return [rng.standard_normal(SHAPE, dtype=np.float32) for _ in range(count)]


WANTED = {
    "Sum": lambda arrays: reduce(np.add, arrays),
    "Max": lambda arrays: reduce(np.maximum, arrays),
    "Min": lambda arrays: reduce(np.minimum, arrays),
    "Mean": lambda arrays: reduce(np.add, arrays) / np.float32(len(arrays)),
    "Concat": lambda arrays: np.concatenate(arrays, axis=1),
}
ATTRIBUTES = {"Concat": {"axis": 1}}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", WANTED)
@pytest.mark.parametrize("count", [1, 48, 49, 80, 81, 5000])
def test_the_nodes_together_compute_the_operator_in_its_order(operator: str, count: int) -> None:
    graph = import_onnx(wide(operator, count, **ATTRIBUTES.get(operator, {})))
    most = MOST_PIECES if operator == "Concat" else MOST_TERMS
    assert max(len(node.inputs) for node in graph.nodes) <= most
    arrays = inputs(count)
    found = evaluate(graph, dict(zip(graph.inputs, arrays, strict=True)), dtype=None)
    np.testing.assert_array_equal(found["y"], WANTED[operator](arrays))


def test_a_concat_of_thousands_copies_each_element_twice() -> None:
    graph = import_onnx(wide("Concat", 5000, axis=1))
    counts = Counter(len(node.inputs) for node in graph.nodes)
    assert counts == {80: 62, 40: 1, 63: 1}


@pytest.mark.sampled(3)
@pytest.mark.needs_cc
@pytest.mark.parametrize("operator", WANTED)
def test_an_engine_of_hundreds_of_inputs_is_right(operator: str) -> None:
    engine = tw.compile(wide(operator, 300, **ATTRIBUTES.get(operator, {})))
    arrays = inputs(300)
    found = engine(*arrays)
    np.testing.assert_allclose(found, WANTED[operator](arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.needs_cc
@pytest.mark.parametrize("operator", WANTED)
def test_an_engine_of_five_thousand_inputs_is_right(operator: str) -> None:
    engine = tw.compile(wide(operator, 5000, **ATTRIBUTES.get(operator, {})))
    arrays = inputs(5000)
    np.testing.assert_allclose(engine(*arrays), WANTED[operator](arrays), rtol=1e-4, atol=1e-4)
