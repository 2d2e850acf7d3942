"""Which devices run the machine code of which architecture."""

from __future__ import annotations

import re

_ARCH = re.compile(r"sm_(\d+)(\d)(a?)")


def capability_of(arch: str) -> tuple[int, int]:
    """The compute capability that an architecture names: "sm_90a" is (9, 0)."""
    match = _ARCH.fullmatch(arch)
    assert match is not None, arch
    return int(match[1]), int(match[2])


def runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Whether a device runs what is compiled for an architecture: one of the same major version, no
    older; of one with an "a", the same alone.
    """
    major, minor = capability_of(arch)
    if arch.endswith("a"):
        return (major, minor) == capability
    return major == capability[0] and minor <= capability[1]
