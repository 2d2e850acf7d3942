"""Load a shared object and give the addresses of its entries.

This goes through cffi in ABI mode, which needs no Python headers, by the part of it that is C: it
reads the types that are named below as it meets them, where declarations would wait for a parser of
C written in Python. The loader itself (dlopen, dlsym) is called, not `ffi.dlopen`, so that the
names of entries need no declaration each, and so that an object that must outlive the interpreter's
shutdown can be pinned.

Machine code enters the process here and nowhere else, so here it is asked whether the processor has
the instructions: code that it lacks would end the process at the first of them.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import _cffi_backend

from ...tir.errors import TargetError, TilewrightError
from ...tir.target.target import covers
from ..files.disk import telling_full_disk
from ..files.temporary import temporary_folder
from ..machine.host import host
from .cache import FOLDER_VARIABLE

Pointer: TypeAlias = "_cffi_backend.FFI.CData"

_RTLD_NOW = 2
_ENTRY = "void(*)(void *const *args, const void *team, int thread, int threads)"
_THREAD = "void(*)(void *const *args)"
_TYPES = {  # of the functions of an object
    "tw_entry": _ENTRY,
    "tw_run": f"int(*)({_ENTRY.replace('(*)', '(*entry)')}, void *const *args, int threads)",
    "tw_count": "int(*)(void)",
    "tw_text": "char *(*)(void)",
    "tw_thread": _THREAD,
    "tw_emulate": f"void(*)({_THREAD.replace('(*)', '(*kernel)')}, void *const *args, "
    "const long long *request, long long *counts, void *findings, void *sites)",
}
_LOADER = {  # the functions of the system's loader
    "dlopen": "void *(*)(const char *path, int mode)",
    "dlsym": "void *(*)(void *handle, const char *name)",
    "dlclose": "int(*)(void *handle)",
    "dlerror": "char *(*)(void)",
}

ffi = _cffi_backend.FFI()


@dataclass(frozen=True, slots=True)
class SharedObject:
    """A compiled shared object.

    binary: its bytes. path: the cache's file that holds it, None where it is not kept. compiler:
    the version line of the compiler that made it. seconds: what compiling took; 0 where it came
    from the cache. instructions: the instruction set that it was compiled for, with its features.
    """

    binary: bytes
    path: Path | None
    compiler: str
    seconds: float
    instructions: str


class LibraryError(TilewrightError, OSError):
    """A shared object cannot be loaded into this process, or lacks an entry."""


@cache
def _loader() -> SimpleNamespace:
    """The functions of the system's loader by name."""
    process = _cffi_backend.load_library(None, 0)
    # looking one up makes the loader forget its last error, so all are looked up now
    functions = {n: process.load_function(ffi.typeof(kind), n) for n, kind in _LOADER.items()}
    return SimpleNamespace(**functions)


class Library:
    """A loaded shared object; unloaded when nobody holds it, unless `pinned` (then never)."""

    def __init__(self, shared: SharedObject, *, name: str, pinned: bool = False) -> None:
        """Load the object from the cache's file, or from its bytes where that file is not there.

        Raises: TargetError where this machine lacks the instruction set; LibraryError.
        """
        _check_instructions(shared, name)
        self.name = name
        handle = _open(shared, name)
        if not pinned:
            weakref.finalize(self, _loader().dlclose, handle).atexit = False
        self._handle = handle

    def entry(self, symbol: str, kind: str = "tw_entry") -> Pointer:
        """The address of a function, as a C function pointer of a type that is named above; it
        holds the library.

        Raises: LibraryError.
        """
        address = _loader().dlsym(self._handle, symbol.encode())
        if address == ffi.NULL:
            raise LibraryError(
                f"load: the object of '{self.name}' has no function '{symbol}'.",
                code="library-symbol",
            )
        return ffi.gc(ffi.cast(_TYPES[kind], address), _Hold(self))


class _Hold:
    """Keeps a library loaded as long as a pointer into it lives; there is nothing to free."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def __call__(self, pointer: Pointer) -> None:
        """The pointer is gone."""


def _check_instructions(shared: SharedObject, name: str) -> None:
    """Refuse code that would end this process at an instruction. Raises: TargetError."""
    here = host().instructions
    if not covers(here, shared.instructions):
        raise TargetError(
            f"load: '{name}' is compiled for {shared.instructions}, which this machine lacks; it "
            f"has {', '.join(here)}.",
            code="load-isa",
        )


def _open(shared: SharedObject, name: str) -> Pointer:
    loader = _loader()
    if shared.path is not None:
        handle = loader.dlopen(os.fsencode(shared.path), _RTLD_NOW)
        if handle != ffi.NULL:
            return handle
    with telling_full_disk(name), temporary_folder() as folder:
        file = Path(folder, "object.so")
        file.write_bytes(shared.binary)
        handle = loader.dlopen(os.fsencode(file), _RTLD_NOW)
        if handle == ffi.NULL:
            said = ffi.string(loader.dlerror()).decode(errors="replace").replace(str(file), "it")
            raise _not_loaded(shared, name, said, Path(folder).parent)
        return handle


def _not_loaded(shared: SharedObject, name: str, said: str, temporary: Path) -> LibraryError:
    """The error for an object that the loader refused from the cache and from a temporary folder.

    said: by the loader. temporary: where temporary folders lie.
    """
    notes: tuple[str, ...] = (f"it was made by {shared.compiler}.",)
    hints: tuple[str, ...] = ()
    if _is_noexec(temporary):
        # where the cache lost the file, its folder is not what stood in the way
        places = {"TMPDIR": temporary}
        if shared.path is not None and shared.path.exists() and _is_noexec(shared.path.parent):
            places = {FOLDER_VARIABLE: shared.path.parent, **places}
        listed = " and ".join(f"'{folder}'" for folder in places.values())
        verb = "are" if len(places) > 1 else "is"
        notes += (f"{listed} {verb} mounted noexec: no code is loaded from there.",)
        hints = (f"name a folder that is not mounted noexec in {' or '.join(places)}.",)
    return LibraryError(
        f"load: the object of '{name}' cannot be loaded: {said}.",
        code="library-load",
        notes=notes,
        hints=hints,
    )


def _is_noexec(folder: Path) -> bool:
    """Whether the system says that no code is run from a folder; False where it does not say."""
    flag: int = getattr(os, "ST_NOEXEC", 0)  # Linux alone has it
    try:
        return bool(os.statvfs(folder).f_flag & flag)
    except OSError:
        return False
