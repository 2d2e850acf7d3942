"""Several translation units as one object."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.runtime.toolchain.compile import Units
from tilewright.runtime.toolchain.library import SharedObject
from tilewright.tir.target.target import Target


def linked(sources: Sequence[str], target: Target, name: str = "kernel") -> SharedObject:
    """The object of the units, compiled at once."""
    with Units(name) as units:
        for source in sources:
            units.add(source, target)
        return units.link()
