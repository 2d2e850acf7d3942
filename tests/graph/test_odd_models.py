"""Models at the edges: few channels in a group, an empty batch, values that are read twice."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.reference.reference import evaluate

pytestmark = pytest.mark.needs_cc


def model(
    nodes: list[onnx.NodeProto], shape: tuple[int, ...], **constants: np.ndarray
) -> onnx.ModelProto:
    """A model from "x" to "y"."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    y = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(nodes, "odd", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(made: onnx.ModelProto) -> None:
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    got = compile(made, cache=False).run({"x": x})["y"]
    wanted = evaluate(import_onnx(made), {"x": x})["y"]
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("channels", "groups", "outputs", "kernel"),
    [(6, 3, 9, 3), (8, 4, 8, 3), (6, 2, 10, 1), (6, 6, 12, 3), (4, 2, 34, 3)],
)
def test_a_group_may_have_fewer_channels_than_a_vector(
    channels: int, groups: int, outputs: int, kernel: int
) -> None:
    weights = np.random.default_rng(0).standard_normal(
        (outputs, channels // groups, kernel, kernel)
    )
    conv = helper.make_node("Conv", ["x", "w"], ["y"], group=groups)
    check(model([conv], (2, channels, 9, 7), w=weights.astype(np.float32)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", [0, 3])
def test_a_batch_may_be_empty(batch: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["q"]),
        helper.make_node("Softmax", ["q"], ["y"], axis=1),
    ]
    weights = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype(np.float32)
    check(model(nodes, (batch, 4, 8, 8), w=weights))


def test_a_chain_of_squares_is_no_expression_of_a_million_products() -> None:
    names = ["x", *(f"t{n}" for n in range(1, 24)), "y"]
    nodes = [
        helper.make_node("Mul", [value, value], [after])
        for value, after in itertools.pairwise(names)
    ]
    made = model(nodes, (5,))
    fusion = fuse(import_onnx(made))
    assert [len(group.nodes) for group in fusion.groups] == [3] * 8
    assert str(fusion.misses[0]) == (
        "not fused: node 't4' (Mul) behind node 't3' (Mul): a part of 't3' would stand 8 times "
        "in one expression; to fuse: let Mul read it once"
    )
    x = np.array([0.5, 1.0, -1.0, 0.999, 0.0], np.float32)
    got = compile(made, cache=False).run({"x": x})["y"]
    np.testing.assert_allclose(got, x.astype(np.float64) ** 2.0**24, rtol=2, atol=1e-5)
