"""graph/importers/onnx/given.py: values that a caller says of inputs are constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.graph.importers.onnx.test_importer import RELU, model_of, node, refusal
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate

Golden = Callable[[str, str], None]


def test_the_value_of_an_input_may_be_said() -> None:
    """It is a constant then, and no input."""
    reduced = model_of(node("ReduceSum", "x axes", keepdims=0))
    axes = helper.make_tensor_value_info("axes", TensorProto.INT64, ["n"])
    reduced.graph.input.append(axes)
    graph = import_onnx(reduced, constants={"axes": [1, 2]})
    assert graph.inputs == ("x",)
    assert graph.types["y"].shape == (1, 4)
    x = np.ones((1, 2, 4, 4), np.float32)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], np.full((1, 4), 8))
    engine = compile(reduced, constants={"axes": np.array([3])}, cache=False)
    np.testing.assert_array_equal(engine(x), np.full((1, 2, 4), 4))


def test_values_of_inputs_that_do_not_fit_are_refused(golden: Golden) -> None:
    reduced = model_of(node("ReduceSum", "x axes", keepdims=0))
    axes = helper.make_tensor_value_info("axes", TensorProto.INT64, [2])
    reduced.graph.input.append(axes)
    texts = [
        refusal(reduced, constants={"axis": [1, 2]}),
        *(refusal(reduced, constants={"axes": value}) for value in ([1], [0.5, 1], "ab", [[1], 2])),
    ]
    for model, constants in ((reduced, [1]), (import_onnx(model_of(RELU)), {"x": 1})):
        with pytest.raises(ModelError) as caught:
            compile(model, constants=constants, cache=False)  # type: ignore[arg-type]
        texts.append(str(caught.value))
    golden("errors/onnx_constants.txt", "\n\n".join(texts))
