"""Models by name: the light ones of the onnx wheel, recurrent ones, and those that torch.onnx
wrote, from the folder that TILEWRIGHT_MODELS names.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import onnx

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.samples.samples import LIGHT_MODELS, SampleModel, random_model
from tilewright.runtime.model.interface import ClosedSpec
from tilewright.runtime.model.verification import random_inputs
from tilewright.tir.errors import known_names
from tilewright.tir.sizes import closed_shape

from .recurrent import RECURRENT, recurrent_model

FOLDER = Path(os.environ.get("TILEWRIGHT_MODELS", "/nowhere"))
EXPORTED = tuple(sorted(path.stem for path in FOLDER.glob("*.onnx")))
NAMES = (*LIGHT_MODELS, *RECURRENT, *EXPORTED)


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """A type for argparse that takes these names. Not `choices`, which Python 3.11 also asks of the
    list that is the default of `nargs="*"`.
    """

    def name(text: str) -> str:
        if text not in names:
            listed = known_names(text, names)
            raise argparse.ArgumentTypeError(f"there is no '{text}'; the names are: {listed}")
        return text

    return name


def sample_of(name: str) -> SampleModel:
    """A model with one input for each of its own; integers among them are 0 and 1."""
    if name in RECURRENT:
        return recurrent_model(name)
    if name not in EXPORTED:
        return random_model(name)
    model = onnx.load(FOLDER / f"{name}.onnx")
    graph = import_onnx(model)
    types = ((value, graph.types[value]) for value in graph.inputs)
    specs = [
        ClosedSpec(value, np.dtype(type_.dtype), closed_shape(type_.shape))
        for value, type_ in types
    ]
    return SampleModel(name, model, random_inputs(specs, indices=True), {}, graph.outputs[0])


def file_of(name: str, folder: Path) -> Path:
    """The file of a model; one that has none is written to `folder`."""
    if name in EXPORTED:
        return FOLDER / f"{name}.onnx"
    path = folder / f"{name}.onnx"
    onnx.save(sample_of(name).model, path)
    return path
