"""NVIDIA's compiler of CUDA C as a library: bound through cffi in ABI mode, found where it lies.

Like `runtime/library`, this uses the part of cffi that is C, which reads the types as it meets
them. NVRTC needs neither a GPU nor a driver, may be called by many threads at once, and leaves the
interpreter's lock to others while it compiles.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import _cffi_backend

from ....tir.errors import TilewrightError
from ...toolchain.cache import cache_key
from ...toolchain.library import Pointer, ffi
from .toolkit import HOME_VARIABLES, INSTALL_HINT, library_candidates

LIBRARY_VARIABLE = "TILEWRIGHT_NVRTC"  # a path of libnvrtc

CANCELLED = "NVRTC_ERROR_CANCELLED"

_RTLD_NOW = 2
_TEXT = "int(*)(void *program, char *text)"
_SIZE = "int(*)(void *program, size_t *size)"
_FUNCTIONS = {
    "nvrtcVersion": "int(*)(int *major, int *minor)",
    "nvrtcGetErrorString": "const char *(*)(int result)",
    "nvrtcGetNumSupportedArchs": "int(*)(int *count)",
    "nvrtcGetSupportedArchs": "int(*)(int *archs)",
    "nvrtcCreateProgram": "int(*)(void **program, const char *source, const char *name,"
    " int headers, const char *const *texts, const char *const *names)",
    "nvrtcDestroyProgram": "int(*)(void **program)",
    "nvrtcCompileProgram": "int(*)(void *program, int count, const char *const *options)",
    "nvrtcGetProgramLogSize": _SIZE,
    "nvrtcGetProgramLog": _TEXT,
    "nvrtcGetPTXSize": _SIZE,
    "nvrtcGetPTX": _TEXT,
    "nvrtcGetCUBINSize": _SIZE,
    "nvrtcGetCUBIN": _TEXT,
}
_FLOW = "int(*)(void *payload, void *reserved)"  # asked while it compiles; 1: no more
_SET_FLOW = f"int(*)(void *program, {_FLOW}, void *payload)"


class NvrtcNotFound(TilewrightError, OSError):
    """NVRTC is not installed here, or the library that the user named cannot be loaded."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """What NVRTC made of a source.

    complaint: None where it compiled, else what NVRTC calls the failure. log: all that it said.
    ptx: with the NUL that ends it; there is some even where only the assembler refused it.
    cubin: empty where only PTX was asked for.
    """

    complaint: str | None
    log: str
    ptx: bytes
    cubin: bytes


class Nvrtc:
    """A loaded NVRTC.

    path: what was loaded. version: (13, 5). archs: the numbers that may follow "sm_" and
    "compute_". identity: SHA-256 of its version, path, size and time; a part of every cache key.
    """

    def __init__(self, path: str) -> None:
        """Load it. Raises: OSError, AttributeError where a function is missing."""
        self._builtins = _load_builtins(path)
        self._library = _cffi_backend.load_library(path, _RTLD_NOW)
        self._call = SimpleNamespace(
            **{
                name.removeprefix("nvrtc"): self._library.load_function(ffi.typeof(kind), name)
                for name, kind in _FUNCTIONS.items()
            }
        )
        with suppress(AttributeError):  # of a CUDA before 12.8
            flow = ffi.typeof(_SET_FLOW)
            self._call.SetFlowCallback = self._library.load_function(flow, "nvrtcSetFlowCallback")
        numbers = ffi.new("int[2]")
        self._call.Version(numbers, numbers + 1)
        self.version: tuple[int, int] = (numbers[0], numbers[1])
        self._call.GetNumSupportedArchs(numbers)
        archs = ffi.new("int[]", numbers[0])
        self._call.GetSupportedArchs(archs)
        self.archs: tuple[int, ...] = tuple(archs)
        self.path = path
        self.identity = cache_key(str(self), path, *_status(path))

    def __str__(self) -> str:
        return "NVRTC {}.{}".format(*self.version)

    def compile(
        self, source: str, name: str, options: Sequence[str], seconds: float | None = None
    ) -> Compilation:
        """Compile a source; `name` is its file in what NVRTC says. Never raises for a source.

        seconds: after which it is told to end, which it does between two of its passes, and has the
        complaint CANCELLED; one that is older than CUDA 12.8 is told nothing.
        """
        call, handle = self._call, ffi.new("void **")
        self._check(call.CreateProgram(handle, *map(_text, (source, name)), 0, ffi.NULL, ffi.NULL))
        try:
            if seconds is not None and hasattr(call, "SetFlowCallback"):
                until = perf_counter() + seconds
                ends = ffi.callback(_FLOW, lambda *_: int(perf_counter() > until))
                self._check(call.SetFlowCallback(handle[0], ends, ffi.NULL))
            texts = [_text(option) for option in options]
            result = call.CompileProgram(handle[0], len(texts), ffi.new("const char *[]", texts))
            log = self._read("ProgramLog", handle[0])
            return Compilation(
                self._name(result) if result else None,
                log.rstrip(b"\0").decode(errors="replace").strip(),
                self._read("PTX", handle[0]),
                self._read("CUBIN", handle[0]),
            )
        finally:
            call.DestroyProgram(handle)

    def _read(self, what: str, program: Pointer) -> bytes:
        """One of a program's outputs; empty where there is none."""
        size = ffi.new("size_t *")
        failed = getattr(self._call, f"Get{what}Size")(program, size)
        if failed or size[0] == 0:
            return b""
        output = ffi.new("char[]", size[0])
        self._check(getattr(self._call, f"Get{what}")(program, output))
        return bytes(ffi.buffer(output))

    def _check(self, result: int) -> None:
        """Refuse a failure that no source explains. Raises: NvrtcFailed."""
        if result:
            raise NvrtcFailed(
                f"compile: {self} at '{self.path}' failed: {self._name(result)}.",
                code="nvrtc-failed",
            )

    def _name(self, result: int) -> str:
        return str(ffi.string(self._call.GetErrorString(result)).decode())


