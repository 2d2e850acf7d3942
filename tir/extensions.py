"""What other packages bring, as entry points of the groups `tilewright.*`: which there are.

Looking imports nothing of theirs. TILEWRIGHT_EXTENSIONS=0 hides them all.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXTENSIONS_VARIABLE = "TILEWRIGHT_EXTENSIONS"
_OFF = ("0", "off")


def extensions_are_off() -> bool:
    """Whether a variable of the environment hides what other packages bring."""
    return os.environ.get(EXTENSIONS_VARIABLE, "") in _OFF


def package_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group by name; none where they are hidden."""
    return () if extensions_are_off() else installed_entry_points(group)


@cache
def installed_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group by name, hidden or not."""
    from importlib.metadata import entry_points  # slow, and most runs use none

    return tuple(sorted(entry_points(group=group), key=lambda one: (one.name, one.value)))


def package_title(entry: EntryPoint) -> str:
    """The distribution that brings an entry point, with its version: "my-ops 1.0"."""
    return "a package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
