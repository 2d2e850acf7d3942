"""Read ONNX tensors: from the model itself, or from files beside it, which are opened with care.

A file named by a model must be a regular file with one name, inside the model's folder, reached
through no link but those of Hugging Face's cache; the bytes read are those that the tensor's type
asks for, no more.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from onnx import TensorProto

from ....tir.dtype import dtype
from ....tir.sizes import closed_shape
from ...errors import ModelError, ModelFileError
from ...types import Array, TensorType, frozen
from ..limits import Account, ImportLimits, checked_type

DTYPES: dict[int, str] = {
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.BOOL: "bool",
    TensorProto.DOUBLE: "float64",
    TensorProto.FLOAT: "float32",
    TensorProto.FLOAT16: "float16",
    TensorProto.FLOAT4E2M1: "float4_e2m1fn",
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    TensorProto.FLOAT8E5M2: "float8_e5m2",
    TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    TensorProto.INT2: "int2",
    TensorProto.INT4: "int4",
    TensorProto.INT8: "int8",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.UINT2: "uint2",
    TensorProto.UINT4: "uint4",
    TensorProto.UINT8: "uint8",
    TensorProto.UINT16: "uint16",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
}
# which repeated field holds the elements of a type that are not stored as raw bytes
_FIELDS = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}


def dtype_name(elem_type: int) -> str:
    """Our name of an ONNX element type, or ONNX's own where we have none."""
    if elem_type in DTYPES:
        return DTYPES[elem_type]
    known = elem_type in TensorProto.DataType.values()
    return TensorProto.DataType.Name(elem_type).lower() if known else f"number {elem_type}"


class TensorReader:
    """Turns TensorProtos into read-only arrays and keeps count of the bytes.

    folder: where external data may lie; None when there is no such place. elements: those that were
    read apart, by the token that stands in their place.
    """

    def __init__(
        self,
        folder: Path | None,
        limits: ImportLimits,
        elements: Mapping[bytes, Array] | None = None,
    ) -> None:
        self.folder = folder
        self.limits = limits
        self._elements = elements or {}
        self.account = Account(limits)

    def read(self, tensor: TensorProto, what: str) -> Array:
        """The elements of `tensor`; `what` names it in messages.

        Raises: ModelError, ModelFileError.
        """
        shape = tuple(tensor.dims)
        type_ = checked_type(what, dtype_name(tensor.data_type), shape, self.limits)
        self.account.store(what, type_)
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, type_, what)
        if tensor.HasField("raw_data"):
            data = tensor.raw_data
            return _from_bytes(self._elements.get(data, data), type_, what)
        items = getattr(tensor, _FIELDS.get(type_.dtype, "int32_data"))
        kind = dtype(type_.dtype)
        if not kind.is_storage:
            _check_count(len(items), math.prod(shape), "elements", type_, what)
            return frozen(np.array(items).astype(kind.numpy).reshape(shape))
        bits = np.array(items, np.int64).astype(f"<u{kind.bytes}")
        if kind.bits >= 8:
            _check_count(len(items), math.prod(shape), "elements", type_, what)
        return _from_bytes(bits.tobytes(), type_, what)

    def _external(self, tensor: TensorProto, type_: TensorType, what: str) -> Array:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        offset = _whole(entries.get("offset", "0"), "offset", what)
        packed = _packed_bytes(type_)
        length = _whole(entries.get("length", str(packed)), "length", what)
        _check_count(length, packed, "bytes", type_, what)
        if self.folder is None:
            raise ModelFileError(
                f"model: {what} lies in file '{location}', but the model was not read from a file.",
                code="external-folder",
                hints=("pass the model's path instead of its bytes.",),
            )
        with _opened(self.folder, location, what) as descriptor:
            size = os.fstat(descriptor).st_size
            if offset + length > size:
                raise ModelFileError(
                    f"model: {what} ends at byte {offset + length} of '{location}', which has "
                    f"{size} bytes.",
                    code="external-range",
                )
            return _from_bytes(_read_at(descriptor, offset, length), type_, what)


