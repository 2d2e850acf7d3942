"""The options of torch.compile(..., backend="tilewright", options={...})."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from ...graph.options import (
    OptionError,
    Verify,
    check_calibration,
    check_options,
    check_precision,
    check_tolerance,
)
from ...graph.precision.calibration.calibration import Calibration
from ...tir.errors import known_names

Else = Literal["torch", "refuse"]


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """What a user may say. fallback, training: what runs a graph that tilewright cannot compile,
    and one whose gradients are needed: torch, or none, with an error. threads: of a run, by default
    as many as torch uses. strict, verify, tolerance, cache, precision: as `tilewright.compile` has
    them, but for "auto", which an accuracy decides. calibration: of the module, a
    `tilewright.Calibration` or the path of its file.
    """

    fallback: Else = "torch"
    training: Else = "torch"
    threads: int | None = None
    strict: bool = False
    verify: Verify = "all"
    tolerance: float | None = None
    cache: bool = True
    precision: str | Mapping[str, str] = "float32"
    calibration: Calibration | str | os.PathLike[str] | None = None

    @staticmethod
    def of(given: Mapping[str, object] | None) -> TorchOptions:
        """The options that a dict has. Raises: OptionError."""
        known = tuple(one.name for one in fields(TorchOptions))
        for name in given or {}:
            if name == "accuracy":
                raise _no_accuracy("accuracy=...")
            if name not in known:
                raise OptionError(
                    f"torch.compile: there is no option '{name}' of the backend 'tilewright'; the "
                    f"options are: {known_names(str(name), known)}.",
                    code="torch-option",
                )
        made = TorchOptions(**dict(given or {}))  # type: ignore[arg-type]
        for name in ("fallback", "training"):
            value = getattr(made, name)
            if value not in ("torch", "refuse"):
                raise OptionError(
                    f"torch.compile: option {name}={value!r} has no meaning; expected 'torch' or "
                    "'refuse'.",
                    code="torch-option-value",
                )
        check_options(verify=made.verify)
        check_tolerance(made.tolerance, made.strict)
        check_precision(made.precision, made.strict)
        if made.precision == "auto":
            raise _no_accuracy("precision='auto'")
        if isinstance(made.calibration, str | os.PathLike):
            made = replace(made, calibration=Calibration.load(made.calibration))
        check_calibration(made.precision, made.calibration, None)
        return made

    @property
    def known_calibration(self) -> Calibration | None:
        """The calibration itself, which `of` read where it was a file."""
        assert self.calibration is None or isinstance(self.calibration, Calibration)
        return self.calibration


def _no_accuracy(option: str) -> OptionError:
    return OptionError(
        f"torch.compile: option {option} is decided by measuring a whole model on data, and torch "
        "hands over graphs as it meets them; expected the types of products.",
        code="torch-accuracy",
        hints=(
            "tilewright.compile(module, args=(x,), precision=..., accuracy=...) is held to one.",
            "options={'precision': 'int8', 'calibration': tilewright.calibrate(module, data, "
            "args=(x,))} takes bytes in all products that can.",
        ),
    )
