"""Which line of which file an instruction comes from: the section .debug_line of a shared object.

Read is the line number program of DWARF 2 to 4, as the DWARF standard gives it in its section 6.2:
a state machine whose rows say from which address on a line stands.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from .elf import section

_END_SEQUENCE, _SET_ADDRESS = 1, 2
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9


@dataclass(frozen=True, slots=True, order=True)
class _Row:
    """From this address on stands this line; line 0: the sequence ends."""

    address: int
    line: int
    file: str


class LineTable:
    """The rows of an object, in order of their addresses."""

    def __init__(self, binary: bytes) -> None:
        """Read the table; without one it knows no line."""
        self._rows = sorted(_rows(section(binary, ".debug_line")), key=lambda row: row.address)
        self._addresses = [row.address for row in self._rows]

    def line(self, address: int, file: str) -> int | None:
        """The line of `file` that the instruction at an address comes from; None: another file's.

        The address counts from where the object is loaded.
        """
        index = bisect_right(self._addresses, address) - 1
        row = self._rows[index] if index >= 0 else None
        return row.line if row is not None and row.line and row.file == file else None


class _Reader:
    """Numbers and texts one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def number(self, kind: str) -> int:
        """One number of the struct module's kind."""
        (value,) = struct.unpack_from(f"<{kind}", self.data, self.at)
        self.at += struct.calcsize(f"<{kind}")
        return int(value)

    def unsigned(self) -> int:
        """A LEB128 number."""
        return self._leb()[0]

    def signed(self) -> int:
        """A signed LEB128 number."""
        value, bits = self._leb()
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        """A text up to its NUL."""
        end = self.data.index(b"\0", self.at)
        value = self.data[self.at : end].decode()
        self.at = end + 1
        return value

    def _leb(self) -> tuple[int, int]:
        value = bits = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << bits
            bits += 7
            if byte < 0x80:
                return value, bits


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a unit's header says."""

    minimum: int
    line_base: int
    line_range: int
    lengths: tuple[int, ...]
    files: tuple[str, ...]

    @property
    def opcode_base(self) -> int:
        return len(self.lengths) + 1


def _rows(data: bytes) -> Iterator[_Row]:
    reader = _Reader(data, 0)
    while reader.at < len(data):
        length = reader.number("I")
        end = reader.at + length
        unit = _header(reader)
        yield from _program(reader, end, unit)
        reader.at = end


def _header(reader: _Reader) -> _Unit:
    version = reader.number("H")
    assert version <= 4
    reader.number("I")
    minimum = reader.number("B")
    if version == 4:
        reader.number("B")
    reader.number("B")
    line_base, line_range = reader.number("b"), reader.number("B")
    lengths = tuple(reader.number("B") for _ in range(reader.number("B") - 1))
    while reader.text():
        pass  # the folders
    files = []
    while name := reader.text():
        files.append(name)
        for _ in range(3):
            reader.unsigned()
    return _Unit(minimum, line_base, line_range, lengths, tuple(files))


def _program(reader: _Reader, end: int, unit: _Unit) -> Iterator[_Row]:
    """Run a line number program."""
    address, line, file = 0, 1, 1
    while reader.at < end:
        opcode = reader.number("B")
        if opcode >= unit.opcode_base:
            step = opcode - unit.opcode_base
            address += step // unit.line_range * unit.minimum
            line += unit.line_base + step % unit.line_range
            yield _Row(address, line, unit.files[file - 1])
        elif opcode == 0:
            size = reader.unsigned()
            after, kind = reader.at + size, reader.number("B")
            if kind == _SET_ADDRESS:
                address = reader.number("Q")
            elif kind == _END_SEQUENCE:
                yield _Row(address, 0, "")
                address, line, file = 0, 1, 1
            reader.at = after
        elif opcode == _COPY:
            yield _Row(address, line, unit.files[file - 1])
        elif opcode == _ADVANCE_PC:
            address += reader.unsigned() * unit.minimum
        elif opcode == _ADVANCE_LINE:
            line += reader.signed()
        elif opcode == _SET_FILE:
            file = reader.unsigned()
        elif opcode == _CONST_ADD_PC:
            address += (255 - unit.opcode_base) // unit.line_range * unit.minimum
        elif opcode == _FIXED_ADVANCE_PC:
            address += reader.number("H")
        else:
            for _ in range(unit.lengths[opcode - 1]):
                reader.unsigned()
