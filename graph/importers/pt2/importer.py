"""Import an archive of torch.export.save, `model.pt2`, without torch."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from ...errors import ModelError
from ...ir.ir import Graph
from ...types import Array, numpy_type, owned
from ..aten.importer import import_program
from ..aten.program import ExportedProgram, Known
from ..aten.signature import changed, output_names
from ..limits import Account, ImportLimits, UnsupportedType, checked_type
from ..symbols import Shapes
from .archive import Archive, open_archive
from .fields import checked, field, parsed, union
from .serialized import constant_of, dtype_of, extent_of, graph_from

MAJOR = 8  # of the schema
_MODEL = "models/model.json"
_SAVE_AGAIN = "torch.export.save(torch.export.export(model, args), 'model.pt2') with torch 2.13"


def import_pt2(
    source: str | os.PathLike[str] | bytes,
    *,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    limits: ImportLimits | None = None,
) -> Graph:
    """The Graph of an archive: see `import_program`. Weights are copied: who saves another model
    under the same name must not change what an engine holds.

    Raises: ModelFileError when a file cannot be read, UnsupportedOperator with every node that we
    cannot import, ModelError for everything else that is wrong.
    """
    bounds = limits or ImportLimits()
    program = program_of(open_archive(source, bounds), bounds)
    return import_program(program, shapes=shapes, constants=constants, limits=bounds)


def program_of(archive: Archive, limits: ImportLimits) -> ExportedProgram:
    """The program of an archive. Raises: ModelError."""
    if _MODEL not in archive.places:
        raise ModelError(
            "model: the archive has no program at 'models/model.json'; expected one that "
            "torch.export.save wrote.",
            code="pt2-program",
            hints=(f"save it again: {_SAVE_AGAIN}.",),
        )
    item = parsed(archive.read(_MODEL), _MODEL)
    version = field(field(item, "schema_version", dict), "major", int)
    if version != MAJOR:
        raise ModelError(
            f"model: the archive has schema {version}; expected {MAJOR}.",
            code="pt2-schema",
            hints=(f"save it again: {_SAVE_AGAIN}.",),
        )
    if bytes(archive.read("byteorder")) != b"little":
        raise ModelError("model: the archive's numbers are not little endian.", code="pt2-order")
    module = field(item, "graph_module", dict)
    graph = graph_from(field(module, "graph", dict))
    signature = field(module, "signature", dict)
    weights = _Weights(archive, limits)
    constants, inputs, buffers = dict[str, Known](), list[str](), dict[str, str]()
    for spec in field(signature, "input_specs", list):
        kind, value = union(spec, "an input")
        name = _named(value, kind)
        match kind:
            case "user_input":
                inputs.append(name)
            case "parameter" | "buffer" | "tensor_constant":
                key = "tensor_constant_name" if kind == "tensor_constant" else f"{kind}_name"
                buffers[name] = field(value, key, str)
                constants[name] = weights.read(buffers[name])
            case "constant_input":
                constants[name] = constant_of(field(value, "value", dict))
            case _:
                raise ModelError(
                    f"model: input '{name}' is a {kind}; expected tensors and numbers.",
                    code="pt2-input",
                )
    _check_outputs(field(signature, "output_specs", list))
    return ExportedProgram(
        archive.name,
        graph,
        constants,
        tuple(inputs),
        output_names(graph.outputs, inputs),
        buffers,
        _ranges(field(item, "range_constraints", dict)),
    )


def _named(value: object, kind: str) -> str:
    """The name that the graph has for an input."""
    if kind == "constant_input":
        return field(value, "name", str)
    found = union(field(value, "arg", dict), "an input") if kind == "user_input" else None
    if found is None:
        return field(field(value, "arg", dict), "name", str)
    own, item = found
    if own == "as_tensor":
        return field(item, "name", str)
    raise ModelError(
        f"model: an input is '{own}', no tensor; expected tensors alone.",
        code="pt2-number-input",
        hints=("a number that a call decides may be a tensor without axes.",),
    )


def _check_outputs(specs: list[object]) -> None:
    """What a program changes must not be forgotten. Raises: ModelError."""
    for spec in specs:
        kind, value = union(spec, "an output")
        if kind == "user_output":
            continue
        table = checked(value, dict, "an output")
        names = [str(one) for key, one in table.items() if key.endswith("_name")]
        raise changed(kind, names)


def _ranges(table: dict[str, object]) -> dict[str, tuple[int | None, int | None]]:
    found = dict[str, tuple[int | None, int | None]]()
    for name, item in table.items():
        ends = checked(item, dict, "a range")
        low, high = ends.get("min_val"), ends.get("max_val")
        found[name] = (
            low if isinstance(low, int) else None,
            high if isinstance(high, int) else None,
        )
    return found


class _Weights:
    """The tensors that an archive holds, by the name that the model has for them."""

    def __init__(self, archive: Archive, limits: ImportLimits) -> None:
        self.archive, self.account = archive, Account(limits)
        self.known = dict[object, Array]()
        self.metas = dict[str, tuple[str, object]]()
        for folder, file in (("weights", "model_weights"), ("constants", "model_constants")):
            name = f"data/{folder}/{file}_config.json"
            if name in archive.places:
                config = field(parsed(archive.read(name), name), "config", dict)
                self.metas |= {key: (folder, meta) for key, meta in config.items()}

    def read(self, name: str) -> Array:
        """A tensor, one array for all weights that are tied. Raises: ModelError."""
        if name not in self.metas:
            raise ModelError(f"model: the archive has no weight '{name}'.", code="pt2-weight")
        folder, meta = self.metas[name]
        if field(meta, "use_pickle", bool):
            raise ModelError(
                f"model: weight '{name}' is a pickle, which is never opened; expected plain bytes.",
                code="pt2-pickle",
                hints=("export the model with plain tensors: no subclasses, no objects.",),
            )
        what, tensor = f"weight '{name}'", field(meta, "tensor_meta", dict)
        shape = _closed(field(tensor, "sizes", list), what)
        strides = _closed(field(tensor, "strides", list), what)
        (offset,) = _closed([tensor.get("storage_offset")], what)
        dtype = dtype_of(field(tensor, "dtype", int))
        try:
            type_ = checked_type(what, dtype, shape, self.account.limits)
        except UnsupportedType as error:
            raise ModelError(f"model: {error}.", code="pt2-type") from error
        path = field(meta, "path_name", str)
        key = (folder, path, dtype, shape, strides, offset)
        if key not in self.known:
            self.account.store(what, type_)
            data = self.archive.read(f"data/{folder}/{path}")
            self.known[key] = _strided(data, numpy_type(dtype), shape, strides, offset, what)
        return self.known[key]


def _closed(items: list[object], what: str) -> tuple[int, ...]:
    found = tuple(extent_of(item) for item in items)
    if not all(isinstance(size, int) and size >= 0 for size in found):
        raise ModelError(f"model: {what} has the sizes {list(found)}.", code="pt2-weight-size")
    return tuple(int(size) for size in found)


def _strided(
    data: memoryview,
    dtype: np.dtype[np.generic],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    what: str,
) -> Array:
    """A copy of the elements of a view of a storage; what is not 0 is true.

    Raises: ModelError where they lie outside of it.
    """
    count = len(data) // dtype.itemsize
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=False))
    if len(strides) != len(shape) or (0 not in shape and last >= count):
        raise ModelError(
            f"model: {what} of shape {list(shape)} and strides {list(strides)} ends at element "
            f"{last + 1} of {count}.",
            code="pt2-weight-range",
        )
    if 0 in shape:
        return owned(np.empty(shape, dtype))
    stored = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    flat = np.frombuffer(data, stored, count)[offset:]
    steps = [stride * dtype.itemsize for stride in strides]
    view = np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False)
    return owned(np.not_equal(view, 0) if dtype.kind == "b" else np.array(view, order="C"))
