"""The options of a compile.

One that has a single value so far refuses others, never ignores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..runtime.model.verification import RELATIVE
from .errors import ModelError

if TYPE_CHECKING:
    from ..schedule.source import Chooser, ScheduleSource
    from .passes.pipeline import GraphPass
    from .precision.accuracy import Accuracy
    from .precision.calibration.calibration import Calibration

Range = tuple[int, int, int]  # the least, the usual and the largest size
Shapes = Mapping[str, Sequence[int | Range | Sequence[int | Range]] | int]
LARGEST_MODEL = (1 << 31) - 1  # bytes of a file; protobuf cannot hold more
LEAST_TOLERANCE = RELATIVE["float32"]
Verify = Literal["all", "rewrites", "kernels", "emulated", "off"]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a build depends on besides model and target; `compile` says what each means."""

    shapes: Shapes | None = None
    schedules: ScheduleSource | Chooser | None = None
    require_tuned: bool = False
    passes: tuple[GraphPass, ...] | None = None
    max_contexts: int | None = None
    strict: bool = False
    verify: Verify = "all"
    tolerance: float | None = None
    constants: Mapping[str, object] | None = None
    precision: str | Mapping[str, str] = "float32"
    calibration: Calibration | None = None
    accuracy: Accuracy | None = None
    cache: bool = True

    def __post_init__(self) -> None:
        """Refuse options that no build has. Raises: ShapesError, OptionError."""
        check_shapes(self.shapes)
        check_constants(self.constants)
        check_tolerance(self.tolerance, self.strict)
        check_precision(self.precision, self.strict)


class PassesError(ModelError, TypeError):
    """The passes of a compile are no series of passes."""


class ShapesError(ModelError, TypeError):
    """The shapes of a compile are no mapping."""


class ConstantsError(ModelError, TypeError):
    """The constants of a compile are no mapping."""


class OptionError(ModelError):
    """An option of `compile` has a value that does not exist, or that this version cannot serve."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The values of an option, and what is not there yet."""

    values: tuple[object, ...]
    later: tuple[object, ...] = ()


