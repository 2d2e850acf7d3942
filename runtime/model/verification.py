"""The check of an engine's outputs against a reference, and what it found.

An output may be off by a share of its largest magnitude that goes by its type alone. Where it is
off by more, the model as imported, or with the operands of products as a caller had them rounded,
is computed three times, node by node: in float64; each tensor in
the type that the model gives it; and in float64 again, where each float of the inputs is the next
one up or down. By how much the latter two differ from the first is what the model's own rounding
explains, and GROWTH or GROWTH_OF_SUMS times as much is allowed, for another order of sums and other
fusions round elsewhere. What is wrong in all of them explains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ...tir.dtype import dtype
from ...tir.errors import TilewrightError
from ...tir.number import integer_range
from ...tir.text.display import printable
from ...tir.text.html import html_table
from ..arrays import Array
from .interface import ClosedSpec

# Times the largest error of the model in its own types: where it has tensors of 16 bits, whose
# rounding is most of it; of 32 and 64 alone, where sums are: NumPy adds in pairs, a kernel up to
# 4,096 terms one by one. 20 times as far off was seen, of a mean of 6,480 numbers that nearly
# cancel.
GROWTH, GROWTH_OF_SUMS = 8.0, 32.0
SLACK = 10.0  # times RELATIVE, between two systems: both round, in different orders
# of the largest magnitude of the reference; the types that are only stored: two last places
RELATIVE = {
    "float32": 1e-5,
    "float64": 1e-12,
    "float16": 2**-9,
    "bfloat16": 2**-6,
    "float8_e4m3fn": 2**-2,
    "float8_e5m2": 2**-1,
    "float8_e4m3fnuz": 2**-2,
    "float8_e5m2fnuz": 2**-1,
    "float4_e2m1fn": 2**-1,
}


class VerifyError(TilewrightError, ArithmeticError):
    """The outputs of an engine differ from the reference."""


@dataclass(frozen=True, slots=True)
class OutputReport:
    """How one output compares.

    error: the largest |output - reference|. share: the largest error over what is allowed; inf
    where one side is not finite and the other is, or differs in sign. place: the element of the
    largest share. rounding: the largest error of the model in its own types; None where nobody had
    to ask.
    """

    name: str
    error: float
    share: float
    place: tuple[int, ...]
    rounding: float | None = None

    def __str__(self) -> str:
        at = ", ".join(map(str, self.place))
        text = f"{self.name}: error {self.error:.3g} at [{at}], {self.share:.2g} of the allowed"
        if self.rounding is not None:
            text += f"; the model's own types explain {self.rounding:.3g}"
        return printable(text)

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Report:
    """The comparison of an engine with its reference; true where every output is close enough."""

    engine: str
    outputs: tuple[OutputReport, ...]

    def __bool__(self) -> bool:
        return all(output.share <= 1 for output in self.outputs)

    def __str__(self) -> str:
        head = printable(f"{self.engine}: {'equal within bounds' if self else 'different'}")
        return "\n".join([head, *(f"  {output}" for output in self.outputs)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(o.name, f"{o.error:.3g}", f"{o.share:.2g}") for o in self.outputs]
        return html_table(("output", "largest error", "of the allowed"), rows)

    def joined(self, other: Report, where: str) -> Report:
        """Both comparisons as one; where: what is said of the outputs of the other one."""
        added = (replace(one, name=f"{one.name} {where}") for one in other.outputs)
        return Report(self.engine, (*self.outputs, *added))

    def raise_for_difference(self) -> None:
        """Raises: VerifyError where an output differs."""
        if not self:
            worst = max(self.outputs, key=lambda output: output.share)
            raise VerifyError(
                f"verify: '{self.engine}' differs from its reference: {worst}.",
                code="verify-differs",
            )


def compare_outputs(
    engine: str,
    got: Mapping[str, Array],
    expected: Mapping[str, Array],
    atol: float | None = None,
    rtol: float | None = None,
    *,
    slack: float = 1.0,
    tolerance: float | None = None,
    roundings: Mapping[str, float] | None = None,
    halves: bool = False,
) -> Report:
    """Compare outputs by name.

    atol, rtol: |got - expected| <= atol + rtol * |expected|, element by element. Where neither is
    given, the error may be the share of the largest magnitude of the output that `allowed_share`
    says, or GROWTH, or GROWTH_OF_SUMS, times what `roundings` says of it: see `roundings_of`.
    halves: whether the model has tensors of 16 bits.
    """
    found = []
    for name, array in got.items():
        relative = allowed_share(str(dtype(array.dtype)), slack, tolerance)
        rounding = None if roundings is None else roundings[name]
        growth = GROWTH if halves or dtype(array.dtype).bits < 32 else GROWTH_OF_SUMS
        explained = growth * (rounding or 0.0)
        bound = _Bound(relative, explained, atol, rtol)
        found.append(_compare(name, array, expected[name], bound, rounding))
    return Report(engine, tuple(found))


class RoundedModel(Protocol):
    """The reference of a model: its outputs by name for inputs by name."""

    def __call__(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """With every float in float64."""

    def in_own_types(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """With each value in the model's own type."""

    @property
    def stores_halves(self) -> bool:
        """Whether it has tensors of floats of 16 bits, constants aside."""


