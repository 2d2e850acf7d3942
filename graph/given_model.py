"""What callers give as a model, as a Graph."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onnx import ModelProto

from .errors import ModelError
from .importers.onnx.importer import import_onnx
from .importers.onnx.symbols import Shapes
from .ir.ir import Graph


def imported_graph(
    model: object, shapes: Shapes | None, constants: Mapping[str, object] | None
) -> Graph:
    """The Graph of a model: a path, bytes, a ModelProto, or a Graph itself. Raises: ModelError."""
    if isinstance(model, Graph):
        if constants:
            raise ModelError(
                f"compile: constants has {list(constants)}, and the model is a Graph; "
                "expected an ONNX model, whose inputs they are.",
                code="constants-graph",
            )
        return model
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith((".pt2", ".pt")):
        kind = f"the file '{os.fspath(model)}'"
    elif isinstance(model, str | os.PathLike | bytes | ModelProto):
        return import_onnx(model, shapes=shapes, constants=constants)
    else:
        kind = f"a {type(model).__name__}"
    raise ModelError(
        f"compile: the model is {kind}; expected the path or the bytes of an ONNX file, "
        "or a ModelProto.",
        code="compile-model",
        hints=("torch.onnx.export(module, inputs, 'model.onnx') writes such a file.",),
    )
