"""Which C or C++ compiler builds our code, how it is called, and its identity in cache keys."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from ...tir.errors import TilewrightError
from ...tir.target.target import Target, named
from .cache import cache_key
from .compiler_stamp import C_COMMANDS, C_VARIABLE, command_words

STRICT_VARIABLE = "TILEWRIGHT_WERROR"  # "1": warnings in generated code are errors

_ISA_FLAGS = {
    "scalar": (),
    "avx2": ("-mavx2", "-mfma", "-mf16c"),
    "avx512": (
        *("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx2", "-mfma", "-mf16c"),
        "-mprefer-vector-width=512",
    ),
}
_FEATURE_FLAGS = {
    "avx512": {"vnni": "-mavx512vnni", "bf16": "-mavx512bf16"},
    "avx2": {"vnni": "-mavxvnni"},  # from gcc 11 and clang 12 on
}
_FAMILY_FLAGS = {
    "gcc": (),
    "clang": ("-Wno-unused-command-line-argument",),
    # zig's adds checks and debug text where it is not told otherwise
    "zig": (
        *("-fno-sanitize=all", "-fomit-frame-pointer", "-g0"),
        "-Wno-unused-command-line-argument",
    ),
}


@dataclass(frozen=True, slots=True)
class SourceLanguage:
    """A language that we compile.

    variable: of the environment, names a compiler. commands: looked for otherwise, in order. zig:
    the command of zig's compiler. standard: the flag. suffix: of a file. package: what Debian calls
    a compiler. without: what to do where there is none.
    """

    name: str
    variable: str
    commands: tuple[str, ...]
    zig: str
    standard: str
    suffix: str
    package: str
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


C = SourceLanguage(
    "C",
    C_VARIABLE,
    C_COMMANDS,
    zig="cc",
    standard="-std=c11",
    suffix=".c",
    package="gcc",
    without=('without one: target="python" runs everything in the interpreter, slowly.',),
)
CPP = SourceLanguage(
    "C++",
    "CXX",
    ("c++", "g++", "clang++"),
    zig="c++",
    standard="-std=c++17",
    suffix=".cpp",
    package="g++",
)

# From gcc 12 on, which makes vectors of loops at -O2: before 12.3, sums of signed integers that it
# kept in registers instead of memory came out wrong behind the loop, on any x86 (gcc PR 107212).
# For sums in local variables: codegen/c/sums.py. With vectors of loops comes predictive commoning,
# which drops a store that a later iteration overwrites: of a thread's first and last iterations it
# then writes back what it read before, over what another thread wrote in the meantime.
_NO_WRONG_STORES = ("-fno-move-loop-stores", "-fno-predictive-commoning")


class CompilerNotFound(TilewrightError, OSError):
    """No compiler for the language runs here, or the one that the user named does not."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that runs here.

    language: what it compiles. command: what to run. version: the first line that it says of
    itself. family: "gcc", "clang" or "zig". identity: SHA-256 of command, version and the
    executable's path, size and time; a part of every cache key.
    """

    language: SourceLanguage
    command: tuple[str, ...]
    version: str
    family: str
    identity: str

    @property
    def flags(self) -> tuple[str, ...]:
        """What it must be told to behave like the others."""
        wrong_stores = self.family == "gcc" and _major(self.version) >= 12
        return (*_FAMILY_FLAGS[self.family], *(_NO_WRONG_STORES if wrong_stores else ()))

    def environment(self) -> dict[str, str]:
        """The environment to run it in: messages in English."""
        return {**os.environ, "LC_ALL": "C"}


def find_compiler(language: SourceLanguage = C) -> Compiler:
    """The first that runs of the one that the language's variable names ($CC), its usual commands
    (cc, gcc, clang) and the ziglang wheel.

    Raises: CompilerNotFound, also where the variable is set and what it names does not run.
    """
    named = os.environ.get(language.variable, "")
    return _find(language, named, os.environ.get("PATH", ""))


def isa_flags(target: Target) -> tuple[str, ...]:
    """The flags that give the compiler the target's instruction set, and nothing more.

    Raises: TargetError where it names none.
    """
    isa, features = named(target).isa, target.features
    if isa == "neon":  # the last -march counts alone
        return (f"-march=armv8.2-a+{'+'.join(features)}",) if features else ()
    return (*_ISA_FLAGS[isa], *(_FEATURE_FLAGS[isa][name] for name in features))


def compile_flags(target: Target, language: SourceLanguage = C) -> tuple[str, ...]:
    """Every flag for a translation unit of a shared object.

    There is never one that lets the compiler change a result.
    """
    strict = ("-Werror",) if os.environ.get(STRICT_VARIABLE) == "1" else ()
    warnings = ("-Wall", "-Wextra", *strict)
    return (
        *(language.standard, "-O2", "-ffp-contract=off", "-fno-math-errno"),
        *isa_flags(target),
        *("-fPIC", *warnings),
    )


def link_flags() -> tuple[str, ...]:
    """The flags that make a shared object.

    On Linux a function that libc does not have is an error now, not at load.
    """
    return ("-shared", "-Wl,--no-undefined") if sys.platform == "linux" else ("-shared",)


@lru_cache(maxsize=16)
def _find(language: SourceLanguage, named: str, path: str) -> Compiler:
    usual = f"{', '.join(language.commands)} and the ziglang wheel"
    if named:
        command = command_words(named)
        found = _probe(language, command, path)
        if found is None:
            raise CompilerNotFound(
                f"compile: ${language.variable} is '{named}', which does not run; expected a "
                f"{language} compiler.",
                code="compiler-named",
                hints=(
                    f"unset {language.variable} to have {usual.replace(' and ', ' or ')} found.",
                ),
            )
        return found
    candidates: list[tuple[str, ...]] = [(name,) for name in language.commands]
    if find_spec("ziglang") is not None:
        candidates.append((sys.executable, "-m", "ziglang", language.zig))
    for command in candidates:
        found = _probe(language, command, path)
        if found is not None:
            return found
    raise CompilerNotFound(
        f"compile: no {language} compiler runs here; looked for ${language.variable} (not set), "
        f"{usual}.",
        code="compiler-missing",
        hints=(
            f"Debian, Ubuntu: sudo apt install {language.package}",
            "macOS: xcode-select --install",
            "anywhere: python -m pip install ziglang",
            *language.without,
        ),
    )


def _probe(language: SourceLanguage, command: tuple[str, ...], path: str) -> Compiler | None:
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
    family = _family(command, version)
    return Compiler(language, (executable, *command[1:]), version, family, identity)


def _major(version: str) -> int:
    """The number of a version in the first line that gcc says of itself; 0 where it names none."""
    found = re.search(r"(?:\)|^\S+) (\d+)", version)
    return int(found[1]) if found else 0


def _family(command: tuple[str, ...], version: str) -> str:
    if "ziglang" in command or Path(command[0]).name == "zig":
        return "zig"
    return "clang" if "clang" in version else "gcc"
