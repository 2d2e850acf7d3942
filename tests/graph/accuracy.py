"""What is asked of a compiled model: an error near float64's, the same bits for any number of
threads, and for every row of a batch that holds one sample.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

from tilewright.runtime.arrays import Array
from tilewright.runtime.engine.engine import Engine

LARGEST = 1e-5  # max |y - ref64| / max |ref64|
OVER_PEER = 5  # times onnxruntime's own error, which is taken to be at least one rounding
ROUNDING = 2.0**-24

Feeds = Mapping[str, Array]


def error(got: Array, expected: Array) -> float:
    """max |got - expected| / max |expected|"""
    return float(np.abs(np.subtract(got, expected)).max() / np.abs(expected).max())


def run_onnxruntime(model: onnx.ModelProto | str, feeds: Feeds) -> dict[str, Array]:
    """The outputs by name, computed with one thread."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    source = model if isinstance(model, str) else model.SerializeToString()
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def check_engine(engine: Engine, feeds: Feeds, expected: Feeds, peer: Feeds) -> tuple[float, float]:
    """Check bits, proofs and the error of each output; the largest error, ours and the peer's."""
    one, *others = (engine.run(feeds, threads=n) for n in (1, 2, 3))
    for other in others:
        for name, array in one.items():
            assert array.tobytes() == other[name].tobytes()
    assert set(engine.explain().proofs) == {"proved"}
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    mine = {name: error(one[name], array) for name, array in expected.items()}
    theirs = {name: error(peer[name], array) for name, array in expected.items()}
    for name, found in mine.items():
        assert found <= LARGEST, name
        assert found <= OVER_PEER * max(theirs[name], ROUNDING), name
    return max(mine.values()), max(theirs.values())


def check_rows(engine: Engine, feeds: Feeds, expected: Feeds) -> None:
    """One sample in every row: all rows of each output have the same bits, and the right values.

    feeds, expected: the sample, a batch of one, and its outputs in float64.
    """
    batch = engine.inputs[0].shape[0]
    repeated = {name: np.repeat(array, batch, axis=0) for name, array in feeds.items()}
    for name, array in engine.run(repeated, threads=2).items():
        assert len(array) == batch
        assert {row.tobytes() for row in array} == {array[0].tobytes()}
        assert error(array[:1], expected[name]) <= LARGEST


def rebatched(model: onnx.ModelProto, batch: int) -> onnx.ModelProto:
    """A model that was written for one sample, for `batch` of them: another size in the shapes of
    its inputs and outputs and of each Reshape, and a row for each sample in the indices of each
    GatherND.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    del graph.value_info[:]
    weights = {tensor.name for tensor in graph.initializer}
    for value in (*graph.input, *graph.output):
        if value.name not in weights:
            value.type.tensor_type.shape.dim[0].dim_value = batch
    second = {node.input[1]: node.op_type for node in graph.node if len(node.input) > 1}
    for tensor in graph.initializer:
        if second.get(tensor.name) == "Reshape":
            shape = numpy_helper.to_array(tensor).copy()
            shape[0] = batch if shape[0] == 1 else shape[0]
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
        elif second.get(tensor.name) == "GatherND":
            indices = np.repeat(numpy_helper.to_array(tensor), batch, axis=0)
            indices[..., 0] += np.arange(batch).reshape(-1, *[1] * (indices.ndim - 2))
            tensor.CopyFrom(numpy_helper.from_array(indices, tensor.name))
    return copy
