"""The model for peers: with the sizes of the comparison, and without weights among its inputs.

Dynamic sizes would slow a peer down, so a model with a dynamic size, with weights that callers may
replace, or with inputs that are constants, is rewritten in memory; peers read all others from their
files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import ModelProto

from ...graph.importers.onnx.given import with_constants
from ...runtime.model.interface import ClosedSpec
from ...tir.text.size import bytes_text
from ..errors import UsageError

_MOST_BYTES = 2**31 - 1  # of a protobuf message
_WEIGHTS_APART = 4  # the version of the format since which weights need not be inputs


def peer_model(
    path: str, inputs: Sequence[ClosedSpec], constants: Mapping[str, object] | None = None
) -> str | bytes:
    """The file, or the bytes of the model with these inputs, without those that are constants.

    Raises: UsageError for a model that is too large for one message.
    """
    if not constants and _is_closed(onnx.load(path, load_external_data=False)):
        return path
    model = with_constants(onnx.load(path), constants or {})
    _close(model, {spec.name: spec.shape for spec in inputs})
    size = sum(tensor.ByteSize() for tensor in model.graph.initializer)
    if size > _MOST_BYTES:
        raise UsageError(
            f"bench: '{path}' leaves sizes open and holds {bytes_text(size)} of weights; expected "
            f"at most {bytes_text(_MOST_BYTES)}, or a model whose inputs state their sizes.",
            code="cli-peer-bytes",
            hints=("onnx.tools.update_model_dims states them.",),
        )
    made: bytes = model.SerializeToString()
    return made


def _is_closed(model: ModelProto) -> bool:
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    kinds = [value.type.tensor_type for value in inputs]
    stated = all(
        kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim)
        for kind in kinds
    )
    return stated and (model.ir_version < _WEIGHTS_APART or len(inputs) == len(model.graph.input))


def _close(model: ModelProto, shapes: dict[str, tuple[int, ...]]) -> None:
    """Fix the sizes of the inputs, and remove the weights from them."""
    values = list(model.graph.input)
    if model.ir_version >= _WEIGHTS_APART:
        del model.graph.input[:]
        model.graph.input.extend(value for value in values if value.name in shapes)
    for value in model.graph.input:
        if value.name in shapes:
            dims = value.type.tensor_type.shape.dim
            del dims[:]
            for size in shapes[value.name]:
                dims.add().dim_value = size
