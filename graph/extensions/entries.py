"""What an entry point of another package stands for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from ...tir.extensions import EXTENSIONS_VARIABLE, package_entry_points, package_title
from ..errors import ExtensionError
from .origin import IMPORTERS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_OWN = ("", ".onnx", ".pt", ".pt2")  # suffixes of models that tilewright reads


def load(entry: EntryPoint) -> object:
    """What an entry point stands for. Raises: ExtensionError."""
    found = _loaded(entry)
    if isinstance(found, _Problem):
        raise ExtensionError(
            f"extensions: '{entry.name}' of {package_title(entry)} does not load: {found.text}.",
            code="extension-load",
            hints=(
                f"its entry point of '{entry.group}' says '{entry.value}'; "
                f"{EXTENSIONS_VARIABLE}=0 does without extensions.",
            ),
        ) from found.error
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Why an entry point does not load."""

    error: Exception

    @property
    def text(self) -> str:
        return " ".join(f"{type(self.error).__name__}: {self.error}".split()).rstrip(".")


@cache
def _loaded(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:  # a module of others may raise anything
        return _Problem(error)


def named_entry(group: str, name: str, what: str) -> EntryPoint | None:
    """The entry point of that name in a group; None where there is none.

    Raises: ExtensionError where several packages bring one.
    """
    found = [one for one in package_entry_points(group) if one.name == name]
    if len(found) > 1:
        packages = ", ".join(map(package_title, found))
        raise ExtensionError(
            f"extensions: {packages} each bring {what} '{name}'; expected one of them.",
            code="extension-twice",
            hints=("uninstall the others, or call the function of one: its module is yours.",),
        )
    return found[0] if found else None


def importer_of(model: object) -> EntryPoint | None:
    """What loads the importer of a model's file, where its suffix is none of ours and a package
    brings it. Raises: ExtensionError.
    """
    if not isinstance(model, str | os.PathLike):
        return None
    suffix = PurePath(os.fspath(model)).suffix.lower()
    return None if suffix in _OWN else named_entry(IMPORTERS, suffix[1:], "the importer of")
