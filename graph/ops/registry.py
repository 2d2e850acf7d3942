"""The closed set of core operators: every node of every Graph holds one of these.

They are what the modules beside this one define, so nobody lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules

from .base import Operator


def _defined() -> Iterator[type[Operator]]:
    """The operators of each module of this package, without what they have in common."""
    package = __name__.rpartition(".")[0]
    for item in iter_modules(import_module(package).__path__, f"{package}."):
        for value in vars(import_module(item.name)).values():
            known = isinstance(value, type) and issubclass(value, Operator)
            if known and value.__module__ == item.name and not isabstract(value):
                yield value


OPERATORS: tuple[type[Operator], ...] = tuple(sorted(_defined(), key=lambda kind: kind.__name__))
