"""The options of a compile that have one value so far: another one is refused, never ignored."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ModelError


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
