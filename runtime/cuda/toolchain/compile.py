"""CUDA C in, cubin out, kept in the cache.

The cubin is keyed by its source, the flags, and NVRTC's identity. No header is included, by us or
by the source, and no device is needed: a cubin for any architecture is made on any machine.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....tir.errors import TargetError
from ...log import log
from ...toolchain.cache import Cache, cache_key, user_cache
from ...toolchain.compile import CompileFailed, CompileTimedOut
from ...toolchain.compilers import STRICT_VARIABLE
from ...toolchain.excerpt import excerpt, file_name
from .nvrtc import CANCELLED, Compilation, Nvrtc, find_nvrtc

CUBINS = "cubins"  # a kind of our cache entries

_FORMAT = "1"
_MOST_COMPLAINTS = 4  # of NVRTC, that an error repeats
_FLAGS = ("--fmad=false", "--std=c++17", "--device-as-default-execution-space")
_NAME = re.compile(r"[A-Za-z_]\w+")  # of a letter more than a letter is a name of ours
_LINES = "--generate-line-info"
_ARCH = re.compile(r"(sm|compute)_(\d+)([af]?)")
_SUFFIX_SINCE = {"": 0, "a": 90, "f": 100}

_SAID = re.compile(
    r"^(?:.*\((\d+)\): |At end of source: |nvrtc: )?(?:[\w-]+ )*(error|warning)[^:]*: (.*)$"
)
_ASSEMBLER_SAID = re.compile(r"^ptxas .*?(?:line (\d+); )?(error|fatal|warning) *: (.*)$")
_ENDED = "Ptx assembly aborted due to errors"


@dataclass(frozen=True, slots=True)
class Cubin:
    """Device code of one source.

    arch: "sm_90a": image is an ELF file of machine code for it; "compute_90": image is PTX, ended
    by a NUL. path: the cache's file that holds it, None where it is not kept. compiler: NVRTC's
    version. seconds: what compiling took; 0 where it came from the cache.
    """

    name: str
    arch: str
    image: bytes
    path: Path | None
    compiler: str
    seconds: float

    @property
    def is_ptx(self) -> bool:
        """Whether the driver has to assemble it."""
        return self.arch.startswith("compute_")


def compile_cuda(
    source: str,
    arch: str,
    *,
    name: str = "kernel",
    flags: tuple[str, ...] = (),
    cache: Cache | None = None,
    seconds: float | None = None,
) -> Cubin:
    """Compile one CUDA C source for "sm_80", "sm_90a", ..., or to PTX for "compute_90".

    `flags` are added to ours, none of which lets NVRTC change a result. Any number of threads may
    compile at once. seconds: what NVRTC may take.
    Raises: NvrtcNotFound, CompileFailed, CompileTimedOut; TargetError for an architecture that
    NVRTC does not know.
    """
    nvrtc = find_nvrtc()
    _check_arch(nvrtc, arch, name)
    cache = cache if cache is not None else user_cache()
    strict = os.environ.get(STRICT_VARIABLE) == "1"
    options = (*cuda_flags(arch), *flags)
    key = cache_key(_FORMAT, nvrtc.identity, str(strict), *options, source)
    kept = cache.get(CUBINS, key)
    if kept is not None:
        return Cubin(name, arch, kept, cache.path(CUBINS, key), str(nvrtc), 0.0)
    began = time.perf_counter()
    made = nvrtc.compile(source, _file(name), options, seconds)
    if made.complaint == CANCELLED:
        raise CompileTimedOut(
            f"compile: NVRTC took longer than {seconds:g} s for '{name}'.",
            code="cuda-compile-timed-out",
            notes=(f"the compiler is {nvrtc}.",),
        )
    if made.complaint is not None or (strict and any(_said(made.log))):
        raise _failure(nvrtc, source, name, options, made)
    spent = time.perf_counter() - began
    log.debug("compile: '%s' for %s, %.0f ms", name, arch, spent * 1e3)
    image = made.cubin or made.ptx
    return Cubin(name, arch, image, cache.put(CUBINS, key, image), str(nvrtc), spent)


def cuda_flags(arch: str) -> tuple[str, ...]:
    """What NVRTC is told for an architecture."""
    return f"--gpu-architecture={arch}", *_FLAGS


def _check_arch(nvrtc: Nvrtc, arch: str, name: str) -> None:
    """Refuse an architecture that NVRTC does not know. Raises: TargetError."""
    match = _ARCH.fullmatch(arch)
    if match and int(match[2]) in nvrtc.archs and int(match[2]) >= _SUFFIX_SINCE[match[3]]:
        return
    known = ", ".join(f"sm_{number}" for number in nvrtc.archs)
    raise TargetError(
        f"compile: '{name}' is for '{arch}', which {nvrtc} does not know; expected one of {known}.",
        code="cuda-arch",
        notes=(
            "'a' may follow from sm_90 on: what this one has and no later one; 'f' from sm_100 on; "
            "compute_ instead of sm_ asks for PTX.",
        ),
    )


@dataclass(frozen=True, slots=True)
class _Complaint:
    """One thing that NVRTC said; line: of our source, where it gave one; assembled: of the PTX."""

    text: str
    line: int | None = None
    assembled: int | None = None


def _said(text: str) -> Iterator[_Complaint]:
    """The complaints of a log, errors and warnings, in order."""
    for line in text.splitlines():
        if match := _ASSEMBLER_SAID.match(line):
            if match[3] != _ENDED:
                yield _Complaint(match[3], assembled=int(match[1]) if match[1] else None)
        elif match := _SAID.match(line):
            yield _Complaint(match[3], line=int(match[1]) if match[1] else None)


def _failure(
    nvrtc: Nvrtc, source: str, name: str, options: tuple[str, ...], made: Compilation
) -> CompileFailed:
    """The error for what NVRTC said: its first complaint with our line, then the others."""
    complaints = list(_said(made.log))
    if any(complaint.assembled for complaint in complaints):
        # compiled again, for PTX that says which lines of ours it comes from
        again = nvrtc.compile(source, _file(name), (*options, _LINES))
        lines = _origins(again.ptx.decode(errors="replace"))
        complaints = [
            _Complaint(said.text, lines[said.assembled - 1] if said.assembled else said.line)
            for said in _said(again.log)
        ]
    if not complaints:
        last = made.log.splitlines()[-1:] or [made.complaint or "it said nothing"]
        complaints = [_Complaint(last[0])]
    first, *others = complaints
    line = first.line
    return CompileFailed(
        f"compile: NVRTC refused '{name}': {first.text}.",
        code="cuda-compile-failed",
        where=None if line is None else f"in {_file(name)}:\n{excerpt(source, line)}",
        notes=(
            *(f"also: {_placed(other)}." for other in others[: _MOST_COMPLAINTS - 1]),
            *_steps(source, line),
            f"the compiler is {nvrtc}, {' '.join(options)}.",
        ),
        hints=(
            "generated CUDA C that a compiler refuses is a defect of tilewright; please report it.",
        ),
    )


def _steps(source: str, line: int | None) -> Sequence[str]:
    """The last steps of the schedule, as the comment at the top of a source has them, that name
    something which the line names, too.
    """
    head, ended, _ = source.partition("*/")
    if line is None or not ended or not head.startswith("/*"):
        return ()
    named = set(_NAME.findall(source.splitlines()[line - 1]))
    steps = [text.removeprefix(" * ") for text in head.splitlines()[2:] if text.startswith(" * ")]
    found = [step for step in steps if named & set(_NAME.findall(step))]
    return (f"steps that name what stands there: {'; '.join(found[-3:])}.",) if found else ()


def _origins(ptx: str) -> list[int | None]:
    """For each line of PTX the line of our source that it comes from, as its .loc lines say."""
    found: list[int | None] = []
    current: int | None = None
    for line in ptx.splitlines():
        if match := re.match(r"\s*\.loc\s+\d+\s+(\d+)", line):
            current = int(match[1])
        found.append(current)
    return found


def _placed(complaint: _Complaint) -> str:
    return complaint.text + ("" if complaint.line is None else f" (line {complaint.line})")


def _file(name: str) -> str:
    return f"{file_name(name)}.cu"


def ptx_of(source: str, arch: str, *, name: str = "kernel") -> str:
    """The PTX of a source for "sm_90a", as text. Raises: as `compile_cuda`."""
    made = compile_cuda(source, arch.replace("sm_", "compute_"), name=name)
    return made.image.rstrip(b"\0").decode()
