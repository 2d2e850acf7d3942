"""Models of one node of the domain ai.onnx.ml, and what onnxruntime makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

Attributes = Mapping[str, object]


def learned_model(
    operator: str,
    attributes: Attributes,
    inputs: Mapping[str, Array],
    outputs: Sequence[str] = ("y",),
    version: int = 1,
) -> onnx.ModelProto:
    """A node on inputs whose number of rows is open."""
    node = helper.make_node(
        operator, list(inputs), list(outputs), name="the_node", domain="ai.onnx.ml", **attributes
    )
    declared = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), ("n", *array.shape[1:])
        )
        for name, array in inputs.items()
    ]
    made = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], "learned", declared, made)
    opsets = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def expected_of(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What onnxruntime gives with one thread, which adds up trees in their order."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = ort.InferenceSession(model.SerializeToString(), options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


def agrees(
    model: onnx.ModelProto,
    inputs: Mapping[str, Array],
    *,
    tolerance: float = 2e-6,
    engine: bool = False,
) -> None:
    """Hold a model as we import it, and as an engine, against onnxruntime: integers and where
    numbers are not finite are equal, others within a share of the largest.
    """
    expected = expected_of(model, inputs)
    (rows,) = {array.shape[0] for array in inputs.values()}
    found = [evaluate(import_onnx(model, shapes={"n": rows}), dict(inputs), dtype=None)]
    if engine:
        made = compile(model, shapes={"n": (1, rows, rows)}, cache=False)
        found.append(dict(made.run(dict(inputs)).items()))
    for results in found:
        for name, wanted in expected.items():
            same(results[name], wanted, tolerance)


def same(got: Array, wanted: Array, tolerance: float) -> None:
    """Of one type and shape, and equal as `agrees` says."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
        return
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(got), finite)
    largest = np.abs(wanted[finite]).max(initial=0)
    np.testing.assert_allclose(got[finite], wanted[finite], rtol=0, atol=tolerance * largest)


def tensor(array: Array) -> onnx.TensorProto:
    """An attribute that is a tensor."""
    return numpy_helper.from_array(array)
