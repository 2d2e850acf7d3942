"""The safetensors layout: a header in JSON, then the arrays. Each array starts at a multiple of 64
bytes, so that it can be used where the file is mapped; a padding entry fills each gap, because the
layout allows none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from ...tir.dtype import dtype
from ...tir.errors import IRError
from ...tir.json_reader import Json, parse_json
from ..arrays import ALIGNMENT, Array

_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
_KINDS = {name: kind for kind, name in _NAMES.items()}
_BYTES = {
    "int4": np.dtype("int8"),
    "int2": np.dtype("int8"),
    "uint4": np.dtype("uint8"),
    "uint2": np.dtype("uint8"),
    "float4_e2m1fn": np.dtype("uint8"),
}
_PADDING = "_padding"
_LONGEST_HEADER = 100 << 20  # bytes, as the layout's own reader has it


class SafetensorsWriter:
    """The bytes of a file of named arrays, piece by piece."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays
        entries: dict[str, Json] = {}
        place = 0
        for number, (name, array) in enumerate(arrays.items()):
            gap = -place % ALIGNMENT
            if gap:
                entries[f"{_PADDING}.{number}"] = _entry("U8", (gap,), place, gap)
                place += gap
            kind = _NAMES[stored_type(array.dtype).name]
            entries[name] = _entry(kind, array.shape, place, array.nbytes)
            place += array.nbytes
        text = json.dumps(entries, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % ALIGNMENT)
        self._head = len(text).to_bytes(8, "little") + text
        self.size = len(self._head) + place

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes of the file, in order."""
        yield self._head
        place = 0
        for array in self._arrays.values():
            gap = -place % ALIGNMENT
            if gap:
                yield bytes(gap)
            if array.nbytes:
                yield np.asarray(array, order="C").reshape(-1).view(np.uint8).data
            place += gap + array.nbytes


def read_safetensors(data: memoryview) -> dict[str, Array]:
    """The arrays of a file, read-only, in its own memory; padding is left out.

    Raises: IRError for what is not such a file.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _LONGEST_HEADER):
        raise _wrong("the header is longer than the file")
    body = data[8 + length :].toreadonly()
    header = parse_json(bytes(data[8 : 8 + length]), "weights")
    arrays: dict[str, Array] = {}
    for name, entry in header.fields():
        if name == "__metadata__" or name.startswith(_PADDING):
            continue
        kind = dtype(_KINDS[entry["dtype"].one_of(*_KINDS)]).numpy
        shape = entry["shape"].shape()
        offsets = [item.integer() for item in entry["data_offsets"].items(2)]
        begin, end = offsets if len(offsets) == 2 else (1, 0)
        if not begin <= end <= len(body) or end - begin != prod(shape) * kind.itemsize:
            raise _wrong(f"'{name}' does not lie in the file")
        arrays[name] = np.frombuffer(body[begin:end], kind).reshape(shape)
    return arrays


def stored_type(kind: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The type of the layout whose arrays hold those of `kind`: a byte for less than one."""
    return _BYTES.get(kind.name, kind)


def _entry(kind: str, shape: tuple[int, ...], place: int, size: int) -> Json:
    return {"dtype": kind, "shape": list(shape), "data_offsets": [place, place + size]}


def _wrong(problem: str) -> IRError:
    return IRError(f"weights: {problem}.", code="weights-layout")
