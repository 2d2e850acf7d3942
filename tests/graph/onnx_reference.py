"""Nodes by ONNX's reference evaluator: what a model of one gives, as a graph and as an engine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

Attribute = int | float | str | list[int]


def model_of(
    operator: str,
    inputs: Mapping[str, Array | None],
    *,
    opset: int,
    constants: tuple[str, ...] = (),
    outputs: int = 1,
    **attributes: Attribute,
) -> onnx.ModelProto:
    """A model of one node; inputs named in `constants` are initialisers, those of None left out."""
    given = {name: array for name, array in inputs.items() if array is not None}
    made = ["y", "z"][:outputs]
    names = [name if name in given else "" for name in inputs]
    node = helper.make_node(operator, names, made, name="the_node", **attributes)
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in given.items()
        if n not in constants
    ]
    initialisers = [numpy_helper.from_array(given[name], name) for name in constants]
    results = [onnx.ValueInfoProto(name=name) for name in made]
    graph = helper.make_graph([node], "one_node", declared, results, initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def agree(
    operator: str,
    inputs: Mapping[str, Array | None],
    *,
    opset: int,
    constants: tuple[str, ...] = (),
    outputs: int = 1,
    tolerance: float = 1e-5,
    engine: bool = False,
    **attributes: Attribute,
) -> Graph:
    """Compare a node as we import it, and as an engine, with ONNX's reference evaluator.

    tolerance: as a share of the largest element.
    """
    model = model_of(
        operator, inputs, opset=opset, constants=constants, outputs=outputs, **attributes
    )
    graph = import_onnx(model)
    feeds = {name: array for name in graph.inputs if (array := inputs[name]) is not None}
    wanted = ReferenceEvaluator(model).run(None, feeds)
    found = [evaluate(graph, feeds, dtype=None)]
    if engine:
        found.append(compile(graph, cache=False).run(feeds))
    for results in found:
        for name, expected in zip(graph.outputs, wanted, strict=True):
            got = results[name]
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            largest = max(1.0, float(np.abs(expected.astype(np.float64)).max(initial=0)))
            np.testing.assert_allclose(
                got.astype(np.float64), expected.astype(np.float64), atol=tolerance * largest
            )
    return graph
