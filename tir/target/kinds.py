"""The kinds of targets: those built in, and those of back ends that other packages bring as
entry points of the group `tilewright.targets`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = ("c", "cuda", "python", "null")
GROUP = "tilewright.targets"


def is_kind(kind: str) -> bool:
    """Whether there is such a kind of target; packages are looked through for one not built in."""
    return kind in BUILT_IN or any(one.name == kind for one in package_entry_points())


def entry_point(kind: str) -> EntryPoint:
    """What loads the back end of a kind that is not built in. Raises: KeyError."""
    for found in package_entry_points():
        if found.name == kind:
            return found
    raise KeyError(kind)


@cache
def package_entry_points() -> tuple[EntryPoint, ...]:
    """What loads the back ends of other packages."""
    from importlib.metadata import entry_points  # slow, and most runs use no such kind

    return tuple(entry_points(group=GROUP))