def _check_count(got: int, expected: int, unit: str, type_: TensorType, what: str) -> None:
    if got != expected:
        raise ModelError(
            f"model: {what} of type {type_} has {got} {unit}; expected {expected}.",
            code="model-tensor-size",
        )


def _packed_bytes(type_: TensorType) -> int:
    """Bytes of all elements in a file, where those of less than a byte share one."""
    return -(-math.prod(closed_shape(type_.shape)) * dtype(type_.dtype).bits // 8)


def _from_bytes(data: bytes | Array, type_: TensorType, what: str) -> Array:
    _check_count(len(data), _packed_bytes(type_), "bytes", type_, what)
    kind, shape = dtype(type_.dtype), closed_shape(type_.shape)
    if kind.bits < 8:
        array = _unpacked(np.frombuffer(data, np.uint8), kind.bits, math.prod(shape))
        array = array.view(kind.numpy).reshape(shape)
    else:
        stored = np.frombuffer(data, f"<u{kind.bytes}").astype(f"u{kind.bytes}", copy=False)
        array = stored.view(kind.numpy).reshape(shape)
    array.flags.writeable = False
    return array


def _unpacked(data: Array, bits: int, count: int) -> Array:
    """Elements of so many bits, a byte for each: the first of a byte lies in its low bits."""
    places = np.arange(0, 8, bits, dtype=np.uint8)
    spread = np.right_shift(data[:, None], places) & np.uint8((1 << bits) - 1)
    return spread.reshape(-1)[:count].copy()


def _whole(text: str, key: str, what: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    raise ModelError(
        f"model: external data of {what} has {key} '{text}'; expected a whole number.",
        code="external-number",
    )


@contextmanager
def _opened(folder: Path, location: str, what: str) -> Iterator[int]:
    """A descriptor of `location` below `folder`, opened part by part, no link followed but one of
    Hugging Face's cache.
    """
    parts = location.split("/")
    if not location or "\0" in location or "\\" in location or {"", ".", ".."} & set(parts):
        raise ModelFileError(
            f"model: {what} names file {location!r}; expected a relative path inside the model's "
            "folder.",
            code="external-path",
        )
    if (blob := _blob(folder / location)) is not None:
        folder, parts = blob.parent, [blob.name]
    current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            flags = (
                os.O_RDONLY
                | os.O_NOFOLLOW
                | os.O_CLOEXEC
                | (os.O_NONBLOCK if last else os.O_DIRECTORY)
            )
            following = os.open(part, flags, dir_fd=current)
            os.close(current)
            current = following
        status = os.fstat(current)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise ModelFileError(
                f"model: {what} names '{location}', which is not a regular file with one name.",
                code="external-kind",
            )
        yield current
    except OSError as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"model: {what} names '{location}', which cannot be opened: {error.strerror}.",
            code="external-open",
            notes=("links are not followed.",),
        ) from error
    finally:
        os.close(current)


def _blob(path: Path) -> Path | None:
    """What a link in Hugging Face's cache leads to: a file of snapshots/REVISION is one to a file
    of the folder blobs beside snapshots. None for every other path.
    """
    if not path.is_symlink():
        return None
    folder = path.parent.resolve()
    target = Path(os.path.normpath(folder / path.readlink()))
    revision = next((f for f in (folder, *folder.parents) if f.parent.name == "snapshots"), None)
    if revision is None or target.parent != revision.parent.parent / "blobs":
        return None
    return target


def _read_at(descriptor: int, offset: int, length: int) -> Array:
    """Bytes of a file, read to where they stay; fewer where the file ends. A map of the file would
    take less memory, and end the process where somebody cuts the file short.
    """
    data = np.empty(length, np.uint8)
    view, done = data.data, 0
    while done < length:
        count = os.preadv(descriptor, [view[done : done + (1 << 30)]], offset + done)
        if not count:
            break
        done += count
    return data[:done]
