"""One launch on the emulated device: its memory, its arguments, what it found.

The tables are those of the structures at the top of emulation.cpp.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....codegen.cuda.artifact import KernelLaunch
from ...arrays import ALIGNMENT, Array, memory
from ...toolchain.library import Pointer, ffi
from .build import Emulation
from .report import AccessSite, BarrierReport, EmulationReport, EmulatorFinding, Index, Party
from .source import FENCE

GLOBAL, SHARED, CONSTANT = range(3)

_MOST_FINDINGS, _MOST_SITES = 64, 4096
_KINDS = (
    *("race", "out-of-bounds", "unwritten", "barrier", "warp"),
    *("early", "misaligned", "read-only", "refused", "crash"),
)
_ACTIONS = (
    *("reads", "writes", "adds atomically"),
    *("runs", "waits at a barrier", "waits for lanes", "left"),
)
_AT_BARRIER = _ACTIONS.index("waits at a barrier")
_FINDING = struct.Struct("<4q4q4qQ")
_SITE = struct.Struct("<8q")
_NUMBERS = ffi.typeof("long long[]")
_BYTES = ffi.typeof("char[]")
_POINTERS = ffi.typeof("void *[]")
_POISON = 0xFF
_GRANULE = 4  # bytes: the most that two threads share without being told apart


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """A range that a kernel may touch. written: the address of a byte for each of its bytes, not 0
    where a kernel wrote; 0: all count as written.
    """

    name: str
    address: int
    bytes: int
    item: int
    kind: int
    written: int = 0

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """As the emulation reads it."""
        return self.address, self.bytes, min(self.item, _GRANULE), self.kind, self.written


class FencedArrays:
    """Copies of the arrays of a run, with a fence of bytes that belong to nobody around each: NaN
    in every float type.
    """

    def __init__(self, arrays: Mapping[str, Array], fresh: Collection[str] = ()) -> None:
        """fresh: arrays of which nothing may be read before a kernel writes it."""
        self._arrays = dict(arrays)
        self._written = {name: np.zeros(arrays[name].nbytes, np.uint8) for name in fresh}
        sizes = [-(-array.nbytes // FENCE) * FENCE + FENCE for array in arrays.values()]
        self._arena = np.full(FENCE + sum(sizes) + ALIGNMENT * 4, _POISON, np.uint8)
        start = -self._arena.ctypes.data % (ALIGNMENT * 4) + FENCE
        self._copies: dict[str, Array] = {}
        self._starts: dict[str, int] = {}  # in the arena: NumPy forgets where an empty part lies
        for (name, array), size in zip(self._arrays.items(), sizes, strict=True):
            copy = self._arena[start : start + array.nbytes].view(array.dtype)
            self._copies[name] = copy.reshape(array.shape)
            self._copies[name][...] = array
            self._starts[name] = start
            start += size

    def value(self, given: Array | int | float, name: str) -> int | float:
        """An argument, an array by the address of its copy."""
        return self._address(name) if isinstance(given, np.ndarray) else given

    def memory(self, made: Emulation, kernel: str, shared_bytes: int) -> list[MemoryRange]:
        """Every range that a launch may touch."""
        found = []
        for name, copy in self._copies.items():
            kind = GLOBAL if self._arrays[name].flags.writeable else CONSTANT
            written = self._written[name].ctypes.data if name in self._written else 0
            place = MemoryRange(
                name, self._address(name), copy.nbytes, copy.itemsize, kind, written
            )
            found.append(place)
        items = made.source.items
        for array in made.shared(kernel):
            item = items.get(array.name, _GRANULE)
            found.append(MemoryRange(array.name, array.address, array.bytes, item, SHARED))
        found += [MemoryRange(a.name, a.address, shared_bytes, 1, SHARED) for a in made.dynamic()]
        return found

    def faults(self, kernel: str) -> list[EmulatorFinding]:
        """What a kernel that has run wrote where it may not, as far as bytes have changed."""
        found, at, before = [], 0, ""
        for name, copy in self._copies.items():
            start = self._starts[name]
            found += self._beside(kernel, slice(at, start), before or name, name)
            at, before = start + copy.nbytes, name
            array = self._arrays[name]
            if not array.flags.writeable and not np.array_equal(_bytes(copy), _bytes(array)):
                note = f"it wrote into '{name}', which it may only read"
                found.append(EmulatorFinding("read-only", kernel, (), note=note))
        return found + self._beside(kernel, slice(at, None), before, before)

    def _address(self, name: str) -> int:
        return int(self._arena.ctypes.data) + self._starts[name]

    def _beside(self, kernel: str, fence: slice, before: str, behind: str) -> list[EmulatorFinding]:
        """A finding where a fence has changed: beside the nearer of two arrays."""
        changed = np.flatnonzero(self._arena[fence] != _POISON)
        if not changed.size:
            return []
        first = changed[0] < self._arena[fence].size - changed[-1]
        note = f"it wrote outside of '{before if first else behind}'"
        return [EmulatorFinding("out-of-bounds", kernel, (), note=note)]

    def copy_back(self) -> None:
        """Write what may be written."""
        for name, array in self._arrays.items():
            if array.flags.writeable:
                array[...] = self._copies[name]


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def pack_arguments(types: str, values: Sequence[int | float]) -> tuple[Pointer, list[Pointer]]:
    """Pointers to the values as the kernel's parameters hold them, and what holds them."""
    held = []
    for letter, value in zip(types, values, strict=True):
        data = struct.pack("<Q" if letter == "P" else f"<{letter}", value)
        held.append(ffi.new(_BYTES, data.ljust(8, b"\0")))
    return ffi.new(_POINTERS, held), held


