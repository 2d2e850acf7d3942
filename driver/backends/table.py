"""The back end of each kind of target."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ...runtime.engine.engine_code import EngineCode, Sections
from ...tir.parsing.json_reader import Reader
from ...tir.target import KINDS, Target
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


def read_code(data: Reader, sections: Sections, compiler: str) -> EngineCode:
    """An engine's code from its file, as the back end of its target reads it.

    Raises: IRError; Malformed.
    """
    kind = data["target"]["kind"].one_of(*KINDS)
    return backend_named(kind).read_code(data, sections, compiler)
