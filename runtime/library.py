"""Load a shared object and give the addresses of its entries.

This goes through cffi in ABI mode, which needs no Python headers. The loader itself (dlopen, dlsym)
is called, not `ffi.dlopen`, so that the names of entries need no declaration each, and so that an
object that must outlive the interpreter's shutdown can be pinned.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import TypeAlias

import cffi

from ..tir.errors import TilewrightError
from .compile import SharedObject

Pointer: TypeAlias = "cffi.FFI.CData"

_RTLD_NOW = 2
_DECLARATIONS = """
struct tw_team { void (*barrier)(void *state, int thread); void *state; };
typedef void (*tw_entry)(void *const *args, const struct tw_team *team, int thread, int threads);
typedef int (*tw_run)(tw_entry entry, void *const *args, int threads);
typedef int (*tw_count)(void);
void *dlopen(const char *path, int mode);
void *dlsym(void *handle, const char *name);
int dlclose(void *handle);
char *dlerror(void);
"""

ffi = cffi.FFI()
ffi.cdef(_DECLARATIONS)


class LibraryError(TilewrightError, OSError):
    """A shared object cannot be loaded into this process, or lacks an entry."""


@cache
def _loader() -> cffi.FFI.CData:
    loader = ffi.dlopen(None)
    # looking one up makes the system's loader forget its last error, so all are looked up now
    for name in ("dlopen", "dlsym", "dlclose", "dlerror"):
        getattr(loader, name)
    return loader


class Library:
    """A loaded shared object; unloaded when nobody holds it, unless `pinned` (then never)."""

    def __init__(self, shared: SharedObject, *, name: str, pinned: bool = False) -> None:
        """Load the object from the cache's file, or from its bytes where that file is not there.

        Raises: LibraryError.
        """
        self.name = name
        handle = _open(shared, name)
        if not pinned:
            weakref.finalize(self, _loader().dlclose, handle).atexit = False
        self._handle = handle

    def entry(self, symbol: str, kind: str = "tw_entry") -> Pointer:
        """The address of a function, as a C function pointer of type `kind`; it holds the library.

        Raises: LibraryError.
        """
        address = _loader().dlsym(self._handle, symbol.encode())
        if address == ffi.NULL:
            raise LibraryError(
                f"load: the object of '{self.name}' has no function '{symbol}'.",
                code="library-symbol",
            )
        return ffi.gc(ffi.cast(kind, address), _Hold(self))


class _Hold:
    """Keeps a library loaded as long as a pointer into it lives; there is nothing to free."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def __call__(self, pointer: Pointer) -> None:
        """The pointer is gone."""


def _open(shared: SharedObject, name: str) -> Pointer:
    loader = _loader()
    if shared.path is not None:
        handle = loader.dlopen(os.fsencode(shared.path), _RTLD_NOW)
        if handle != ffi.NULL:
            return handle
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        file = Path(folder, "object.so")
        file.write_bytes(shared.binary)
        handle = loader.dlopen(os.fsencode(file), _RTLD_NOW)
        if handle == ffi.NULL:
            said = ffi.string(loader.dlerror()).decode(errors="replace").replace(str(file), "it")
            raise LibraryError(
                f"load: the object of '{name}' cannot be loaded: {said}.",
                code="library-load",
                notes=(f"it was made by {shared.compiler}.",),
            )
        return handle
