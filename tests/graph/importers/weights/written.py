"""Files of GGUF and of safetensors, written byte by byte: right ones, and any others."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence

GgufTensor = tuple[str, int, Sequence[int], bytes]  # its name, type, sizes and data
Entry = tuple[str, Sequence[int], bytes]  # a tensor of safetensors: its type, sizes and data


def text(value: str | bytes) -> bytes:
    """A text of GGUF."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def gguf_head(
    infos: Sequence[bytes],
    keys: Sequence[bytes] = (),
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    """All in front of the tensors. counts: of tensors and keys, where they are not true."""
    numbers = counts or (len(infos), len(keys))
    return magic + struct.pack("<IQQ", version, *numbers) + b"".join(keys) + b"".join(infos)


def gguf_info(name: str | bytes, kind: int, sizes: Sequence[int], place: int) -> bytes:
    """What the file says of a tensor."""
    shape = struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
    return text(name) + shape + struct.pack("<IQ", kind, place)


def gguf_key(name: str | bytes, kind: int, value: bytes) -> bytes:
    """A key and its value."""
    return text(name) + struct.pack("<I", kind) + value


def gguf_file(
    tensors: Sequence[GgufTensor],
    keys: Mapping[str, tuple[int, bytes]] | None = None,
    *,
    version: int = 3,
    alignment: int = 32,
) -> bytes:
    """A whole file."""
    infos, body = [], b""
    for name, kind, sizes, data in tensors:
        body += bytes(-len(body) % alignment)
        infos.append(gguf_info(name, kind, sizes, len(body)))
        body += data
    written = [gguf_key(name, *value) for name, value in (keys or {}).items()]
    head = gguf_head(infos, written, version=version)
    return head + bytes(-len(head) % alignment) + body


def safetensors_file(header: object, body: bytes = b"", *, size: int | None = None) -> bytes:
    """A file whose header is an object, or bytes. size: what it says of the header's."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(head) if size is None else size) + head + body


def safetensors_of(tensors: Mapping[str, Entry]) -> bytes:
    """A whole file."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        place = [len(body), len(body) + len(data)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": place}
        body += data
    return safetensors_file(header, body)
