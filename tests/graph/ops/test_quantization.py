"""DynamicQuantizeLinear: as ONNX and onnxruntime say, on every kind of data, compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.quantization import DynamicQuantizeLinear
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

from ..cases import check_expressions, expected_of

RNG = np.random.default_rng(0)
DATA = {
    "both signs": RNG.standard_normal((3, 70)),
    "positive": RNG.random((2, 5, 7)) + 1,
    "negative": -RNG.random((33,)) - 1,
    "far apart": RNG.standard_normal((4, 9)) * 10.0 ** RNG.integers(-6, 6, (4, 9)),
    "halves": np.arange(-255, 256).reshape(7, 73) / 2,
    "one number": np.array(3.0),
}


def quantize_model(
    shape: tuple[int, ...], names: tuple[str, ...] = ("y", "s", "z")
) -> onnx.ModelProto:
    """The node, its first outputs under these names; those that have one are the model's."""
    kinds = (TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8)
    node = helper.make_node("DynamicQuantizeLinear", ["x"], names, name="the_node")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    outputs = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(names, kinds, strict=False)
        if name
    ]
    graph = helper.make_graph([node], "quantize", [x], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


@pytest.mark.parametrize("name", DATA)
def test_it_agrees_with_onnx_and_with_onnxruntime(
    run_onnxruntime: Callable[..., list[Array]], name: str
) -> None:
    feeds = {"x": DATA[name].astype(np.float32)}
    model = quantize_model(feeds["x"].shape)
    graph = import_onnx(model)
    check_expressions(graph, feeds)
    for expected in (expected_of(model, feeds), run_onnxruntime(model, feeds)):
        for version in (graph, optimise(graph)[0]):
            found = evaluate(version, feeds, dtype=None)
            for got, wanted in zip(found.values(), expected, strict=True):
                np.testing.assert_array_equal(got, wanted, strict=True)


def test_zeros_have_a_scale_of_one_and_a_nan_leaves_zeros(
    run_onnxruntime: Callable[..., list[Array]],
) -> None:
    op, zeros = DynamicQuantizeLinear(), np.zeros((2, 3), np.float32)
    found = op.reference(zeros)
    for got, wanted in zip(
        found, run_onnxruntime(quantize_model((2, 3)), {"x": zeros}), strict=True
    ):
        np.testing.assert_array_equal(got, wanted, strict=True)
    assert found[1] == 1
    with np.errstate(all="ignore"):
        y, scale, zero = op.reference(np.array([1, np.nan, -2], np.float32))
    assert (y.tolist(), np.isnan(scale), zero) == ([0, 0, 0], True, 0)
    y, scale, zero = op.reference(np.zeros((0, 3), np.float32))
    assert (y.shape, scale, zero) == ((0, 3), 1, 0)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", [None, "c:scalar"])
def test_kernels_do_what_the_reference_does(target: str | None) -> None:
    for array in (*DATA.values(), np.zeros((0, 3)), np.array([1, np.nan, -2])):
        feeds = {"x": array.astype(np.float32)}
        graph = import_onnx(quantize_model(array.shape))
        results = compile(graph, target, cache=False).run(feeds)
        with np.errstate(all="ignore"):
            expected = evaluate(graph, feeds, dtype=None)
        for name, wanted in expected.items():
            np.testing.assert_array_equal(results[name], wanted, err_msg=name, strict=True)


@pytest.mark.needs_cc
@pytest.mark.parametrize("names", [("y",), ("y", "", "z"), ("y", "s")])
def test_outputs_that_a_model_leaves_out_are_computed_all_the_same(names: tuple[str, ...]) -> None:
    feeds = {"x": DATA["both signs"].astype(np.float32)}
    graph = import_onnx(quantize_model((3, 70), names))
    whole = evaluate(import_onnx(quantize_model((3, 70))), feeds, dtype=None)
    assert graph.outputs == tuple(filter(None, names))
    assert len(graph.nodes[0].outputs) == 3
    results = compile(graph, cache=False).run(feeds)
    for name in graph.outputs:
        np.testing.assert_array_equal(results[name], whole[name], strict=True)


def test_what_is_no_float_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        DynamicQuantizeLinear().infer((TensorType("int32", (3,)),))
    assert str(caught.value) == (
        "ModelError: DynamicQuantizeLinear: expected float16, bfloat16, float32 or float64, got "
        "int32. [op-float]"
    )
