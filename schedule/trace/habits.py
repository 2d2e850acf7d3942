"""Arguments as other systems take them, each answered with ours: split(i, 8), cache_write("C",
"local"). Only calls are looked at: a trace is replayed as it was recorded.
"""

from __future__ import annotations

from ..errors import ScheduleError
from .references import LoopRef

# scopes of memory, by other systems' names and ours -> the scope of ours
_SCOPES = {
    "global": "global",
    "local": "register",
    "register": "register",
    "shared": "shared",
    "shared.dyn": "shared",
    "team": "shared",
    "thread": "thread",
    "warp": "register",
}


class ArgumentFormError(ScheduleError, TypeError):
    """A step takes its arguments in another form."""


def check_factors(loop: object, factors: object, factor: object, nparts: object) -> None:
    """Refuse one factor where `split` takes all of them. Raises: ArgumentFormError."""
    if factor is None and nparts is None and isinstance(factors, tuple | list) and factors:
        return
    name = loop.name if isinstance(loop, LoopRef) else str(loop)
    inner = factor if factor is not None else factors if isinstance(factors, int) else 8
    wanted = f"(None, {inner})" if nparts is None else f"({nparts}, None)"
    given = {"factors": factors or None, "factor": factor, "nparts": nparts}
    shown = ", ".join(f"{key}={value!r}" for key, value in given.items() if value is not None)
    raise ArgumentFormError(
        f"split: got {shown or 'no factors'}; expected the extents of all new loops, outermost "
        "first, of which one may be None.",
        code="split-form",
        hints=(f"in tilewright: outer, inner = sch.split({name}, {wanted}).",),
    )


def check_cache_name(primitive: str, name: object) -> None:
    """Refuse a scope of memory where the name of the copy stands. Raises: ArgumentFormError."""
    if isinstance(name, str) and name in _SCOPES:
        raise ArgumentFormError(
            f"{primitive}: the name of the copy is {name!r}, which is a scope of memory; expected "
            "another name, or none.",
            code="cache-name",
            hints=(
                f"in tilewright: sch.{primitive}(...) makes the copy, and "
                f"sch.set_scope(copy, '{_SCOPES[name]}') says where it lies.",
            ),
        )
