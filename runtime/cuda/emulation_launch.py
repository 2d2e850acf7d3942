"""One launch on the emulated device: its memory, its arguments, what it found.

The tables are those of the structures at the top of emulation.cpp.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import ALIGNMENT, Array, memory
from ..library import Pointer, ffi
from .emulation_build import Emulation
from .emulation_report import Finding, Index, Party
from .emulation_source import FENCE

GLOBAL, SHARED, CONSTANT = range(3)

_MOST_FINDINGS = 64
_KINDS = (
    *("race", "out-of-bounds", "unwritten", "barrier", "warp"),
    *("early", "misaligned", "read-only", "refused", "crash"),
)
_ACTIONS = (
    *("reads", "writes", "adds atomically"),
    *("runs", "waits at a barrier", "waits for lanes", "left"),
)
_FINDING = struct.Struct("<4q4q4qQ")
_NUMBERS = ffi.typeof("long long[]")
_BYTES = ffi.typeof("char[]")
_POINTERS = ffi.typeof("void *[]")
_GRANULE = 4  # bytes: the most that two threads share without being told apart


@dataclass(frozen=True, slots=True)
class Memory:
    """A range that a kernel may touch. granule: bytes that are told apart."""

    name: str
    address: int
    bytes: int
    item: int
    kind: int

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """As the emulation reads it."""
        return self.address, self.bytes, min(self.item, _GRANULE), self.kind


class FencedArrays:
    """Copies of the arrays of a run, with a fence of bytes that belong to nobody around each."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = dict(arrays)
        sizes = [-(-array.nbytes // FENCE) * FENCE + FENCE for array in arrays.values()]
        self._arena = np.empty(FENCE + sum(sizes) + ALIGNMENT * 4, np.uint8)
        start = -self._arena.ctypes.data % (ALIGNMENT * 4) + FENCE
        self._copies: dict[str, Array] = {}
        for (name, array), size in zip(self._arrays.items(), sizes, strict=True):
            copy = self._arena[start : start + array.nbytes].view(array.dtype)
            self._copies[name] = copy.reshape(array.shape)
            self._copies[name][...] = array
            start += size

    def value(self, argument: str | int | float) -> int | float:
        """An argument, an array by its address."""
        return self._copies[argument].ctypes.data if isinstance(argument, str) else argument

    def memory(self, made: Emulation, kernel: str, shared_bytes: int) -> list[Memory]:
        """Every range that a launch may touch."""
        found = []
        for name, copy in self._copies.items():
            kind = GLOBAL if self._arrays[name].flags.writeable else CONSTANT
            found.append(Memory(name, copy.ctypes.data, copy.nbytes, copy.itemsize, kind))
        items = made.source.items
        for array in made.shared(kernel):
            item = items.get(array.name, _GRANULE)
            found.append(Memory(array.name, array.address, array.bytes, item, SHARED))
        found += [Memory(a.name, a.address, shared_bytes, 1, SHARED) for a in made.dynamic()]
        return found

    def copy_back(self) -> None:
        """Write what may be written."""
        for name, array in self._arrays.items():
            if array.flags.writeable:
                array[...] = self._copies[name]


def pack_arguments(types: str, values: Sequence[int | float]) -> tuple[Pointer, list[Pointer]]:
    """Pointers to the values as the kernel's parameters hold them, and what holds them."""
    held = []
    for letter, value in zip(types, values, strict=True):
        number = float(value) if letter in "fd" else int(value)
        data = struct.pack("<Q" if letter == "P" else f"<{letter}", number)
        held.append(ffi.new(_BYTES, data.ljust(8, b"\0")))
    return ffi.new(_POINTERS, held), held


def run_launch(
    made: Emulation,
    kernel: str,
    shape: tuple[Index, Index],
    arguments: tuple[Pointer, list[Pointer]],
    memories: Sequence[Memory],
) -> list[Finding]:
    """Run every block; what was found."""
    grid, block = shape
    numbers = [*grid, *block, int(made.checked), _MOST_FINDINGS, 0, len(memories)]
    numbers += [number for memory in memories for number in memory.numbers]
    counts = np.zeros(2, np.int64)
    findings = np.zeros(_MOST_FINDINGS * _FINDING.size, np.uint8)
    made.run(
        made.thread(kernel),
        arguments[0],
        ffi.new(_NUMBERS, numbers),
        ffi.from_buffer(_NUMBERS, counts),
        memory(findings),
        ffi.NULL,
    )
    rows = _FINDING.iter_unpack(findings[: int(counts[0]) * _FINDING.size].tobytes())
    return [_finding(row, kernel, shape, made, memories) for row in rows]


def _finding(
    row: tuple[int, ...],
    kernel: str,
    shape: tuple[Index, Index],
    made: Emulation,
    memories: Sequence[Memory],
) -> Finding:
    kind, times, where, offset = _KINDS[row[0]], *row[1:4]
    parties = tuple(_party(part, shape, made) for part in (row[4:8], row[8:12]) if part[0] >= 0)
    note = ffi.string(ffi.cast("char *", row[12])).decode() if row[12] else ""
    if where < 0:
        return Finding(kind, kernel, parties, None, None, times, note)
    place = memories[where]
    return Finding(kind, kernel, parties, place.name, offset // place.item, times, note)


def _party(row: tuple[int, ...], shape: tuple[Index, Index], made: Emulation) -> Party:
    block, thread, site, action = row
    line = -site if site < 0 else None
    lines = made.source.text.splitlines()
    text = lines[line - 1].strip() if line is not None and line <= len(lines) else ""
    grid, extent = shape
    return Party(_index(block, grid), _index(thread, extent), _ACTIONS[action], line, text)


def _index(number: int, extent: Index) -> Index:
    x, y, _ = extent
    return number % x, number // x % y, number // (x * y)
