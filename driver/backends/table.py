"""The back end of each kind of target.

That of a kind which is built in stands in the module of its name, as the value of its name in
capitals. It is imported when it is asked for: a CPU's start is shorter without the GPU's.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...runtime.artifact_json import kind_from_json
from ...runtime.engine.engine_code import EngineCode, Sections
from ...tir.errors import TargetError
from ...tir.json_reader import Reader
from ...tir.target.kinds import BUILT_IN, GROUP, entry_point
from ...tir.target.target import Target
from .backend import Backend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ..tuning.tuner import Tuner


def backend_of(target: Target) -> Backend:
    """The back end of a target."""
    return backend_named(target.kind)


@cache
def backend_named(kind: str) -> Backend:
    """The back end of a kind of target, which Target has accepted. Raises: TargetError where a
    package brings it and it does not load.
    """
    if kind in BUILT_IN:
        found: Backend = getattr(import_module(f".{kind}", __package__), kind.upper())
    else:
        found = _loaded(entry_point(kind))
    return found


def _loaded(brought: EntryPoint) -> Backend:
    """The back end that a package brings. Raises: TargetError."""
    try:
        found: Backend = brought.load()
    except Exception as error:  # a module of others may raise anything
        raise TargetError(
            f"target: the back end '{brought.name}' of another package does not load: {error}.",
            code="target-load",
            hints=(f"its entry point of '{GROUP}' says '{brought.value}'.",),
        ) from error
    return found


def tuner_of(target: Target) -> Tuner[Any]:
    """How candidates for a target are tuned. Raises: TuneError."""
    from ..tuning.errors import TuneError  # what loads an engine tunes nothing

    found = backend_of(target).tuner
    if found is None:
        raise TuneError(
            f"tune: target '{target}' runs nothing that can be timed; expected 'c' or 'cuda'.",
            code="tune-target",
        )
    return found


def read_code(data: Reader, sections: Sections, compiler: str) -> EngineCode:
    """An engine's code from its file, as the back end of its target reads it.

    Raises: IRError; Malformed.
    """
    return backend_named(kind_from_json(data["target"]["kind"])).read_code(data, sections, compiler)
