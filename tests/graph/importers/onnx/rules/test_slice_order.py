"""Slices of a tensor along an axis, numbered in their order."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ValueInfoProto, helper

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate


@pytest.mark.parametrize("in_order", [1, 0])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((8, 5), 0), ((3, 8), 1), ((2, 9, 2), 1), ((7, 1), -2), ((1, 6), 0), ((4, 1, 3), 1)],
)
def test_distinct_slices_are_those_of_numpy(
    shape: tuple[int, ...], axis: int, in_order: int
) -> None:
    x = np.random.default_rng(1).integers(0, 2, shape).astype(np.float32)
    names = ["y", "places", "inverse", "counts"]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("Unique", ["x"], names, axis=axis, sorted=in_order)
    declared = [helper.make_tensor_value_info("x", kind, shape)]
    graph = helper.make_graph([node], "g", declared, [ValueInfoProto(name=n) for n in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = evaluate(import_onnx(model), {"x": x}, dtype=None)
    expected = np.unique(x, True, True, True, axis=axis)
    order = np.arange(len(expected[1])) if in_order else np.argsort(expected[1])
    inverse = np.argsort(order)[expected[2].reshape(-1)]
    np.testing.assert_array_equal(found["y"], np.take(expected[0], order, axis))
    np.testing.assert_array_equal(found["places"], expected[1][order])
    np.testing.assert_array_equal(found["inverse"], inverse)
    np.testing.assert_array_equal(found["counts"], expected[3][order])
