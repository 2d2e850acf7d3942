"""A source and the emulated device, compiled into one object and loaded."""

from __future__ import annotations

import sys
from functools import lru_cache

from ...tir.errors import TargetError
from ..compile import Units
from ..compilers import CPP
from ..elf import Symbol, symbols
from ..host import host_target
from ..library import Library, Pointer, ffi
from .emulation_source import MOST_SHARED, EmulatedSource, device_text, read_source

_ADDRESS = ffi.typeof("uintptr_t")
_FLAGS = (
    *("-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fno-strict-aliasing"),
    *("-Wno-unknown-pragmas", "-Werror=frame-larger-than=32768"),
)
# at -O1 two loads of one address may be one access, as on the device; none is moved over a barrier
_CHECKED_FLAGS = ("-fsanitize=thread", "-O1", "-g1", "-gdwarf-4", "-gz=none")


class Emulation:
    """A source, compiled for this machine and loaded."""

    def __init__(self, source: str, *, checked: bool) -> None:
        """Compile and load.

        Raises: TargetError where nothing is emulated; CompilerNotFound, CompileFailed.
        """
        if sys.platform != "linux":
            raise TargetError(
                f"emulate: CUDA C is emulated on Linux alone; this is '{sys.platform}'.",
                code="emulate-platform",
            )
        self.source: EmulatedSource = read_source(source)
        self.checked = checked
        with Units("emulation", language=CPP, flags=_FLAGS) as units:
            target = host_target()
            units.add(device_text(), target)
            unit = self.source.unit(checked=checked)
            units.add(unit, target, flags=_CHECKED_FLAGS if checked else ())
            shared = units.link()
        self._library = Library(shared, name="emulation")
        self._symbols = symbols(shared.binary)
        self.run = self._library.entry("em_emulate", "tw_emulate")
        self.base = int(ffi.cast(_ADDRESS, self.run)) - self._symbols["em_emulate"].address

    def thread(self, kernel: str) -> Pointer:
        """What runs a kernel for one thread."""
        return self._library.entry(f"em_thread_{kernel}", "tw_thread")

    def types(self, kernel: str) -> str:
        """A letter of the struct module for each parameter of a kernel; "?" for another type."""
        text = self._library.entry(f"em_types_{kernel}", "tw_text")()
        return str(ffi.string(text).decode())

    def shared(self, kernel: str) -> list[Symbol]:
        """The arrays of shared memory that a kernel declares with their size, where they lie."""
        start = f"_ZZ{len(kernel)}{kernel}E"
        found = []
        for name, symbol in self._symbols.items():
            if name.startswith(start):
                plain = name[len(start) :].lstrip("0123456789").partition("_0")[0]
                found.append(Symbol(plain, self.base + symbol.address, symbol.bytes))
        return found

    def dynamic(self) -> list[Symbol]:
        """The arrays whose size comes with the launch."""
        places = [(name, self._symbols[name].address) for name in self.source.dynamic]
        return [Symbol(name, self.base + address, MOST_SHARED) for name, address in places]


@lru_cache(maxsize=16)
def emulation(source: str, checked: bool) -> Emulation:
    """The emulation of a source; kept, for a source is often run more than once."""
    return Emulation(source, checked=checked)
