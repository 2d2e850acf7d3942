"""Scan of opset 8, which has a batch, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
FEEDS = {
    "h": np.random.default_rng(1).standard_normal((3, 2)).astype(np.float32),
    "x": np.random.default_rng(2).standard_normal((3, 5, 2)).astype(np.float32),
    "z": np.random.default_rng(3).standard_normal((3, 5)).astype(np.float32),
    "w": np.array([0.5, -2], np.float32),
}


def scanning(
    *, lengths: bool = False, batch: int | str = 3, opset: int = 8, **attributes: object
) -> onnx.ModelProto:
    """h = h * w + x, of which each row is kept, and the larger of its two numbers and z."""
    vector, number = (("h0", "x0"), [2]), ((), [])
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["h0", "w"], ["scaled"]),
            helper.make_node("Add", ["scaled", "x0"], ["h1"]),
            helper.make_node("Identity", ["h1"], ["row"]),
            helper.make_node("Max", ["h1", "z0"], ["most"]),
        ],
        "step",
        [
            *(helper.make_tensor_value_info(name, FLOAT, vector[1]) for name in vector[0]),
            helper.make_tensor_value_info("z0", FLOAT, number[1]),
        ],
        [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("h1", "row", "most")],
    )
    names = ["n" if lengths else "", "h", "x", "z"]
    scan = helper.make_node(
        "Scan", names, ["last", "rows", "mosts"], "scan", body=body, num_scan_inputs=2, **attributes
    )
    shapes = {"h": [batch, 2], "x": [batch, 5, 2], "z": [batch, 5], "w": [2]}
    inputs = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in shapes.items()]
    if lengths:
        inputs.append(helper.make_tensor_value_info("n", INT64, [batch]))
    outputs = [
        helper.make_tensor_value_info("last", FLOAT, [batch, 2]),
        *(helper.make_tensor_value_info(n, FLOAT, [batch, 5, 2]) for n in ("rows", "mosts")),
    ]
    graph = helper.make_graph([scan], "scanning", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def expected(model: onnx.ModelProto, feeds: dict[str, Array]) -> dict[str, Array]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.needs_cc
@pytest.mark.parametrize("directions", [None, [1, 0]])
@pytest.mark.parametrize("lengths", [None, [5, 1, 3]])
def test_each_element_of_a_batch_is_scanned(
    directions: list[int] | None, lengths: list[int] | None
) -> None:
    """What lies behind the end of a sequence is 0."""
    attributes = {} if directions is None else {"directions": directions}
    model = scanning(lengths=lengths is not None, **attributes)
    feeds = FEEDS | ({} if lengths is None else {"n": np.array(lengths)})
    graph, wanted = import_onnx(model), expected(model, feeds)
    results = [evaluate(version, feeds, dtype=None) for version in (graph, optimise(graph)[0])]
    if directions is not None:
        engine = compile(graph, cache=False)
        results.append(engine.run(feeds))
    for found in results:
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.needs_cc
def test_a_batch_may_be_open() -> None:
    engine = compile(scanning(batch="b"), shapes={"b": (1, 2, 4)}, cache=False)
    wanted = expected(scanning(), FEEDS)
    for count in (1, 3):
        found = engine.run({n: a if n == "w" else a[:count] for n, a in FEEDS.items()})
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array[:count], rtol=1e-5, atol=1e-6)


def test_what_is_no_batch_of_sequences_is_refused() -> None:
    uneven = scanning()
    uneven.graph.input[2].type.tensor_type.shape.dim[1].dim_value = 4
    for model, reason in (
        (uneven, "it scans float32[3, 5, 2], float32[3, 4] from float32[3, 2]; expected one batch"),
        (scanning(opset=9, directions=[0, 1]), "attribute 'directions' is one of version 8"),
    ):
        with pytest.raises(UnsupportedOperator) as caught:
            import_onnx(model)
        assert reason in str(caught.value)
