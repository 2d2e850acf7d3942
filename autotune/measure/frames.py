"""Framing for messages over a pipe: each frame is a JSON object and some blobs."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from ...tir.json_reader import Json

_HEAD = struct.Struct("<II")  # bytes of the JSON text, number of blobs
_SIZE = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    body: Mapping[str, Json]
    blobs: tuple[bytes, ...] = ()


def encode(body: Mapping[str, Json], blobs: Sequence[bytes] = ()) -> bytes:
    """A frame as bytes."""
    text = json.dumps(body, separators=(",", ":")).encode()
    sizes = b"".join(_SIZE.pack(len(blob)) for blob in blobs)
    return b"".join((_HEAD.pack(len(text), len(blobs)), sizes, text, *blobs))


def decode(data: bytes) -> tuple[Frame, bytes] | None:
    """The first frame of some bytes, and the remaining bytes; None where it is incomplete."""
    if len(data) < _HEAD.size:
        return None
    length, count = _HEAD.unpack_from(data)
    start = _HEAD.size + count * _SIZE.size
    if len(data) < start:
        return None
    sizes = [_SIZE.unpack_from(data, _HEAD.size + n * _SIZE.size)[0] for n in range(count)]
    if len(data) < start + length + sum(sizes):
        return None
    blobs, place = [], start + length
    for size in sizes:
        blobs.append(data[place : place + size])
        place += size
    return Frame(json.loads(data[start : start + length]), tuple(blobs)), data[place:]


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next frame of a stream; None at its end. Raises: EOFError in the middle of a frame."""
    head = stream.read(_HEAD.size)
    if not head:
        return None
    count = _HEAD.unpack(head)[1] if len(head) == _HEAD.size else 0
    sizes = stream.read(count * _SIZE.size)
    length = _HEAD.unpack(head)[0] if len(head) == _HEAD.size else 0
    rest = sum(n for (n,) in _SIZE.iter_unpack(sizes)) + length
    found = decode(head + sizes + stream.read(rest)) if len(head) == _HEAD.size else None
    if found is None:
        raise EOFError("the other end closed the pipe in the middle of a frame")
    return found[0]
