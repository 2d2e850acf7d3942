"""A source and the emulated device, compiled into one object and loaded."""

from __future__ import annotations

import re
import sys
from functools import lru_cache

from ....tir.errors import TargetError
from ...machine.host import host_target
from ...toolchain.compile import SOURCE_FILE, Units
from ...toolchain.compilers import CPP, find_compiler
from ...toolchain.elf import ElfSymbol, symbols
from ...toolchain.library import Library, Pointer, ffi
from ...toolchain.line_table import LineTable
from .source import MOST_SHARED, EmulatedSource, device_text, read_source

_FIRST_CLANG = 16  # whose -fsanitize=thread calls us for memcpy too
_ADDRESS = ffi.typeof("uintptr_t")
_FLAGS = (
    *("-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fno-strict-aliasing"),
    *("-Wno-unknown-pragmas", "-U_FORTIFY_SOURCE"),  # a crash jumps between stacks
)
_FRAME = "frame-larger-than="  # half of what a fiber's stack holds
_FAMILY_FLAGS = {
    # gcc does not see that what one condition guards, an equal one guards too
    "gcc": (f"-Werror={_FRAME}32768", "-Wno-maybe-uninitialized"),
    "clang": (f"-W{_FRAME}32768", f"-Werror={_FRAME}"),
    "zig": (f"-W{_FRAME}32768", f"-Werror={_FRAME}"),
}
# at -O0 each access of the source is one; none is merged with another or left out
_CHECKED_FLAGS = ("-fsanitize=thread", "-O0", "-g1", "-gdwarf-4", "-gz=none")


class Emulation:
    """A source, compiled for this machine and loaded."""

    def __init__(self, source: str, *, checked: bool) -> None:
        """Compile and load.

        Raises: TargetError where nothing is emulated; CompilerNotFound, CompileFailed.
        """
        _check_machine(checked)
        self.source: EmulatedSource = read_source(source)
        self._texts = source.splitlines()
        self.checked = checked
        flags = (*_FLAGS, *_FAMILY_FLAGS[find_compiler(CPP).family])
        with Units("emulation", language=CPP, flags=flags) as units:
            target = host_target()
            units.add(device_text(), target)
            unit = self.source.unit(checked=checked)
            units.add(unit, target, flags=_CHECKED_FLAGS if checked else ())
            shared = units.link()
        self._library = Library(shared, name="emulation")
        self._symbols = symbols(shared.binary)
        self._lines = LineTable(shared.binary)
        self.run = self._library.entry("em_emulate", "tw_emulate")
        self._base = int(ffi.cast(_ADDRESS, self.run)) - self._symbols["em_emulate"].address

    def thread(self, kernel: str) -> Pointer:
        """What runs a kernel for one thread."""
        return self._library.entry(f"em_thread_{kernel}", "tw_thread")

    def types(self, kernel: str) -> str:
        """A letter of the struct module for each parameter of a kernel; "?" for another type."""
        text = self._library.entry(f"em_types_{kernel}", "tw_text")()
        return str(ffi.string(text).decode())

    def line(self, site: int) -> tuple[int | None, str]:
        """The line of the source where a site stands, and its text.

        site: below 0 a line, above 0 the address after a call.
        """
        line = -site if site < 0 else self._lines.line(site - 1 - self._base, SOURCE_FILE)
        if not line or line > len(self._texts):
            return None, ""
        return line, self._texts[line - 1].strip()

    def shared(self, kernel: str) -> list[ElfSymbol]:
        """The arrays of shared memory that a kernel declares with their size, where they lie."""
        start = f"_ZZ{len(kernel)}{kernel}E"
        found = []
        for name, symbol in self._symbols.items():
            if name.startswith(start):
                digits = re.match(r"\d+", rest := name[len(start) :])
                assert digits is not None
                plain = rest[digits.end() :][: int(digits[0])]  # a number may follow it
                found.append(ElfSymbol(plain, self._base + symbol.address, symbol.bytes))
        return found

    def dynamic(self) -> list[ElfSymbol]:
        """The arrays whose size comes with the launch."""
        places = [(name, self._symbols[name].address) for name in self.source.dynamic]
        return [ElfSymbol(name, self._base + address, MOST_SHARED) for name, address in places]


def _check_machine(checked: bool) -> None:
    """Refuse where nothing, or nothing checked, is emulated. Raises: TargetError."""
    if sys.platform != "linux":
        raise TargetError(
            f"emulate: CUDA C is emulated on Linux alone; this is '{sys.platform}'.",
            code="emulate-platform",
        )
    version = find_compiler(CPP).version
    match = re.search(r"clang version (\d+)", version)
    if checked and match is not None and int(match[1]) < _FIRST_CLANG:
        raise TargetError(
            f"emulate: {version} does not tell of copies of vectors, which checked mode must see; "
            f"expected g++, or clang from {_FIRST_CLANG} on.",
            code="emulate-clang",
            hints=(f"{CPP.variable}=g++ chooses the compiler.",),
        )


@lru_cache(maxsize=16)
def emulation(source: str, checked: bool) -> Emulation:
    """The emulation of a source; kept, for a source is often run more than once."""
    return Emulation(source, checked=checked)
