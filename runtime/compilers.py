"""Which C compiler builds our code, how it is called, and its identity in cache keys."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from ..tir.errors import TilewrightError
from ..tir.target import Target
from .cache import cache_key

COMPILER_VARIABLE = "CC"
STRICT_VARIABLE = "TILEWRIGHT_WERROR"  # "1": warnings in generated code are errors

_NAMES = ("cc", "gcc", "clang")
_ISA_FLAGS = {
    "scalar": (),
    "avx2": ("-mavx2", "-mfma", "-mf16c"),
    "avx512": (
        *("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx2", "-mfma", "-mf16c"),
        "-mprefer-vector-width=512",
    ),
    "neon": (),  # every 64-bit ARM has it
}
_FEATURE_FLAGS = {"vnni": "-mavx512vnni", "bf16": "-mavx512bf16"}
_FAMILY_FLAGS = {
    "gcc": (),
    "clang": ("-Wno-unused-command-line-argument",),
    # zig's adds checks and debug text where it is not told otherwise
    "zig": (
        *("-fno-sanitize=all", "-fomit-frame-pointer", "-g0"),
        "-Wno-unused-command-line-argument",
    ),
}


class CompilerNotFound(TilewrightError, OSError):
    """No C compiler runs here, or the one that the user named does not."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler that runs here.

    command: what to run. version: the first line that it says of itself. family: "gcc", "clang" or
    "zig". identity: SHA-256 of command, version and the executable's path, size and time; a part of
    every cache key.
    """

    command: tuple[str, ...]
    version: str
    family: str
    identity: str

    @property
    def flags(self) -> tuple[str, ...]:
        """What it must be told to behave like the others."""
        return _FAMILY_FLAGS[self.family]

    def environment(self) -> dict[str, str]:
        """The environment to run it in: messages in English."""
        return {**os.environ, "LC_ALL": "C"}


def find_compiler() -> Compiler:
    """The first of $CC, cc, gcc, clang and the ziglang wheel that runs.

    Raises: CompilerNotFound, also where $CC is set and does not run.
    """
    return _find(os.environ.get(COMPILER_VARIABLE, ""), os.environ.get("PATH", ""))


def isa_flags(target: Target) -> tuple[str, ...]:
    """The flags that give the compiler the target's instruction set, and nothing more."""
    return (*_ISA_FLAGS[target.isa], *(_FEATURE_FLAGS[name] for name in target.features))


def compile_flags(target: Target) -> tuple[str, ...]:
    """Every flag for a translation unit of a shared object.

    There is never one that lets the compiler change a result.
    """
    strict = ("-Werror",) if os.environ.get(STRICT_VARIABLE) == "1" else ()
    warnings = ("-Wall", "-Wextra", *strict)
    return (
        *("-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno"),
        *isa_flags(target),
        *("-fPIC", *warnings),
    )


def link_flags() -> tuple[str, ...]:
    """The flags that make a shared object.

    On Linux a function that libc does not have is an error now, not at load.
    """
    return ("-shared", "-Wl,--no-undefined") if sys.platform == "linux" else ("-shared",)


@lru_cache(maxsize=16)
def _find(named: str, path: str) -> Compiler:
    if named:
        command = tuple(shlex.split(named))
        found = _probe(command, path)
        if found is None:
            raise CompilerNotFound(
                f"compile: $CC is '{named}', which does not run; expected a C compiler.",
                code="compiler-named",
                hints=("unset CC to have cc, gcc, clang or the ziglang wheel found.",),
            )
        return found
    candidates: list[tuple[str, ...]] = [(name,) for name in _NAMES]
    if find_spec("ziglang") is not None:
        candidates.append((sys.executable, "-m", "ziglang", "cc"))
    for command in candidates:
        found = _probe(command, path)
        if found is not None:
            return found
    raise CompilerNotFound(
        "compile: no C compiler runs here; looked for $CC (not set), cc, gcc, clang and the "
        "ziglang wheel.",
        code="compiler-missing",
        hints=(
            "Debian, Ubuntu: sudo apt install gcc",
            "macOS: xcode-select --install",
            "anywhere: python -m pip install ziglang",
            'without one: target="python" runs everything in the interpreter, slowly.',
        ),
    )


def _probe(command: tuple[str, ...], path: str) -> Compiler | None:
    """Ask a command for its version; None where it does not run."""
    executable = shutil.which(command[0], path=path) if command else None
    if executable is None:
        return None
    try:
        done = subprocess.run(
            [executable, *command[1:], "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version = done.stdout.strip().partition("\n")[0]
    resolved = Path(executable).resolve()
    status = resolved.stat()
    identity = cache_key(
        *command, version, str(resolved), str(status.st_size), str(status.st_mtime_ns)
    )
    return Compiler((executable, *command[1:]), version, _family(command, version), identity)


def _family(command: tuple[str, ...], version: str) -> str:
    if "ziglang" in command or Path(command[0]).name == "zig":
        return "zig"
    return "clang" if "clang" in version else "gcc"
