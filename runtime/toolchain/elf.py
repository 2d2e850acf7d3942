"""What a shared object's file says of itself: its sections and its symbols, local ones too.

Read are 64-bit little-endian ELF files, which is what every Linux that we run on has.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB, _NOBITS = 2, 8
_MAGIC = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """A named place. address: where it lies, counted from where the object is loaded."""

    name: str
    address: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Section:
    name: int
    kind: int
    offset: int
    bytes: int
    link: int


def section(binary: bytes, name: str) -> bytes:
    """The content of a section; nothing where there is none of that name."""
    sections = _sections(binary)
    names = _content(binary, sections[struct.unpack_from("<H", binary, 0x3E)[0]])
    for found in sections:
        if _text(names, found.name) == name:
            return _content(binary, found)
    return b""


def symbols(binary: bytes) -> dict[str, ElfSymbol]:
    """Every symbol by its name."""
    found = {}
    sections = _sections(binary)
    for table in sections:
        if table.kind == _SYMTAB:
            names = _content(binary, sections[table.link])
            for entry in _SYMBOL.iter_unpack(_content(binary, table)):
                name = _text(names, entry[0])
                found[name] = ElfSymbol(name, entry[4], entry[5])
    return found


def _sections(binary: bytes) -> list[_Section]:
    assert binary.startswith(_MAGIC)
    offset = struct.unpack_from("<Q", binary, 0x28)[0]
    count = struct.unpack_from("<H", binary, 0x3C)[0]
    rows = (_SECTION.unpack_from(binary, offset + i * _SECTION.size) for i in range(count))
    return [_Section(row[0], row[1], row[4], row[5], row[6]) for row in rows]


def _content(binary: bytes, found: _Section) -> bytes:
    return b"" if found.kind == _NOBITS else binary[found.offset : found.offset + found.bytes]


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()
