"""A tiny encoder and a tiny decoder, with and without a past, compiled; batches of one sample."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples import samples
from tilewright.runtime.arrays import Array

from .accuracy import check_engine, check_rows, rebatched, run_onnxruntime
from .transformer import DEPTH, HEADS, LAYERS, WORDS, decoder, encoder

pytestmark = pytest.mark.needs_cc

STEPS = 7


def words(steps: int) -> Array:
    return np.random.default_rng(steps).integers(0, WORDS, (1, steps))


def sentence() -> dict[str, Array]:
    """Words, the last two of which are padding."""
    return {"ids": words(STEPS), "seen": np.array([[1] * (STEPS - 2) + [0] * 2])}


def check_accuracy(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs, checked."""
    engine = compile(model, cache=False)
    check_engine(engine, feeds, evaluate(import_onnx(model), feeds), run_onnxruntime(model, feeds))
    return engine.run(feeds)


def test_an_encoder_gives_what_float64_gives() -> None:
    check_accuracy(encoder(1, STEPS), sentence())


def test_what_a_transformer_spells_out_is_recognised() -> None:
    """Numbers are in float32 there: they are roots and halves of last places off."""
    for model in (encoder(1, STEPS), decoder(1, STEPS)):
        notes = compile(model, cache=False, verify="rewrites").explain().notes
        passes = {n.split(": ")[0]: n for n in notes if n.startswith("pass ")}
        assert not [note for note in notes if "undone" in note]
        for name in ("GeluRecognition", "AttentionRecognition"):
            assert ": equal;" in passes[f"pass {name}"], passes


def test_a_decoder_goes_on_from_its_past() -> None:
    past, ids = STEPS - 1, words(STEPS)
    whole = check_accuracy(decoder(STEPS, 0), {"ids": ids})
    given = {
        f"past_{kind}.{n}": np.ascontiguousarray(whole[f"{kind}.{n}"][:, :, :past])
        for n in range(LAYERS)
        for kind in ("key", "value")
    }
    assert given["past_key.0"].shape == (1, HEADS, past, DEPTH)
    last = check_accuracy(decoder(1, past), {"ids": ids[:, past:], **given})
    np.testing.assert_allclose(last["logits"][0, 0], whole["logits"][0, past], atol=1e-5)
    np.testing.assert_allclose(last["key.0"], whole["key.0"], atol=1e-5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("batch", range(2, 6))
def test_every_row_of_an_encoder_gives_the_same_bits(batch: int) -> None:
    expected = evaluate(import_onnx(encoder(1, STEPS)), sentence())
    engine = compile(encoder(batch, STEPS), cache=False, verify="off")
    check_rows(engine, sentence(), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", range(2, 6))
def test_every_row_of_a_convolution_gives_the_same_bits(batch: int) -> None:
    sample = samples.tiny_model()
    expected = evaluate(import_onnx(sample.model), sample.inputs)
    engine = compile(rebatched(sample.model, batch), cache=False, verify="off")
    check_rows(engine, sample.inputs, expected)
