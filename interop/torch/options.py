"""The options of torch.compile(..., backend="tilewright", options={...})."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from ...graph.options import OptionError, Verify, check_options, check_tolerance
from ...tir.errors import known_names

Else = Literal["torch", "refuse"]


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """What a user may say. fallback, training: what runs a graph that tilewright cannot compile,
    and one whose gradients are needed: torch, or none, with an error. threads: of a run, by default
    as many as torch uses. strict, verify, tolerance, cache: as `tilewright.compile` has them.
    """

    fallback: Else = "torch"
    training: Else = "torch"
    threads: int | None = None
    strict: bool = False
    verify: Verify = "all"
    tolerance: float | None = None
    cache: bool = True

    @staticmethod
    def of(given: Mapping[str, object] | None) -> TorchOptions:
        """The options that a dict has. Raises: OptionError."""
        known = tuple(one.name for one in fields(TorchOptions))
        for name in given or {}:
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
        return made
