"""Weights of files of safetensors, those of GPTQ and AWQ among them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from ....tir import dtype as dtypes
from ...errors import ModelError
from ...types import Array
from ..mapped_file import mapped_file
from .packed_words import PARTS, PackedLayer
from .safetensors_header import TensorEntry, read_entries
from .stored_weights import StoredTensor, StoredWeights, Weights, array_of_bytes

DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}
GPTQ_FORMATS = {"gptq": 1, "gptq_v2": 0}  # what stored zeros are less than what they stand for


def read_safetensors(*paths: str | os.PathLike[str], gptq_format: str = "gptq") -> StoredWeights:
    """The tensors of the files of a model in safetensors, by name, and their `metadata`.

    The files are mapped: opening one reads its header, and a tensor is read when it is asked for,
    as an array of the type that it has there. Where a layer has `NAME.qweight`, as GPTQ and AWQ
    write it, `NAME.weight` stands for its parts: BlockWeights [K, N], of 2, 4 or 8 bits (GPTQ) or 4
    (AWQ); `NAME.qweight`, `NAME.qzeros`, `NAME.scales` and `NAME.g_idx` have no names of their own.

    gptq_format: the `checkpoint_format` of a model of GPTQ, which its configuration says and the
    files do not: "gptq", whose zeros are stored less 1, or "gptq_v2".
    Raises: ModelFileError where a file cannot be read; ModelError where one is damaged, where two
    have a tensor of one name, or where gptq_format is unknown.
    """
    if gptq_format not in GPTQ_FORMATS:
        raise ModelError(
            f"read_safetensors: gptq_format is {gptq_format!r}; expected "
            f"{' or '.join(map(repr, GPTQ_FORMATS))}.",
            code="gptq-format",
        )
    if not paths:
        raise ModelError(
            "read_safetensors: no path is given; expected one or more.", code="safetensors-none"
        )
    source = ", ".join(Path(path).name for path in paths)
    plain, metadata = dict[str, StoredTensor](), dict[str, object]()
    for path in map(Path, paths):
        data = mapped_file(path)
        entries, told = read_entries(path.name, data)
        metadata.update(told)
        _add(source, plain, ((entry.name, _stored(path.name, entry, data)) for entry in entries))
    return StoredWeights(source, _joined(source, plain, GPTQ_FORMATS[gptq_format]), metadata)


def _add(
    source: str, tensors: dict[str, StoredTensor], more: Iterable[tuple[str, StoredTensor]]
) -> None:
    for name, tensor in more:
        if name in tensors:
            raise ModelError(
                f"model: '{source}' have two tensors '{name}'.", code="safetensors-two"
            )
        tensors[name] = tensor


def _stored(source: str, entry: TensorEntry, data: memoryview) -> StoredTensor:
    own = data[entry.start : entry.end]
    return StoredTensor(entry.dtype, len(own), partial(_read, source, entry, own))


def _read(source: str, entry: TensorEntry, data: memoryview) -> Array:
    if entry.dtype not in DTYPES:
        raise ModelError(
            f"model: '{source}': '{entry.name}' has dtype {entry.dtype}, which is not read; "
            f"expected one of {', '.join(DTYPES)}.",
            code="safetensors-kind",
        )
    return array_of_bytes(data, dtypes.dtype(DTYPES[entry.dtype]).numpy, entry.shape)


def _joined(
    source: str, plain: dict[str, StoredTensor], stored_less: int
) -> dict[str, StoredTensor]:
    """The tensors, with one in place of the parts of each layer of few bits."""
    layers = {name.removesuffix(".qweight") for name in plain if name.endswith(".qweight")}
    made = dict[str, StoredTensor]()
    for name, tensor in plain.items():
        layer, _, part = name.rpartition(".")
        if layer not in layers or part not in PARTS:
            _add(source, made, [(name, tensor)])
        elif part == "qweight":
            parts = {p: plain[f"{layer}.{p}"] for p in PARTS if f"{layer}.{p}" in plain}
            size = sum(tensor.nbytes for tensor in parts.values())
            read = partial(_packed, source, layer, parts, stored_less)
            _add(source, made, [(f"{layer}.weight", StoredTensor("packed", size, read))])
    return made


def _packed(source: str, layer: str, parts: dict[str, StoredTensor], stored_less: int) -> Weights:
    arrays = {part: tensor.read() for part, tensor in parts.items()}
    return PackedLayer(source, layer, arrays, stored_less).weights()  # type: ignore[arg-type]
