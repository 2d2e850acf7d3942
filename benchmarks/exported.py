"""Models by name: the light ones of the onnx wheel, and those that torch.onnx wrote, from the
folder that TILEWRIGHT_MODELS names.
"""

from __future__ import annotations

import os
from pathlib import Path

import onnx

from tilewright.graph.importers.onnx import import_onnx
from tilewright.graph.samples import LIGHT_MODELS, Sample, random_model
from tilewright.runtime.interface import TensorSpec
from tilewright.runtime.verification import random_inputs

FOLDER = Path(os.environ.get("TILEWRIGHT_MODELS", "/nowhere"))
EXPORTED = tuple(sorted(path.stem for path in FOLDER.glob("*.onnx")))
NAMES = (*LIGHT_MODELS, *EXPORTED)


def sample_of(name: str) -> Sample:
    """A model with one input for each of its own; integers among them are 0 and 1."""
    if name not in EXPORTED:
        return random_model(name)
    model = onnx.load(FOLDER / f"{name}.onnx")
    graph = import_onnx(model)
    types = ((value, graph.types[value]) for value in graph.inputs)
    specs = [TensorSpec(value, type_.dtype, type_.shape) for value, type_ in types]
    return Sample(name, model, random_inputs(specs, indices=True), {}, graph.outputs[0])


def file_of(name: str, folder: Path) -> Path:
    """The file of a model; one that has none is written to `folder`."""
    if name in EXPORTED:
        return FOLDER / f"{name}.onnx"
    path = folder / f"{name}.onnx"
    onnx.save(random_model(name).model, path)
    return path
