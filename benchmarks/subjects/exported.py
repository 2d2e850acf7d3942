"""Models by name: the light ones of the onnx wheel, recurrent ones, and those that torch.onnx
wrote, from the folder that TILEWRIGHT_MODELS names.

NAME@SIZES is NAME_open.onnx of that folder with its open sizes closed, in the order in which its
inputs name them: resnet50@8 is of 8 images, bert_base@8x128 of 8 texts of 128 words.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.samples.samples import LIGHT_MODELS, SampleModel, random_model
from tilewright.runtime.model.interface import ClosedSpec
from tilewright.runtime.model.verification import random_inputs
from tilewright.tir.errors import known_names
from tilewright.tir.sizes import closed_shape

from .recurrent import RECURRENT, recurrent_model

FOLDER = Path(os.environ.get("TILEWRIGHT_MODELS", "/nowhere"))
EXPORTED = tuple(sorted(path.stem for path in FOLDER.glob("*.onnx")))
OPEN, AT, BY = "_open", "@", "x"
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


def model_name(text: str) -> str:
    """A type for argparse that takes the names of models, those with sizes among them."""
    base, at, sizes = text.partition(AT)
    if not at:
        return one_of(NAMES)(text)
    one_of([name.removesuffix(OPEN) for name in EXPORTED if name.endswith(OPEN)])(base)
    if not all(size.isdecimal() and int(size) for size in sizes.split(BY)):
        raise argparse.ArgumentTypeError(
            f"'{sizes}' of '{text}' are no sizes; expected numbers with '{BY}' between them, as in "
            f"'{base}{AT}8'"
        )
    return text


def is_closed(name: str) -> bool:
    """Whether the name closes the sizes of an open model."""
    return AT in name


def batch_of(name: str) -> int:
    """The first of the sizes that a name closes, which are some."""
    return int(name.partition(AT)[2].partition(BY)[0])


def is_exported(name: str) -> bool:
    """Whether a model is a file of the folder, as it is there or with its sizes closed."""
    return name in EXPORTED or is_closed(name)


def close_sizes(model: ModelProto, sizes: Sequence[int]) -> ModelProto:
    """A copy of a model whose open sizes are these, in the order in which its inputs name them;
    what it says of the shapes of its own tensors is left out. Raises: ValueError for another
    number of sizes.
    """
    closed = ModelProto()
    closed.CopyFrom(model)
    graph = closed.graph
    axes = [axis for value in graph.input for axis in value.type.tensor_type.shape.dim]
    names = list(dict.fromkeys(axis.dim_param for axis in axes if axis.dim_param))
    if len(names) != len(sizes):
        raise ValueError(
            f"the model leaves {len(names)} sizes open ({', '.join(names)}); got {len(sizes)}"
        )
    known = dict(zip(names, sizes, strict=True))
    for axis in axes:
        if axis.dim_param:
            axis.dim_value = known[axis.dim_param]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    graph.ClearField("value_info")
    return closed


def _exported_model(name: str) -> ModelProto:
    base, at, sizes = name.partition(AT)
    if not at:
        return onnx.load(FOLDER / f"{name}.onnx")
    opened = onnx.load(FOLDER / f"{base}{OPEN}.onnx")
    return close_sizes(opened, [int(size) for size in sizes.split(BY)])


def sample_of(name: str) -> SampleModel:
    """A model with one input for each of its own; integers among them are 0 and 1."""
    if name in RECURRENT:
        return recurrent_model(name)
    if not is_exported(name):
        return random_model(name)
    model = _exported_model(name)
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
