"""The closed set of core operators: every node of every Graph holds one of these.

They are what the modules beside this one define, so nobody lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isabstract

from ...tir.siblings import siblings
from .base import Operator


def _defined() -> Iterator[type[Operator]]:
    """The operators of each module, without what they have in common."""
    for module in siblings(__name__):
        for value in vars(module).values():
            known = isinstance(value, type) and issubclass(value, Operator)
            if known and value.__module__ == module.__name__ and not isabstract(value):
                yield value


OPERATORS: tuple[type[Operator], ...] = tuple(sorted(_defined(), key=lambda kind: kind.__name__))