def roundings_of(
    model: RoundedModel,
    inputs: Mapping[str, Array],
    exact: Mapping[str, Array],
    rounded: Mapping[str, Array],
) -> dict[str, float]:
    """By how much each output is off, at most, in the model's own types (`rounded`), and where the
    inputs are rounded otherwise; `exact`: in float64.
    """
    moved = model(_moved(inputs))
    return {
        name: max(_largest_difference(one[name], array) for one in (rounded, moved))
        for name, array in exact.items()
    }


def compare_in_own_types(
    engine: str,
    got: Mapping[str, Array],
    expected: Mapping[str, Array],
    model: RoundedModel,
    inputs: Mapping[str, Array],
    tolerance: float | None = None,
) -> Report:
    """Compare outputs by name with what the model's own types explain on these inputs."""
    roundings = roundings_of(model, inputs, model(inputs), model.in_own_types(inputs))
    return compare_outputs(
        engine,
        got,
        expected,
        tolerance=tolerance,
        roundings=roundings,
        halves=model.stores_halves,
    )


def _moved(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Each float the next one up or down, where its type is one of NumPy's own."""
    rng, found = np.random.default_rng(0), dict(inputs)
    for name, given in inputs.items():
        array = np.asarray(given)
        if array.dtype.kind == "f":
            ends = np.where(rng.integers(0, 2, array.shape) == 0, -np.inf, np.inf)
            found[name] = np.nextafter(array, ends.astype(array.dtype))
    return found


def _largest_difference(rounded: Array, expected: Array) -> float:
    """The largest difference where both are finite; none of arrays whose sizes differ."""
    if rounded.shape != expected.shape:
        return 0.0
    found, wanted = rounded.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(found) & np.isfinite(wanted)
    with np.errstate(invalid="ignore"):
        return float(np.max(np.abs(found - wanted), initial=0.0, where=finite))


def share_of_types(kinds: Iterable[str]) -> float | None:
    """By which share of its largest magnitude an output may be off between two systems of which one
    computes with operands of these types; None where none of them is a float of fewer bits.
    """
    return max((SLACK * RELATIVE[kind] for kind in kinds if kind in RELATIVE), default=None)


def allowed_share(kind: str, slack: float = 1.0, tolerance: float | None = None) -> float:
    """The share of an output's largest magnitude by which it may be off: `slack` times RELATIVE, of
    float32 1e-5, or the tolerance that it was compiled with, where that is more; 0 for what is no
    float.
    """
    return max(slack * RELATIVE[kind], tolerance or 0.0) if kind in RELATIVE else 0.0


def random_inputs(
    specs: Sequence[ClosedSpec], seed: int = 0, *, indices: bool = False
) -> dict[str, Array]:
    """Normal numbers for floats, small whole numbers for integers, truth values.

    indices: whether integers may be indices that a run checks; they are 0 and 1 then.
    """
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for spec in specs:
        kind = dtype(spec.dtype)
        if kind.is_float:
            made[spec.name] = rng.standard_normal(spec.shape).astype(spec.dtype)
        else:
            most = 2 if kind.is_bool or indices else 100
            high = most if kind.is_bool else min(most, integer_range(kind)[1])
            made[spec.name] = rng.integers(0, high, spec.shape).astype(spec.dtype)
    return made


@dataclass(frozen=True, slots=True)
class _Bound:
    """What an output may be off: by a share of its largest magnitude, or by what is explained,
    unless `atol` or `rtol` say otherwise.
    """

    relative: float
    explained: float
    atol: float | None
    rtol: float | None


def _compare(
    name: str, got: Array, expected: Array, bound: _Bound, rounding: float | None
) -> OutputReport:
    kind = dtype(got.dtype)
    if got.shape != expected.shape:  # data have decided otherwise
        return OutputReport(name, math.inf, math.inf, (0,) * got.ndim, rounding)
    found, wanted = got.astype(np.float64), expected.astype(np.float64)
    if not found.size:
        return OutputReport(name, 0.0, 0.0, (0,) * found.ndim)
    finite = np.isfinite(wanted) & np.isfinite(found)
    magnitude = np.abs(wanted, where=finite, out=np.zeros(wanted.shape))
    same = finite | (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        error = np.where(finite, np.abs(found - wanted), np.where(same, 0.0, np.inf))
    if not kind.is_float:
        allowed = np.zeros(wanted.shape)
    elif bound.atol is None and bound.rtol is None:
        most = max(bound.relative * float(magnitude.max()), bound.explained)
        allowed = np.full(wanted.shape, most)
    else:
        allowed = (bound.atol or 0.0) + (bound.rtol or 0.0) * magnitude
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(error == 0, 0.0, error / allowed)
    place = np.unravel_index(int(share.argmax()), share.shape)
    return OutputReport(
        name, float(error.max()), float(share.max()), tuple(int(index) for index in place), rounding
    )
