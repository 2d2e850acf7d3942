"""graph/fuzz/drawings: what is drawn of the operators that are read, and that it means what
onnxruntime says.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tilewright.graph.fuzz import random_model as models
from tilewright.graph.fuzz.drawings.drawing import Drawing
from tilewright.graph.fuzz.drawings.table import DRAWINGS
from tilewright.graph.fuzz.random_model import RandomModel, random_model
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.rules.table import RULES
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.verification.systems import SYSTEMS, SystemFailed

# of these, random models have none: shapes that data decide; values that few models have
NOT_DRAWN = {
    "AffineGrid",
    "Bernoulli",
    "BitCast",
    "BlackmanWindow",
    "Col2Im",
    "Compress",
    "Erfc",
    "ConcatFromSequence",
    "Constant",
    "CumProd",
    "DFT",
    "DeformConv",
    "DynamicQuantizeLinear",
    "EyeLike",
    "HammingWindow",
    "HannWindow",
    "MaxRoiPool",
    "MaxUnpool",
    "MeanVarianceNormalization",
    "MelWeightMatrix",
    "Multinomial",
    "NonMaxSuppression",
    "NonZero",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "QLinearConv",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "ReverseSequence",
    "RoiAlign",
    "RotaryEmbedding",
    "STFT",
    "Scatter",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SequenceMap",
    "SimplifiedLayerNormalization",
    "SplitToSequence",
    "TensorScatter",
    "TfIdfVectorizer",
    "Unique",
    "Upsample",
}
WRITTEN_BY_NAME = {
    *("Concat", "If", "Loop", "MatMul", "Reshape", "Scan", "Shape", "Squeeze", "Transpose"),
    *("Unsqueeze",),
}


def one_of(drawing: Drawing, seed: int, monkeypatch: pytest.MonkeyPatch) -> RandomModel:
    """A model whose operators are all drawn so; its opset has them."""
    monkeypatch.setattr(models, "DRAWINGS", (drawing,))
    monkeypatch.setattr(models, "_OPSETS", tuple(n for n in (17, 18, 21, 23) if n >= drawing.since))
    monkeypatch.setattr(models._Writer, "plain", models._Writer.operator)
    monkeypatch.setattr(models._Writer, "wide", models._Writer.operator)
    return random_model(seed, "regions" if drawing.is_closed else "sizes")


def test_most_operators_that_are_read_are_drawn() -> None:
    drawn = {drawing.op for drawing in DRAWINGS} | WRITTEN_BY_NAME
    own = {name for name in RULES if "." not in name}  # of ONNX's own domain
    assert own - drawn == NOT_DRAWN


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(1, 5))
def test_each_drawing_means_what_onnxruntime_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="the comparison with ONNX Runtime needs it")
    for drawing in DRAWINGS:
        check(one_of(drawing, seed, monkeypatch))


def check(model: RandomModel) -> None:
    """Hold a model against onnxruntime, where that has its operators."""
    sizes = model.sizes(Random(model.seed))
    given = model.inputs(sizes, model.seed)
    found = evaluate(import_onnx(model.proto, shapes=dict(model.ranges) or None), given)
    try:
        theirs = SYSTEMS["onnxruntime"].load(model.proto)(given)
    except SystemFailed as error:
        if "NOT_IMPLEMENTED" in error.message:  # of integers of few bits
            return
        raise
    for name, array in found.items():
        assert array.shape == theirs[name].shape
        assert np.isfinite(array).all()
        assert np.allclose(array, theirs[name], rtol=1e-3, atol=1e-4), model.proto.graph
