"""The options of a compile.

One that has a single value so far refuses others, never ignores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .errors import ModelError

if TYPE_CHECKING:
    from ..schedule.source import Chooser, ScheduleSource
    from .passes.pipeline import Pass

Shapes = Mapping[str, Sequence[int] | int]
Verify = Literal["all", "rewrites", "kernels", "off"]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a build depends on besides model and target; `compile` says what each means."""

    shapes: Shapes | None = None
    schedules: ScheduleSource | Chooser | None = None
    require_tuned: bool = False
    passes: tuple[Pass, ...] | None = None
    max_contexts: int | None = None
    strict: bool = False
    verify: Verify = "all"


class ShapesError(ModelError, TypeError):
    """The shapes of a compile are no mapping."""


class OptionError(ModelError):
    """An option of `compile` has a value that does not exist, or that this version cannot serve."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The values of an option, and what is not there yet."""

    values: tuple[object, ...]
    later: tuple[object, ...] = ()


OPTIONS = {
    "precision": Accepted(("float32",), ("float16", "bfloat16", "int8")),
    "effort": Accepted(("default",), ("fast", "best")),
    "deterministic": Accepted(("engine",), ("batch",)),
    "verify": Accepted(("all", "rewrites", "kernels", "off")),
    "calibration": Accepted((None,)),
}


def check_options(**given: object) -> None:
    """Refuse a value that is not accepted. Raises: OptionError."""
    for name, value in given.items():
        accepted = OPTIONS[name]
        if value in accepted.values:
            continue
        listed = " or ".join(repr(one) for one in accepted.values)
        known = (
            " is not available in this version" if value in accepted.later else " has no meaning"
        )
        raise OptionError(
            f"compile: option {name}={value!r}{known}; expected {listed}.", code="compile-option"
        )


def check_shapes(shapes: object) -> None:
    """Refuse what maps no names to sizes. Raises: ShapesError."""
    if shapes is not None and not isinstance(shapes, Mapping):
        raise ShapesError(
            f"compile: shapes is {shapes!r}; expected a dict from inputs or symbols to sizes.",
            code="compile-shapes",
            hints=('shapes={"input": (1, 3, 224, 224)} or shapes={"batch": 1}.',),
        )
