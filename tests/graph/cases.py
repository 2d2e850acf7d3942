"""Table-driven tests of ONNX operators: ONNX's reference evaluator is the judge.

A `Case` is one node with its inputs. `check_case` imports it in each opset and compares what the
graph computes, before and after the passes, node by node and as a whole; `check_compiled` compiles
all cases as one model and runs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.base import tensor_type
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te

Attribute = int | float | str | list[int] | list[float]


@dataclass(frozen=True)
class Case:
    """One node. inputs: None where one is left out; constants: positions of the inputs that are
    initialisers.
    """

    operator: str
    inputs: tuple[Array | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    opsets: tuple[int, ...] = (17,)
    constants: tuple[int, ...] = ()

    def __str__(self) -> str:
        shapes = ["-" if x is None else f"{x.dtype}{list(x.shape)}" for x in self.inputs]
        settings = [f"{name}={value}" for name, value in self.attributes.items()]
        return " ".join([self.operator, *shapes, *settings]).replace(", ", "x")

    def names(self, prefix: str = "x") -> list[str]:
        return ["" if x is None else f"{prefix}{n}" for n, x in enumerate(self.inputs)]


def model_of(cases: Sequence[Case], opset: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model with a node and an output for each case, and its inputs."""
    nodes, declared, initialisers, feeds = [], [], [], {}
    for number, case in enumerate(cases):
        names = case.names(f"c{number}_x")
        output = f"y{number}"
        nodes.append(helper.make_node(case.operator, names, [output], **case.attributes))
        for position, (name, array) in enumerate(zip(names, case.inputs, strict=True)):
            if array is None:
                continue
            if position in case.constants:
                initialisers.append(numpy_helper.from_array(array, name))
                continue
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            declared.append(helper.make_tensor_value_info(name, kind, array.shape))
            feeds[name] = array
    outputs = [onnx.ValueInfoProto(name=f"y{number}") for number in range(len(cases))]
    graph = helper.make_graph(nodes, "cases", declared, outputs, initialisers)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def expected_of(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the judge divides by zero and overflows as asked
        results: list[Array] = ReferenceEvaluator(model).run(None, dict(feeds))
    return [np.asarray(result) for result in results]


def check_case(case: Case, *, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Compare a case with ONNX's reference in each of its opsets."""
    for opset in case.opsets:
        model, feeds = model_of([case], opset)
        (expected,) = expected_of(model, feeds)
        graph = import_onnx(model)
        verify(graph)
        for version in (graph, optimise(graph)[0]):
            exact = evaluate(version, feeds, dtype=None)["y0"]
            assert exact.dtype == expected.dtype
            for result in (exact, evaluate(version, feeds)["y0"]):
                assert result.shape == expected.shape
                np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)
        check_expressions(graph, feeds)


def check_expressions(graph: Graph, feeds: Mapping[str, Array]) -> None:
    """Compare each node's expression, every access watched, with its reference on the values that
    it reads.
    """
    read = dict.fromkeys(name for node in graph.nodes for name in node.inputs)
    values = evaluate(graph, feeds, dtype=None, values=read)
    for node in graph.nodes:
        _check_expression(graph, node, [np.array(values[name]) for name in node.inputs])


def _check_expression(graph: Graph, node: GraphNode, arrays: list[Array]) -> None:
    types = [graph.types[name] for name in node.inputs]
    tensors = [te.placeholder(t.shape, t.dtype, name=f"x{n}") for n, t in enumerate(types)]
    outputs = node.op.express(*tensors, name="y")
    assert [tensor_type(t) for t in outputs] == [graph.types[name] for name in node.outputs]
    results = interpret(te.func(*tensors, *outputs, name="f"), *arrays, checked=True)
    pairs = zip(results[: len(outputs)], node.op.reference(*arrays), strict=True)
    for got, expected in pairs:  # checks of indices stand behind
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def check_compiled(
    cases: Sequence[Case], target: str | None = None, *, rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Compile all cases as one model of their newest opset; compare with float64."""
    opset = max(max(case.opsets) for case in cases)
    model, feeds = model_of([replace(case, opsets=(opset,)) for case in cases], opset)
    expected = evaluate(import_onnx(model), feeds)
    results = compile(model, target, cache=False).run(feeds)
    for number, case in enumerate(cases):
        got, wanted = results[f"y{number}"], expected[f"y{number}"]
        assert got.shape == wanted.shape, case
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=str(case))
