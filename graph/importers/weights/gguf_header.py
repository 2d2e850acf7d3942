"""What a file of GGUF says before its tensors: keys with values, and where each tensor lies.

The format is that of docs/gguf.md of ggml, versions 2 and 3, little-endian. Nothing is trusted:
counts, lengths, sizes and places are compared with the file before they are used.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...errors import ModelError
from .byte_cursor import ByteCursor

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32  # of tensors, where the file says nothing
ALIGNMENT_KEY = "general.alignment"
ITEMS = 1 << 20  # keys, and tensors
VALUES = 1 << 26  # of an array
RANK = 4
_TEXT, _ARRAY = 8, 9
# the forms of `struct` for the types of values
_FORMS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))


@dataclass(frozen=True, slots=True)
class TensorKind:
    """How a tensor is stored: `elements` numbers in `bytes` bytes."""

    name: str
    elements: int
    bytes: int


# ggml's types by their numbers
KINDS: Mapping[int, TensorKind] = {
    number: TensorKind(name, elements, size)
    for number, name, elements, size in (
        (0, "F32", 1, 4),
        (1, "F16", 1, 2),
        (2, "Q4_0", 32, 18),
        (3, "Q4_1", 32, 20),
        (6, "Q5_0", 32, 22),
        (7, "Q5_1", 32, 24),
        (8, "Q8_0", 32, 34),
        (9, "Q8_1", 32, 40),
        (10, "Q2_K", 256, 84),
        (11, "Q3_K", 256, 110),
        (12, "Q4_K", 256, 144),
        (13, "Q5_K", 256, 176),
        (14, "Q6_K", 256, 210),
        (15, "Q8_K", 256, 292),
        (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74),
        (18, "IQ3_XXS", 256, 98),
        (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18),
        (21, "IQ3_S", 256, 110),
        (22, "IQ2_S", 256, 82),
        (23, "IQ4_XS", 256, 136),
        (24, "I8", 1, 1),
        (25, "I16", 1, 2),
        (26, "I32", 1, 4),
        (27, "I64", 1, 8),
        (28, "F64", 1, 8),
        (29, "IQ1_M", 256, 56),
        (30, "BF16", 1, 2),
        (34, "TQ1_0", 256, 54),
        (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17),
        (40, "NVFP4", 64, 36),
        (41, "Q1_0", 128, 18),
    )
}


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a tensor lies: its kind, its shape with rows last, and its first byte of the file."""

    name: str
    kind: TensorKind
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return math.prod(self.shape) // self.kind.elements * self.kind.bytes


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The values by their keys, and the tensors in the order of the file."""

    metadata: Mapping[str, object]
    tensors: tuple[TensorPlace, ...]


def read_header(source: str, data: memoryview) -> GgufHeader:
    """The header of a file. Raises: ModelError."""
    cursor = ByteCursor(source, data)
    _check_version(cursor)
    tensors = cursor.count("Q", "tensors", 24, ITEMS)
    keys = cursor.count("Q", "keys", 13, ITEMS)
    metadata = dict[str, object]()
    for number in range(keys):
        key = cursor.name(f"key {number}")
        if key in metadata:
            raise ModelError(f"model: '{source}' has the key '{key}' twice.", code="gguf-key-twice")
        metadata[key] = _value(cursor, cursor.size("I", f"the type of '{key}'"), key)
    alignment = _alignment(source, metadata)
    places = [_tensor(cursor, number, alignment) for number in range(tensors)]
    begin = -(-cursor.place // alignment) * alignment
    placed = tuple(
        TensorPlace(place.name, place.kind, place.shape, begin + place.start) for place in places
    )
    _check_places(source, placed, len(data))
    return GgufHeader(metadata, placed)


def _check_version(cursor: ByteCursor) -> None:
    magic, source = bytes(cursor.take(4, "the magic number")), cursor.source
    if magic != MAGIC:
        raise ModelError(
            f"model: '{source}' begins with {magic!r}; expected {MAGIC!r}, with which a file of "
            "GGUF begins.",
            code="gguf-magic",
        )
    version = cursor.size("I", "the version")
    if version not in VERSIONS:
        big = version and not version & 0xFFFF
        found = "is big-endian" if big else f"has version {version} of GGUF"
        raise ModelError(
            f"model: '{source}' {found}; expected version 2 or 3, little-endian.",
            code="gguf-version",
            hints=("convert the model again with llama.cpp's convert_hf_to_gguf.py.",),
        )


def _value(cursor: ByteCursor, kind: int, key: str) -> object:
    what = f"the value of '{key}'"
    if kind == _TEXT:
        return cursor.text(what)
    if kind == _ARRAY:
        return _array(cursor, key)
    if kind not in _FORMS:
        raise ModelError(
            f"model: '{cursor.source}': the value of '{key}' has type {kind}; expected 0 to 12.",
            code="gguf-value-type",
        )
    return cursor.number(_FORMS[kind], what)


def _array(cursor: ByteCursor, key: str) -> object:
    """An array of numbers, or a tuple of texts."""
    kind = cursor.size("I", f"the type of the array '{key}'")
    if kind == _TEXT:
        count = cursor.count("Q", f"texts in '{key}'", 8, VALUES)
        return cursor.texts(count, f"'{key}'")
    if kind not in _FORMS:
        raise ModelError(
            f"model: '{cursor.source}': the array '{key}' holds values of type {kind}; expected "
            "numbers, truth values or texts.",
            code="gguf-array-type",
        )
    form = _FORMS[kind]
    size = struct.calcsize(f"<{form}")
    count = cursor.count("Q", f"values in '{key}'", size, VALUES)
    taken = cursor.take(count * size, f"'{key}'")
    return np.frombuffer(taken, np.uint8) != 0 if form == "?" else np.frombuffer(taken, f"<{form}")


def _alignment(source: str, metadata: Mapping[str, object]) -> int:
    found = metadata.get(ALIGNMENT_KEY, ALIGNMENT)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1 or found & (found - 1):
        raise ModelError(
            f"model: '{source}': '{ALIGNMENT_KEY}' is {found!r:.40}; expected a power of two.",
            code="gguf-alignment",
        )
    return found


def _tensor(cursor: ByteCursor, number: int, alignment: int) -> TensorPlace:
    """What is said of a tensor; its place is counted from where the tensors begin."""
    source, name = cursor.source, cursor.name(f"the name of tensor {number}")
    rank = cursor.size("I", f"the rank of '{name}'")
    if rank > RANK:
        raise ModelError(
            f"model: '{source}': '{name}' has {rank} dimensions; expected at most {RANK}.",
            code="gguf-rank",
        )
    sizes = [cursor.size("Q", f"the sizes of '{name}'") for _ in range(rank)]
    number = cursor.size("I", f"the type of '{name}'")
    start = cursor.size("Q", f"the place of '{name}'")
    if number not in KINDS:
        raise ModelError(
            f"model: '{source}': '{name}' has type {number}; expected one of ggml's: "
            f"{', '.join(map(str, KINDS))}.",
            code="gguf-tensor-type",
        )
    kind = KINDS[number]
    if min(sizes, default=1) < 1 or (sizes[0] if sizes else 1) % kind.elements:
        raise ModelError(
            f"model: '{source}': '{name}' of type {kind.name} has sizes {sizes}; expected 1 or "
            f"more, the first a multiple of {kind.elements}.",
            code="gguf-sizes",
        )
    if start % alignment:
        raise ModelError(
            f"model: '{source}': '{name}' begins at byte {start} of the tensors; expected a "
            f"multiple of {alignment}.",
            code="gguf-misaligned",
        )
    return TensorPlace(name, kind, tuple(reversed(sizes)), start)


def _check_places(source: str, tensors: tuple[TensorPlace, ...], size: int) -> None:
    """That names differ, and that no two tensors share a byte, nor one lies beyond the end."""
    names = set[str]()
    for tensor in tensors:
        if tensor.name in names:
            raise ModelError(
                f"model: '{source}' has the tensor '{tensor.name}' twice.", code="gguf-twice"
            )
        names.add(tensor.name)
        if tensor.start + tensor.nbytes > size:
            raise ModelError(
                f"model: '{source}': '{tensor.name}' of type {tensor.kind.name} and shape "
                f"{list(tensor.shape)} ends at byte {tensor.start + tensor.nbytes} of {size}.",
                code="gguf-range",
            )
    ordered = sorted(tensors, key=lambda tensor: tensor.start)
    for before, after in pairwise(ordered):
        if before.start + before.nbytes > after.start:
            raise ModelError(
                f"model: '{source}': '{before.name}' ends at byte "
                f"{before.start + before.nbytes}, and '{after.name}' begins at {after.start}.",
                code="gguf-overlap",
            )
