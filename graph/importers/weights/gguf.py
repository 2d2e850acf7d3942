"""Weights of a GGUF file, the format of llama.cpp."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from ....tir import dtype as dtypes
from ...errors import ModelError
from ..mapped_file import mapped_file
from .gguf_blocks import READ
from .gguf_header import TensorPlace, read_header
from .stored_weights import StoredTensor, StoredWeights, Weights, array_of_bytes

PLAIN = {
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
}


def read_gguf(path: str | os.PathLike[str]) -> StoredWeights:
    """The tensors of a GGUF file, versions 2 and 3, by name, and its `metadata`.

    The file is mapped: opening it reads its header, and a tensor is read when it is asked for.
    F32, F16, BF16, F64 and I8 to I64 are arrays whose shape has the rows' length last. Q4_0, Q8_0,
    Q4_K and Q6_K, of matrices, are BlockWeights of the matrix by which rows are multiplied; their
    values are those of ggml bit for bit. To ask for a tensor of another type is an error. In the
    metadata, arrays of numbers are NumPy arrays and arrays of texts tuples.

    Raises: ModelFileError where the file cannot be read; ModelError where it is damaged: the
    message names the file, the tensor or the key, and the value.
    """
    place = Path(path)
    data = mapped_file(place)
    header = read_header(place.name, data)
    tensors = {
        tensor.name: StoredTensor(
            tensor.kind.name,
            tensor.nbytes,
            partial(_read, place.name, tensor, data[tensor.start : tensor.start + tensor.nbytes]),
        )
        for tensor in header.tensors
    }
    return StoredWeights(place.name, tensors, header.metadata)


def _read(source: str, tensor: TensorPlace, data: memoryview) -> Weights:
    kind, shape = tensor.kind, tensor.shape
    if kind.name in PLAIN:
        return array_of_bytes(data, dtypes.dtype(PLAIN[kind.name]).numpy, shape)
    if kind.name not in READ:
        raise ModelError(
            f"model: '{source}': '{tensor.name}' has type {kind.name}, which is not read; expected "
            f"one of {', '.join((*PLAIN, *READ))}.",
            code="gguf-kind",
            hints=("llama-quantize writes the model again with another type.",),
        )
    if len(shape) != 2:
        raise ModelError(
            f"model: '{source}': '{tensor.name}' of type {kind.name} has shape {list(shape)}; "
            "expected a matrix.",
            code="gguf-matrix",
        )
    blocks = np.frombuffer(data, np.uint8).reshape(shape[0], -1, kind.bytes)
    return READ[kind.name](blocks)
