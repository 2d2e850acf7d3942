"""Inputs of an ONNX model that become initialisers, as a caller says."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, numpy_helper

from ..given import given_constants
from .declared import declared_input


def with_constants(model: ModelProto, given: Mapping[str, object]) -> ModelProto:
    """A copy of a model whose inputs of these names are initialisers. Raises: ModelError."""
    made = ModelProto()
    made.CopyFrom(model)
    weights = {tensor.name for tensor in made.graph.initializer}
    inputs = [item for item in made.graph.input if item.name not in weights]
    arrays = given_constants([declared_input(item) for item in inputs], given)
    kept = [item for item in made.graph.input if item.name not in arrays]
    del made.graph.input[:]
    made.graph.input.extend(kept)
    made.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items())
    return made
