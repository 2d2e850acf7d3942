"""Seven models as torch.onnx writes them, compiled, where TILEWRIGHT_MODELS names a folder with
their files.

bert_base, minilm, vit_base, resnet50, mobilenetv2, gpt2_prefill128 and gpt2_decode_past128, each a
.onnx file with its weights inside: transformers' models (minilm with its own weights, the others
with random ones), one sample, 128 words or a 224x224 image, from torch.onnx.export(dynamo=True,
opset_version=20). The outputs of the GPT-2 models are the logits and each layer's keys and values.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples import samples
from tilewright.runtime.arrays import Array

from .accuracy import Feeds, check_engine, check_rows, rebatched, run_onnxruntime

pytestmark = [pytest.mark.needs_cc, pytest.mark.slow]

FOLDER = os.environ.get("TILEWRIGHT_MODELS", "")
EXPORTED = (
    "mobilenetv2",
    "resnet50",
    "minilm",
    "vit_base",
    "bert_base",
    "gpt2_prefill128",
    "gpt2_decode_past128",
)


def exported(name: str) -> str:
    """The path of a model's file; skips the test where there is none."""
    path = Path(FOLDER, f"{name}.onnx")
    if not FOLDER or not path.exists():
        pytest.skip(f"TILEWRIGHT_MODELS names no folder with {name}.onnx")
    return str(path)


def example(model: onnx.ModelProto) -> dict[str, Array]:
    """One sample: normal numbers, any words, all of them seen, of the first kind."""
    rng = np.random.default_rng(0)
    graph = import_onnx(model)
    feeds = {}
    for name in graph.inputs:
        type_ = graph.types[name]
        if type_.is_float:
            feeds[name] = rng.standard_normal(type_.shape).astype(type_.dtype)
        elif name == "input_ids":
            feeds[name] = rng.integers(1, 30000, type_.shape)
        else:
            feeds[name] = np.full(type_.shape, name == "attention_mask", type_.dtype)
    return feeds


@cache
def sample_of(name: str) -> tuple[onnx.ModelProto, Feeds, Feeds]:
    """A model for one sample, a sample, and its outputs in float64."""
    if name == "squeezenet":
        light = samples.random_model(name)
        model, feeds = light.model, light.inputs
    else:
        model = onnx.load(exported(name))
        feeds = example(model)
    return model, feeds, evaluate(import_onnx(model), feeds)


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_model_gives_what_float64_gives(name: str) -> None:
    path = exported(name)
    model = onnx.load(path)
    feeds = example(model)
    expected = evaluate(import_onnx(model), feeds)
    engine = compile(path, cache=False)
    mine, theirs = check_engine(engine, feeds, expected, run_onnxruntime(path, feeds))
    print(f"{name}: error {mine:.2e}, onnxruntime {theirs:.2e}; {engine.explain().proofs}")


@pytest.mark.parametrize("batch", range(2, 10))
@pytest.mark.parametrize("name", ["squeezenet", "mobilenetv2", "resnet50", "bert_base"])
def test_every_row_of_a_batch_gives_the_same_bits(name: str, batch: int) -> None:
    model, feeds, expected = sample_of(name)
    engine = compile(rebatched(model, batch), cache=False, verify="off")
    check_rows(engine, feeds, expected)
