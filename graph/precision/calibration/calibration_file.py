"""The file of a calibration: an npz of plain arrays, one of them a JSON text that says which values
they are of. What it says is believed only within bounds: a file may come from anybody.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ....runtime.files.regular_file import open_regular
from ....runtime.files.replacement import replacing
from ....tir.errors import IRError
from ....tir.json_reader import Json, Reader, parse_json
from ....tir.output_file import writing
from ...errors import ModelFileError
from ...types import Array

HEADER = "header"  # the name of the text, whose bytes are an array of uint8
_LARGEST = 1 << 32  # bytes of a file
_MOST_ARRAYS = 64
_BEFORE_HEADER = 10  # bytes: the signature of a .npy, its version, the length of its header
_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00(..){'descr': '(<f4|<f8|<i8|\|u1)', 'fortran_order': False, "
    rb"'shape': \((\d{1,12}),\), } *\n",
    re.DOTALL,
)
_SUFFIX = ".npy"  # of the name of each array in the archive


def write_calibration(path: Path, header: Json, arrays: Mapping[str, Array]) -> None:
    """Write the file beside its place, then move it there in one step. Raises: OutputFileError."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with writing(path), replacing(Path(os.path.realpath(path))) as file:
        np.savez(file, **{HEADER: text, **arrays})  # type: ignore[arg-type]  # its stub lists other keywords


def read_calibration(path: Path) -> tuple[Reader, dict[str, Array]]:
    """The header of a file, and its arrays by name. Raises: ModelFileError."""
    try:
        with open_regular(path) as file:
            if file is None:
                raise calibration_file_error(path, "it is no regular file")
            if os.fstat(file.fileno()).st_size > _LARGEST:
                raise calibration_file_error(path, f"it has more than {_LARGEST} bytes")
            data = file.read()
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise calibration_file_error(path, f"it cannot be read: {reason}") from error
    try:
        arrays = _arrays(data)
        if HEADER not in arrays:
            raise ValueError("it has no header")
        header = parse_json(arrays.pop(HEADER).tobytes(), "the header")
    except (ValueError, EOFError, OSError, KeyError, RuntimeError, NotImplementedError) as error:
        text = error.message if isinstance(error, IRError) else str(error)
        raise calibration_file_error(path, f"it is damaged: {text.rstrip('.')}") from error
    except zipfile.BadZipFile as error:
        raise calibration_file_error(path, f"it is no npz: {error}") from error
    return header, arrays


def calibration_file_error(path: Path, problem: str) -> ModelFileError:
    """The error for a file that is no calibration."""
    return ModelFileError(
        f"calibration: '{path}' is no calibration: {problem}; expected a file that "
        "Calibration.save has written.",
        code="calibration-file",
    )


def _arrays(data: bytes) -> dict[str, Array]:
    """The arrays of an npz whose members are stored as they are, so that none is larger than the
    file.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > _MOST_ARRAYS:
            raise ValueError(f"it holds {len(members)} arrays")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > len(data):
                raise ValueError(f"'{member.filename}' is compressed, or larger than the file")
        return {
            member.filename.removesuffix(_SUFFIX): _array(archive.read(member))
            for member in members
        }


def _array(data: bytes) -> Array:
    """An array of one axis as NumPy writes it, of which no byte is missing and none is left."""
    found = _ARRAY.match(data)
    if found is None:
        raise ValueError("an array has another header than NumPy writes for one axis")
    start, kind, count = found.end(), np.dtype(found[2].decode()), int(found[3])
    if int.from_bytes(found[1], "little") != start - _BEFORE_HEADER:
        raise ValueError("the header of an array has another length than it says")
    if count * kind.itemsize != len(data) - start:
        raise ValueError(f"an array of {kind}[{count}] has {len(data) - start} bytes")
    return np.frombuffer(data, kind, offset=start)
