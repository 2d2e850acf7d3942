"""The kinds of targets: those built in, and those of back ends that other packages bring as
entry points of the group `tilewright.targets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extensions import package_entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = ("c", "cuda", "python", "null")
GROUP = "tilewright.targets"


def is_kind(kind: str) -> bool:
    """Whether there is such a kind of target; packages are looked through for one not built in."""
    return kind in BUILT_IN or any(one.name == kind for one in package_entry_points(GROUP))


def entry_point(kind: str) -> EntryPoint:
    """What loads the back end of a kind that is not built in. Raises: KeyError."""
    for found in package_entry_points(GROUP):
        if found.name == kind:
            return found
    raise KeyError(kind)
