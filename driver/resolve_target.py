"""From what a caller names to a Target: where this machine is meant, it is looked at here."""

from __future__ import annotations

from dataclasses import fields, replace

from ..runtime.machine.host import host_target
from ..tir.target import Target


def resolve_target(target: Target | str | None) -> Target:
    """The target that a caller names, complete.

    None and an open one, "c" or Target("c", threads=2), are this machine's CPU, an open one of
    "cuda" its GPU; what an open target gives, such as its threads, stays.
    Raises: TargetError; NoDevice.
    """
    asked = Target() if target is None else target
    if not isinstance(asked, Target):
        asked = Target.parse(asked)
    if not asked.is_open:
        return asked
    given = {f.name: value for f in fields(asked) if (value := getattr(asked, f.name))}
    return replace(host_target() if asked.kind == "c" else _gpu_here(), **given)


def _gpu_here() -> Target:
    from ..runtime.cuda.device.availability import Available, availability  # nobody else needs it

    found = availability()
    if not isinstance(found, Available):
        raise found.error()
    return Target("cuda", found.devices[0].arch)