class NvrtcFailed(TilewrightError, RuntimeError):
    """NVRTC itself failed, out of memory for one."""


def find_nvrtc() -> Nvrtc:
    """NVRTC from $TILEWRIGHT_NVRTC, else the first that loads: of the wheel, of CUDA_HOME or
    CUDA_PATH, of the loader's path.

    Raises: NvrtcNotFound, also where $TILEWRIGHT_NVRTC is set and does not load.
    """
    homes = tuple(os.environ.get(name, "") for name in HOME_VARIABLES)
    return _find(os.environ.get(LIBRARY_VARIABLE, ""), homes)


@lru_cache(maxsize=16)
def _find(named: str, homes: tuple[str, ...]) -> Nvrtc:
    if named:
        try:
            return Nvrtc(named)
        except (OSError, AttributeError) as error:
            raise NvrtcNotFound(
                f"compile: ${LIBRARY_VARIABLE} is '{named}', which is not NVRTC: {error}.",
                code="nvrtc-named",
                hints=(f"unset {LIBRARY_VARIABLE} to have the wheel's or the toolkit's found.",),
            ) from None
    refused = []
    for path in library_candidates("nvrtc"):
        try:
            return Nvrtc(path)
        except (OSError, AttributeError) as error:
            if os.path.isabs(path):
                refused.append(f"'{path}' does not load: {error}.")
    raise NvrtcNotFound(
        f"compile: NVRTC, which compiles CUDA C, is not here; looked for ${LIBRARY_VARIABLE} (not "
        "set), the nvidia-cuda-nvrtc wheel, $CUDA_HOME, $CUDA_PATH and libnvrtc of the system.",
        code="nvrtc-missing",
        notes=refused,
        hints=(INSTALL_HINT,),
    )


def _text(text: str) -> Pointer:
    return ffi.new("char[]", text.encode())


def _load_builtins(path: str) -> list[Pointer]:
    """Load what NVRTC opens by its bare name: the wheels of CUDA 13.0 and before lack the run path
    that leads to the file beside them.
    """
    if not os.path.isabs(path):
        return []
    beside = Path(path).parent.glob("libnvrtc-builtins.so*")
    return [_cffi_backend.load_library(str(file), _RTLD_NOW) for file in beside]


def _status(path: str) -> tuple[str, ...]:
    """Size and time of a library that is named by its path; nothing for one of the loader's."""
    if not os.path.isabs(path):
        return ()
    status = Path(path).stat()
    return str(status.st_size), str(status.st_mtime_ns)
