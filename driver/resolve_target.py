"""From what a caller names to a Target: where this machine is meant, it is looked at here."""

from __future__ import annotations

from ..runtime.host import host_target
from ..tir.target import Target


def resolve_target(target: Target | str | None) -> Target:
    """The target that a caller names; this machine's CPU for None and "c", its GPU for "cuda".

    Raises: TargetError; NoDevice.
    """
    if isinstance(target, Target):
        return target
    if target == "cuda":
        from ..runtime.cuda.availability import Available, availability  # nobody else needs it

        found = availability()
        if not isinstance(found, Available):
            raise found.error()
        return Target.parse(f"cuda:{found.devices[0].arch}")
    return host_target() if target in (None, "c") else Target.parse(target)
