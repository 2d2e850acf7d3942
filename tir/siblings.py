"""The modules beside one, and in the folders there, for sets that nobody lists: what stands in a
file belongs to its set.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def siblings(name: str) -> Iterator[ModuleType]:
    """The other modules of the package of a module and of the packages in it, by their own names,
    whichever folder they stand in.
    """
    found = [other for other in _modules(name.rpartition(".")[0]) if other != name]
    for other in sorted(found, key=lambda other: other.rpartition(".")[2]):
        yield import_module(other)


def merged(name: str, table: str) -> dict[str, Any]:
    """One dict of those that siblings of a module have under a name; a key stands in one alone."""
    found = dict[str, Any]()
    for module in siblings(name):
        own: dict[str, Any] = getattr(module, table, {})
        assert found.keys().isdisjoint(own), module.__name__
        found |= own
    return found


def _modules(package: str) -> Iterator[str]:
    for item in iter_modules(import_module(package).__path__, f"{package}."):
        if item.ispkg:
            yield from _modules(item.name)
        else:
            yield item.name
