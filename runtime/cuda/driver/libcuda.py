"""The driver's own library through cffi in ABI mode: whether it is there, what its errors are
called, and the graphs that PyCUDA lacks. The primary context is one for all who speak to it.
"""

from __future__ import annotations

import os
from functools import cache, cached_property
from types import SimpleNamespace

import _cffi_backend

from ...toolchain.library import Pointer, ffi
from .driver import CallFailed

LIBRARY = "libcuda.so.1"

_FUNCTIONS = {
    "cuInit": "int(*)(unsigned int flags)",
    "cuDriverGetVersion": "int(*)(int *version)",
    "cuDeviceGetCount": "int(*)(int *count)",
    "cuGetErrorName": "int(*)(int status, const char **name)",
    "cuGetErrorString": "int(*)(int status, const char **text)",
    "cuStreamSynchronize": "int(*)(void *stream)",
    "cuStreamBeginCapture_v2": "int(*)(void *stream, int mode)",
    "cuStreamEndCapture": "int(*)(void *stream, void **graph)",
    "cuGraphGetNodes": "int(*)(void *graph, void **nodes, size_t *count)",
    "cuGraphInstantiateWithFlags": "int(*)(void **made, void *graph, unsigned long long flags)",
    "cuGraphLaunch": "int(*)(void *made, void *stream)",
    "cuGraphExecDestroy": "int(*)(void *made)",
    "cuGraphDestroy": "int(*)(void *graph)",
}
_LARGEST_STATUS = 1000


class Libcuda:
    """The loaded library: `call.GraphLaunch` is cuGraphLaunch, and gives its status."""

    def __init__(self) -> None:
        """Load it for all libraries of this process, so that PyCUDA finds it wherever it lies.

        Raises: OSError; AttributeError where it is too old to have a function.
        """
        flags = os.RTLD_NOW | os.RTLD_GLOBAL
        self._library = _cffi_backend.load_library(LIBRARY, flags)
        self.call = SimpleNamespace(
            **{
                name.removeprefix("cu"): self._library.load_function(ffi.typeof(kind), name)
                for name, kind in _FUNCTIONS.items()
            }
        )

    def check(self, function: str, *arguments: object) -> None:
        """Call a function by its short name. Raises: CallFailed."""
        status = getattr(self.call, function)(*arguments)
        if status:
            raise CallFailed(f"cu{function}", status, self.text(status))

    def version(self) -> tuple[int, int]:
        """The newest CUDA that it knows."""
        number = ffi.new("int *")
        self.check("DriverGetVersion", number)
        return number[0] // 1000, number[0] % 1000 // 10

    def device_count(self) -> int:
        """How many devices it shows. Raises: CallFailed."""
        count = ffi.new("int *")
        self.check("DeviceGetCount", count)
        return int(count[0])

    def text(self, status: int) -> str:
        """What it says of a status: "an illegal memory access was encountered"."""
        return self._said(self.call.GetErrorString, status) or "an unknown error"

    def name(self, status: int) -> str:
        """What a status is called: "CUDA_ERROR_ILLEGAL_ADDRESS"."""
        return self._said(self.call.GetErrorName, status) or "CUDA_ERROR"

    def status(self, text: str) -> int | None:
        """The status that it says such a text of."""
        return self._statuses.get(text)

    def _said(self, function: Pointer, status: int) -> str | None:
        text = ffi.new("char **")
        if function(status, text) or text[0] == ffi.NULL:
            return None
        return str(ffi.string(text[0]).decode(errors="replace"))

    @cached_property
    def _statuses(self) -> dict[str, int]:
        texts = {status: self._said(self.call.GetErrorString, status) for status in _every_status()}
        return {text: status for status, text in texts.items() if text is not None}


def _every_status() -> range:
    return range(_LARGEST_STATUS, 0, -1)  # the smallest of two with one text is kept


@cache
def libcuda() -> Libcuda:
    """The library, loaded once. Raises: OSError, AttributeError."""
    return Libcuda()
