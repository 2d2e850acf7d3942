"""Models that onnxruntime has fused and written mean what they meant before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import DOMAIN
from tests.graph.transformer import decoder, encoder
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.activation import Gelu
from tilewright.graph.ops.attention import Attention
from tilewright.graph.ops.layer_norm import LayerNormalization
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array


def fused(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """What onnxruntime makes of a model where it may use operators of its own."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "fused.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_fused_transformer_means_what_it_meant(kind: str, tmp_path: Path) -> None:
    model = encoder(2, 5) if kind == "encoder" else decoder(2, 3)
    written = fused(model, tmp_path)
    assert any(node.domain == DOMAIN for node in written.graph.node)
    graphs = [optimise(import_onnx(proto))[0] for proto in (model, written)]
    for recognised in (Attention, Gelu, LayerNormalization):
        counts = [sum(isinstance(n.op, recognised) for n in graph.nodes) for graph in graphs]
        assert counts[0] == counts[1] > 0, recognised.__name__
    feeds: dict[str, Array] = {}
    for n, (name, type_) in enumerate(graphs[0].types.items()):
        if name in graphs[0].inputs:
            drawn = np.random.default_rng(n).standard_normal(type_.shape)  # type: ignore[arg-type]
            feeds[name] = np.abs(drawn > 0).astype(type_.dtype)
    before, after = (evaluate(graph, feeds) for graph in graphs)
    for name, wanted in before.items():
        np.testing.assert_allclose(after[name], wanted, rtol=1e-4, atol=1e-5)
