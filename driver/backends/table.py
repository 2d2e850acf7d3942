"""The back end of each kind of target."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ...tir.target import Target
from .backend import Backend

# module and name of each; one is imported when it is asked for: a CPU's start is shorter without
# the GPU's
_BUILT_IN = {
    "c": ("c", "C"),
    "cuda": ("cuda", "CUDA"),
    "python": ("python", "PYTHON"),
    "null": ("null", "NULL"),
}


def backend_of(target: Target) -> Backend:
    """The back end of a target."""
    return backend_named(target.kind)


@cache
def backend_named(kind: str) -> Backend:
    """The back end of a kind of target."""
    module, name = _BUILT_IN[kind]
    found: Backend = getattr(import_module(f".{module}", __package__), name)
    return found
