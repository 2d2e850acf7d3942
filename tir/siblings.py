"""The modules beside one, for sets that nobody lists: what stands in a file belongs to its set."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def siblings(name: str) -> Iterator[ModuleType]:
    """The other modules of the package of a module, by name."""
    package = name.rpartition(".")[0]
    for item in iter_modules(import_module(package).__path__, f"{package}."):
        if item.name != name:
            yield import_module(item.name)
