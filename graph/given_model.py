"""What callers give as a model, as a Graph."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onnx import ModelProto

from .errors import ModelError
from .importers.aten.importer import import_program
from .importers.aten.program import ExportedProgram
from .importers.fx.exported import as_program
from .importers.onnx.importer import import_onnx
from .importers.pt2.importer import import_pt2
from .importers.symbols import Shapes
from .ir.ir import Graph

_ZIP = b"PK\x03\x04"  # what an archive begins with, and no message of protobuf that is a model


def imported_graph(
    model: object, shapes: Shapes | None, constants: Mapping[str, object] | None
) -> Graph:
    """The Graph of a model: a path, bytes, a ModelProto, an ExportedProgram, or a Graph itself.

    Raises: ModelError.
    """
    if isinstance(model, Graph):
        if constants:
            raise ModelError(
                f"compile: constants has {list(constants)}, and the model is a Graph; "
                "expected an ONNX model, whose inputs they are.",
                code="constants-graph",
            )
        return model
    model = as_program(model, None, None, None)
    if isinstance(model, ExportedProgram):
        return import_program(model, shapes=shapes, constants=constants)
    if isinstance(model, str | os.PathLike | bytes) and is_archive(model):
        return import_pt2(model, shapes=shapes, constants=constants)
    if isinstance(model, str | os.PathLike | bytes | ModelProto):
        return import_onnx(model, shapes=shapes, constants=constants)
    raise ModelError(
        f"compile: the model is a {type(model).__name__}; expected the path or the bytes of an "
        "ONNX file or of an archive of torch.export, or a ModelProto.",
        code="compile-model",
        hints=("torch.export.save(torch.export.export(module, inputs), 'model.pt2') writes one.",),
    )


def is_archive(model: str | os.PathLike[str] | bytes) -> bool:
    """Whether a model is an archive of torch.export, by its name or by how its bytes begin."""
    if isinstance(model, bytes):
        return model.startswith(_ZIP)
    return os.fspath(model).endswith((".pt2", ".pt"))