class LaunchRun:
    """A launch with its memory, and how what it found reads."""

    def __init__(
        self,
        made: Emulation,
        launch: KernelLaunch,
        memories: Sequence[MemoryRange],
    ) -> None:
        self._made = made
        self._kernel = launch.kernel
        self._shape = launch.grid, launch.block
        self._memories = memories

    def run(self, arguments: Pointer) -> EmulationReport:
        """Run every block; what was found, and in checked mode what each place asked for."""
        grid, block = self._shape
        numbers = [*grid, *block, int(self._made.checked), _MOST_FINDINGS, _MOST_SITES]
        numbers.append(len(self._memories))
        numbers += [number for memory in self._memories for number in memory.numbers]
        counts = np.zeros(2, np.int64)
        findings = np.zeros(_MOST_FINDINGS * _FINDING.size, np.uint8)
        sites = np.zeros(_MOST_SITES * _SITE.size, np.uint8)
        self._made.run(
            self._made.thread(self._kernel),
            arguments,
            ffi.new(_NUMBERS, numbers),
            ffi.from_buffer(_NUMBERS, counts),
            memory(findings),
            memory(sites),
        )
        faults = _FINDING.iter_unpack(findings[: int(counts[0]) * _FINDING.size].tobytes())
        places = list(_SITE.iter_unpack(sites[: int(counts[1]) * _SITE.size].tobytes()))
        return EmulationReport(
            tuple(self._finding(row) for row in faults),
            tuple(self._site(row) for row in places if row[1] != _AT_BARRIER),
            tuple(self._barrier(row) for row in places if row[1] == _AT_BARRIER),
        )

    def _finding(self, row: tuple[int, ...]) -> EmulatorFinding:
        kind, times, where, offset = _KINDS[row[0]], *row[1:4]
        parts = [part for part in (row[4:8], row[8:12]) if part[0] >= 0]
        parties = tuple(self._party(*part) for part in parts)
        note = ffi.string(ffi.cast("char *", row[12])).decode() if row[12] else ""
        if where < 0:
            return EmulatorFinding(kind, self._kernel, parties, None, None, times, note)
        place = self._memories[where]
        element = offset // place.item
        return EmulatorFinding(kind, self._kernel, parties, place.name, element, times, note)

    def _party(self, block: int, thread: int, site: int, action: int) -> Party:
        grid, extent = self._shape
        line, text = self._made.line(site)
        return Party(_index(block, grid), _index(thread, extent), _ACTIONS[action], line, text)

    def _site(self, row: tuple[int, ...]) -> AccessSite:
        site, action, where, size, requests, parts, least, worst = row
        place = self._memories[where]
        line, text = self._made.line(site)
        space = "shared" if place.kind == SHARED else "global"
        return AccessSite(
            *(self._kernel, line, text, place.name, space, _ACTIONS[action], size),
            *(requests, parts, least, worst),
        )

    def _barrier(self, row: tuple[int, ...]) -> BarrierReport:
        line, text = self._made.line(row[0])
        return BarrierReport(self._kernel, line, text, passed=row[4], needed=row[5])


def _index(number: int, extent: Index) -> Index:
    x, y, _ = extent
    return number % x, number // x % y, number // (x * y)
