"""The zip file that torch.export.save writes: entries without compression, read in place.

Nothing in it is unpickled: the entries that are pickles are never opened. An archive is not
trusted: names, sizes and places of entries are checked before a byte of them is read.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import ModelError
from ..limits import ImportLimits
from ..mapped_file import mapped_file

ENTRIES = 1 << 18  # of an archive
_HEADER = 30  # bytes of the local header of an entry, in front of its name
_SIGNATURE = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Archive:
    """Entries by their name in the root folder: where each lies in `data`."""

    name: str
    data: memoryview
    places: Mapping[str, tuple[int, int]]

    def read(self, name: str) -> memoryview:
        """The bytes of an entry. Raises: ModelError where there is none."""
        if name not in self.places:
            raise ModelError(
                f"model: the archive has no '{name}'; expected one that torch.export.save wrote.",
                code="pt2-entry",
            )
        start, size = self.places[name]
        return self.data[start : start + size]


def open_archive(source: str | os.PathLike[str] | bytes, limits: ImportLimits) -> Archive:
    """An archive of a path or of bytes. Raises: ModelFileError, ModelError."""
    if isinstance(source, bytes):
        return _indexed("model", memoryview(source))
    path = Path(source)
    return _indexed(path.stem, mapped_file(path, limits.file_bytes))


class _Bytes:
    """A file that zipfile reads from memory, without a copy of it."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.place = data, 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = 0) -> int:
        self.place = max(0, (0, self.place, len(self.data))[whence] + offset)
        return self.place

    def read(self, size: int = -1) -> bytes:
        end = len(self.data) if size < 0 else self.place + size
        found = bytes(self.data[self.place : end])
        self.place += len(found)
        return found


def _indexed(name: str, data: memoryview) -> Archive:
    try:
        with zipfile.ZipFile(_Bytes(data)) as file:
            infos = file.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
        raise ModelError(
            f"model: it is no archive of torch.export: {error}.",
            code="pt2-zip",
            hints=("torch.export.save(exported, 'model.pt2') writes one.",),
        ) from error
    if len(infos) > ENTRIES:
        raise ModelError(
            f"model: the archive has {len(infos)} entries; expected at most {ENTRIES}.",
            code="pt2-entries",
        )
    places = dict[str, tuple[int, int]]()
    roots = {info.filename.partition("/")[0] for info in infos}
    if len(roots) != 1:
        raise ModelError(
            f"model: the archive has {len(roots)} folders at its root; expected one.",
            code="pt2-root",
        )
    for info in infos:
        own = info.filename.partition("/")[2]
        if own in places:
            raise ModelError(f"model: the archive has '{own}' twice.", code="pt2-twice")
        places[own] = _place(info, data)
    return Archive(name, data, places)


def _place(info: zipfile.ZipInfo, data: memoryview) -> tuple[int, int]:
    """Where the bytes of an entry lie. Raises: ModelError where they could not."""
    start = info.header_offset
    header = bytes(data[start : start + _HEADER])
    stored = info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size
    if not stored or info.flag_bits & 1:
        raise ModelError(
            f"model: '{info.filename}' is compressed or encrypted; expected plain bytes.",
            code="pt2-compressed",
        )
    if len(header) < _HEADER or not header.startswith(_SIGNATURE):
        raise ModelError(f"model: '{info.filename}' has no header.", code="pt2-header")
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    begin = start + _HEADER + names
    if begin + info.file_size > len(data):
        raise ModelError(
            f"model: '{info.filename}' ends at byte {begin + info.file_size} of {len(data)}.",
            code="pt2-range",
        )
    return begin, info.file_size
