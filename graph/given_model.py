"""What callers give as a model, as a Graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from onnx import ModelProto

from ..tir.errors import TilewrightError
from ..tir.extensions import package_title
from .errors import ExtensionError, ModelError
from .extensions.entries import importer_of, load
from .importers.aten.importer import import_program
from .importers.aten.program import ExportedProgram
from .importers.jaxpr.importer import import_jaxpr
from .importers.jaxpr.program import JaxProgram
from .importers.onnx.importer import import_onnx
from .importers.pt2.importer import import_pt2
from .importers.symbols import Shapes
from .importers.traced_model import traced_model
from .ir.ir import Graph

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Importer = Callable[..., object]  # of a path, with shapes and constants as `compile` has them
_ZIP = b"PK\x03\x04"  # what an archive begins with, and no message of protobuf that is a model


def imported_graph(
    model: object, shapes: Shapes | None, constants: Mapping[str, object] | None
) -> Graph:
    """The Graph of a model: a path, bytes, a ModelProto, an ExportedProgram, a JaxProgram, or a
    Graph itself. A file with a suffix that is none of ours goes to the importer that a package
    brings for it.

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
    model = traced_model(model, None, None, None)
    if isinstance(model, ExportedProgram):
        return import_program(model, shapes=shapes, constants=constants)
    if isinstance(model, JaxProgram):
        return import_jaxpr(model, shapes=shapes, constants=constants)
    importer = importer_of(model)
    if importer is not None:
        return _imported_by(importer, model, shapes, constants)
    if isinstance(model, str | os.PathLike | bytes) and is_archive(model):
        return import_pt2(model, shapes=shapes, constants=constants)
    if isinstance(model, str | os.PathLike | bytes | ModelProto):
        return import_onnx(model, shapes=shapes, constants=constants)
    raise ModelError(
        f"compile: the model is a {type(model).__name__}; expected the path or the bytes of an "
        "ONNX file or of an archive of torch.export, or a ModelProto.",
        code="compile-model",
        hints=(
            "torch.export.save(torch.export.export(module, inputs), 'model.pt2') writes one.",
            "a function of JAX is compiled with args=(...), arrays like those that it takes.",
        ),
    )


def _imported_by(
    importer: EntryPoint,
    model: object,
    shapes: Shapes | None,
    constants: Mapping[str, object] | None,
) -> Graph:
    """The Graph that an importer of others makes. Raises: ExtensionError, ModelError."""
    title = f"the importer of '{importer.name}' of {package_title(importer)}"
    read = load(importer)
    try:
        found = cast("Importer", read)(model, shapes=shapes, constants=constants)
    except TilewrightError:
        raise
    except Exception as error:
        raise ExtensionError(
            f"model: {title} raised {type(error).__name__}: {error}.",
            code="extension-importer",
        ) from error
    if not isinstance(found, Graph):
        raise ExtensionError(
            f"model: {title} gives a {type(found).__name__}; expected a Graph.",
            code="extension-graph",
            hints=("GraphBuilder makes one, node by node.",),
        )
    return found


def is_archive(model: str | os.PathLike[str] | bytes) -> bool:
    """Whether a model is an archive of torch.export, by its name or by how its bytes begin."""
    if isinstance(model, bytes):
        return model.startswith(_ZIP)
    return os.fspath(model).endswith((".pt2", ".pt"))
