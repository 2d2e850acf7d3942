"""From what a caller names to a Target: where this machine is meant, its back end looks at it."""

from __future__ import annotations

from ..tir.target.target import Target
from .backends.table import backend_of


def resolve_target(target: Target | str | None) -> Target:
    """The target that a caller names, complete.

    None and an open one, "c" or Target("c", threads=2), are this machine's CPU, an open one of
    "cuda" its GPU; what an open target gives, such as its threads, stays.
    Raises: TargetError; NoDevice.
    """
    asked = Target() if target is None else target
    if not isinstance(asked, Target):
        asked = Target.parse(asked)
    return backend_of(asked).complete(asked) if asked.is_open else asked