OPTIONS = {
    "precision": Accepted(("float32", "float16", "bfloat16", "int8", "auto")),
    "effort": Accepted(("default",), ("fast", "best")),
    "deterministic": Accepted(("engine",), ("batch",)),
    "verify": Accepted(("all", "rewrites", "kernels", "emulated", "off")),
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


def check_tolerance(tolerance: object, strict: bool) -> None:
    """Refuse what is no share of an output's magnitude, is stricter than what every engine is held
    to, or contradicts `strict`. Raises: OptionError.
    """
    if tolerance is None:
        return
    if (
        isinstance(tolerance, bool)
        or not isinstance(tolerance, float | int)
        or not LEAST_TOLERANCE <= tolerance < 1
    ):
        raise OptionError(
            f"compile: option tolerance={tolerance!r} is no error that can be asked for; expected "
            "None, or the share of an output's largest magnitude, below 1 and at least "
            f"{LEAST_TOLERANCE:g}, to which float32 is held without it.",
            code="compile-tolerance",
        )
    if strict:
        raise OptionError(
            f"compile: options strict=True and tolerance={tolerance!r} contradict each other: a "
            "strict build takes no other algorithm than the operators' own.",
            code="compile-tolerance-strict",
            hints=("leave out one of them.",),
        )


def check_precision(precision: object, strict: bool) -> None:
    """Refuse what is no type of products, maps no names to such types, or contradicts `strict`.

    Raises: OptionError.
    """
    if not isinstance(precision, Mapping):
        check_options(precision=precision)
        kinds = [precision]
    else:
        kinds = list(precision.values())
        known = OPTIONS["precision"].values[:-1]  # which of them, one can leave open for all alone
        for name, kind in precision.items():
            if not isinstance(name, str) or kind not in known:
                listed = " or ".join(map(repr, known))
                raise OptionError(
                    f"compile: option precision={{{name!r}: {kind!r}}} is no precision of a "
                    f"product; expected the name of a node or a value, and {listed}.",
                    code="compile-precision",
                )
    if strict and not set(kinds) <= {"float32"}:
        raise OptionError(
            f"compile: options strict=True and precision={precision!r} contradict each other: a "
            "strict build rounds where the model does.",
            code="compile-precision-strict",
            hints=("leave out one of them.",),
        )


def kinds_of(precision: str | Mapping[str, str]) -> tuple[str, ...]:
    """The types that a precision asks for, other than float32, each once."""
    found = precision.values() if isinstance(precision, Mapping) else (precision,)
    return tuple(kind for kind in dict.fromkeys(found) if kind != "float32")


def check_calibration(precision: object, calibration: object, accuracy: object) -> None:
    """Refuse products of bytes without ranges, and ranges or a budget that nothing would use.

    Raises: OptionError.
    """
    kinds = precision.values() if isinstance(precision, Mapping) else (precision,)
    needed = "int8" in kinds or precision == "auto"
    if precision == "auto" and accuracy is None:
        raise OptionError(
            "compile: option precision='auto' takes what is fastest within a budget; expected "
            "accuracy=...",
            code="compile-auto",
            hints=("tw.Accuracy(metric, max_drop=0.01, data=held) is one.",),
        )
    if needed and calibration is None:
        raise OptionError(
            f"compile: option precision={precision!r} needs the ranges of the values that become "
            "bytes; expected calibration=...",
            code="compile-calibration",
            hints=("tw.calibrate(model, data) finds them on data like those of later runs.",),
        )
    for name, given in (("calibration", calibration), ("accuracy", accuracy)):
        if given is not None and not needed:
            raise OptionError(
                f"compile: option {name} is of no use with precision={precision!r}; expected "
                "'int8' or 'auto'.",
                code="compile-no-bytes",
            )
    _check_types(calibration, accuracy)


def _check_types(calibration: object, accuracy: object) -> None:
    """Raises: OptionError for a calibration or an accuracy that is none."""
    if calibration is None and accuracy is None:
        return
    # here, because most compiles have none of them
    from .precision.accuracy import Accuracy
    from .precision.calibration.calibration import Calibration

    for given, kind, hint in (
        (calibration, Calibration, "tw.calibrate(model, data) makes a Calibration."),
        (accuracy, Accuracy, "tw.Accuracy(metric, max_drop=0.01, data=held) is one."),
    ):
        if given is not None and not isinstance(given, kind):
            raise OptionError(
                f"compile: option {kind.__name__.lower()} is of type {type(given).__name__}; "
                f"expected {kind.__name__}.",
                code="compile-calibration-type",
                hints=(hint,),
            )


def check_shapes(shapes: object) -> None:
    """Refuse what maps no names to sizes. Raises: ShapesError."""
    if shapes is not None and not isinstance(shapes, Mapping):
        raise ShapesError(
            f"compile: shapes is {shapes!r}; expected a dict from inputs or symbols to sizes.",
            code="compile-shapes",
            hints=('shapes={"input": (1, 3, 224, 224)} or shapes={"batch": 1}.',),
        )


def given_passes(passes: object) -> tuple[GraphPass, ...] | None:
    """The passes that a caller gives. Raises: PassesError."""
    if passes is not None and not isinstance(passes, Iterable):
        raise PassesError(
            f"compile: passes is {passes!r}; expected passes in order.",
            code="compile-passes",
            hints=("tw.PASSES.after(kind, one) is the usual ones and one more.",),
        )
    return None if passes is None else tuple(passes)


def check_constants(constants: object) -> None:
    """Refuse what maps no names to values. Raises: ConstantsError."""
    if constants is not None and not isinstance(constants, Mapping):
        raise ConstantsError(
            f"compile: constants is {constants!r}; expected a dict from inputs to their values.",
            code="compile-constants",
            hints=('constants={"axes": [1]}.',),
        )
