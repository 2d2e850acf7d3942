"""Files that Keras exports: right for every batch, and what is no ONNX in them is read.

keras/make_models.py writes them; tensorflow is not needed here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.activation import Gelu
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.tir.sizes import Size

HERE = Path(__file__).parent / "keras"
NAMES = tuple(sorted(path.stem for path in HERE.glob("*.onnx")))


@pytest.mark.parametrize("name", NAMES)
def test_one_graph_is_right_for_every_batch(name: str) -> None:
    graph = import_onnx(HERE / f"{name}.onnx")
    (x,) = graph.inputs
    assert isinstance(graph.types[x].shape[0], Size)
    with np.load(HERE / f"{name}.npz") as arrays:
        for n in range(2):
            (found,) = evaluate(graph, {x: arrays[f"in{n}"]}, dtype=None).values()
            np.testing.assert_allclose(found, arrays[f"out{n}"], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(2)
def test_one_engine_is_right_for_every_batch(name: str) -> None:
    engine = tw.compile(HERE / f"{name}.onnx", cache=False)
    with np.load(HERE / f"{name}.npz") as arrays:
        for n in range(2):
            np.testing.assert_allclose(
                engine(arrays[f"in{n}"]), arrays[f"out{n}"], rtol=2e-5, atol=2e-6
            )


def test_a_node_that_onnx_does_not_have_is_read() -> None:
    path = HERE / "encoder.onnx"
    model = onnx.load(path)
    with pytest.raises(onnx.checker.ValidationError, match="No Op registered for Erfc"):
        onnx.checker.check_model(model)
    graph, _ = optimise(import_onnx(path))
    assert [node.op for node in graph.nodes if isinstance(node.op, Gelu)] == [Gelu()]
