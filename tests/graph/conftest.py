"""What the graph tests share: ONNX models of one node, onnxruntime as the judge, random arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.base import Operator, tensor_type
from tilewright.graph.passes.layout import ChannelsLast
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te

Attribute = int | float | str | list[int] | list[float] | onnx.TensorProto


def random_array(seed: int, *shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def node_model(
    operator: str,
    inputs: Mapping[str, Array],
    *,
    opset: int = 17,
    constants: tuple[str, ...] = (),
    **attributes: Attribute,
) -> onnx.ModelProto:
    """A model of one node; inputs named in `constants` are initialisers."""
    node = helper.make_node(operator, list(inputs), ["y"], name="the_node", **attributes)
    declared = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
        if name not in constants
    ]
    output = onnx.ValueInfoProto(name="y")
    output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(
        next(iter(inputs.values())).dtype
    )
    initialisers = [numpy_helper.from_array(inputs[name], name) for name in constants]
    graph = helper.make_graph([node], "one_node", declared, [output], initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run_onnxruntime(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    results: list[Array] = session.run(
        None, {item.name: inputs[item.name] for item in session.get_inputs()}
    )
    return results


def check_node(
    operator: str,
    inputs: Mapping[str, Array],
    *,
    opset: int = 17,
    constants: tuple[str, ...] = (),
    **attributes: Attribute,
) -> Graph:
    """Import a node and compare it, and its NHWC twin, in both precisions with onnxruntime.

    Then compare every node's expression, executed by the interpreter, with its reference.
    """
    model = node_model(operator, inputs, opset=opset, constants=constants, **attributes)
    (expected,) = run_onnxruntime(model, inputs)
    graph = import_onnx(model)
    verify(graph)
    feeds = {name: inputs[name] for name in graph.inputs}
    for version in (graph, ChannelsLast()(graph)):
        assert version.types["y"].shape == expected.shape
        for dtype in ("float32", "float64"):
            y = evaluate(version, feeds, dtype=dtype)["y"]
            assert y.shape == expected.shape
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
        for node in version.nodes:
            check_expression(version, node)
    return graph


def check_expression(graph: Graph, node: GraphNode) -> None:
    """Compare the expression of `node` with its reference, watching every access."""
    types = [graph.types[name] for name in node.inputs]
    arrays = [
        np.abs(random_array(n, *type_.shape, dtype=type_.dtype)) for n, type_ in enumerate(types)
    ]
    arrays[0] *= np.sign(random_array(99, *types[0].shape, dtype=types[0].dtype))
    tensors = [
        te.placeholder(type_.shape, type_.dtype, name=f"x{n}") for n, type_ in enumerate(types)
    ]
    outputs = node.op.express(*tensors, name="y")
    assert [tensor_type(tensor) for tensor in outputs] == [
        graph.types[name] for name in node.outputs
    ]
    results = interpret(te.func(*tensors, *outputs, name="f"), *arrays, checked=True)
    for got, expected in zip(results, node.op.reference(*arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def refused_node(
    operator: str,
    inputs: Mapping[str, Array],
    *,
    opset: int = 18,
    constants: tuple[str, ...] = (),
    **attributes: Attribute,
) -> str:
    """The message with which a model of one node is refused."""
    with pytest.raises(ModelError) as caught:
        import_onnx(node_model(operator, inputs, opset=opset, constants=constants, **attributes))
    return str(caught.value)


def check_kernel(op: Operator, *arrays: Array) -> None:
    """Compile a model of one operator and compare its call with the operator's reference."""
    builder = GraphBuilder("one_node")
    names = [
        builder.input(f"x{n}", TensorType(array.dtype.name, array.shape))
        for n, array in enumerate(arrays)
    ]
    graph = builder.finish((builder.add(op, *names, output="y"),))
    inputs = dict(zip(names, arrays, strict=True))
    result = compile(graph, cache=False).run(inputs)["y"]
    (expected,) = evaluate(graph, inputs, dtype=None).values()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(name="random_array")
def _random_array() -> Callable[..., Array]:
    return random_array


@pytest.fixture(name="node_model")
def _node_model() -> Callable[..., onnx.ModelProto]:
    return node_model


@pytest.fixture(name="run_onnxruntime")
def _run_onnxruntime() -> Callable[..., list[Array]]:
    return run_onnxruntime


@pytest.fixture(name="check_node")
def _check_node() -> Callable[..., Graph]:
    return check_node


@pytest.fixture(name="refused_node")
def _refused_node() -> Callable[..., str]:
    return refused_node


@pytest.fixture(name="check_kernel")
def _check_kernel() -> Callable[..., None]:
    return check_kernel
