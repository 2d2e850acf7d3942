"""The elements of a model's large tensors, read past protobuf, which would hold them once more and
hand out a copy of that: at its peak an import takes the size of the file once, not twice.

Of the message no more is understood than where the elements stand: ModelProto.graph, its
`initializer`, of these `raw_data`. All else goes to protobuf as it is, with a token in their place,
which no file can know. What is not written as that asks is left to protobuf as a whole.
https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BufferedIOBase

import numpy as np

from ...types import Array

LARGE = 1 << 16  # bytes of elements from which on they are read apart
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # fields of ModelProto, GraphProto, TensorProto
_VARINT, _LENGTH = 0, 2  # wire types
_SIZES = {1: 8, 5: 4}  # bytes of those of fixed size; others, of old, are left to protobuf
_MOST_VARINT = 10  # bytes


@dataclass(frozen=True, slots=True, eq=False)
class SplitModel:
    """The bytes of a model with tokens in place of large elements, and these by token."""

    message: bytes
    elements: Mapping[bytes, Array]


class _NotAsExpected(Exception):
    """A message is not encoded as ours are."""


def split_model(file: BufferedIOBase, size: int) -> SplitModel | None:
    """Read a model of so many bytes; None where only protobuf can say what it is."""
    try:
        splitting = _Splitting(file)
        return SplitModel(splitting.model(size), splitting.elements)
    except _NotAsExpected:
        return None


class _Splitting:
    """One reading of a file. elements: what was read apart so far."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._secret = secrets.token_bytes(16)
        self.elements: dict[bytes, Array] = {}

    def model(self, size: int) -> bytes:
        """A ModelProto of so many bytes."""
        return self._message(size, _GRAPH, self._graph)

    def _graph(self, size: int) -> bytes:
        return self._message(size, _INITIALIZER, self._tensor)

    def _tensor(self, size: int) -> bytes:
        return self._message(size, _RAW_DATA, self._elements)

    def _elements(self, size: int) -> bytes:
        """The token of elements that are read apart."""
        array = np.empty(size, np.uint8)
        if self._file.readinto(array.data) != size:
            raise _NotAsExpected
        token = self._secret + len(self.elements).to_bytes(8, "little")
        self.elements[token] = array
        return token

    def _message(self, size: int, number: int, inner: Callable[[int], bytes]) -> bytes:
        """A message, of which `inner` reads the large fields of a number."""
        parts: list[bytes] = []
        end = self._file.tell() + size
        while (left := end - self._file.tell()) > 0:
            key = self._varint()
            wire, length = key & 7, _SIZES.get(key & 7)
            parts.append(_encoded(key))
            if wire == _VARINT:
                parts.append(_encoded(self._varint()))
                continue
            if wire == _LENGTH:
                length = self._varint()
            if length is None or length > left:
                raise _NotAsExpected
            is_inner = wire == _LENGTH and key >> 3 == number and length >= LARGE
            payload = inner(length) if is_inner else self._bytes(length)
            if wire == _LENGTH:
                parts.append(_encoded(len(payload)))
            parts.append(payload)
        if left < 0:
            raise _NotAsExpected
        return b"".join(parts)

    def _varint(self) -> int:
        """A number, the low seven bits first."""
        value = 0
        for place in range(_MOST_VARINT):
            (byte,) = self._bytes(1)
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise _NotAsExpected

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count)
        if len(found) != count:
            raise _NotAsExpected
        return found


def _encoded(value: int) -> bytes:
    """A number as a varint."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
