"""How far a value is from what another system computes, and how far it may be.

A float may be off by SLACK times the share of the largest magnitude that `Engine.verify` allows its
type (float32: 1e-4), because both systems round, in different orders; or by the tolerance that a
model was compiled with, where that is more. Where it is off by more, the model is evaluated in
float64, in its own types, and with inputs that are rounded otherwise: GROWTH or GROWTH_OF_SUMS
times what these differ by is allowed. Integers and truth values are the same, or differ by what the
model's own rounding explains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...runtime.arrays import Array
from ...runtime.model.verification import SLACK, OutputReport, compare_outputs
from ...tir.dtype import dtype as as_dtype
from ...tir.text.display import printable

Roundings = Callable[[], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class ValueBound:
    """What is allowed. atol, rtol: |ours - theirs| <= atol + rtol * |theirs|, element by element,
    where one is given; tolerance: that of the compile. roundings: by how much the model's own types
    move each value; asked where a value is off by more than its type allows.
    """

    atol: float | None = None
    rtol: float | None = None
    tolerance: float | None = None
    roundings: Roundings | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """How a value compares with that of another system.

    error, relative: the largest |ours - theirs|, and the largest share of |theirs|, of what is
    finite in both. share: the largest error over what is allowed; inf where shapes or types differ,
    or one is not finite and the other is. place: the element of the largest share; ours, theirs:
    what is there. unlike: how many elements are NaN or infinite in one and not in the other. at: on
    which inputs. problem: how shapes or types differ.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    error: float
    relative: float
    share: float
    place: tuple[int, ...]
    ours: str
    theirs: str
    unlike: int
    at: str
    problem: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether it is within the bound."""
        return self.share <= 1

    def __str__(self) -> str:
        kind = f"{self.name}: {self.dtype}{list(self.shape)}"
        if self.problem:
            return printable(f"{kind}: {self.problem}, {self.at}")
        place = ", ".join(map(str, self.place))
        text = f"{kind}: off by {self.error:.3g} ({self.relative:.2g} of theirs), {self.share:.2g} "
        text += f"of the allowed at [{place}]: {self.ours}, theirs {self.theirs}"
        if self.unlike:
            text += f"; {self.unlike} NaN or infinite in one alone"
        return printable(f"{text}; {self.at}")

    __repr__ = __str__


def difference(
    name: str, ours: Array, theirs: Array, bound: ValueBound, at: str
) -> ValueDifference:
    """How `ours` compares with `theirs`. at: a word for the inputs that both were computed from."""
    kind, shape = as_dtype(ours.dtype), ours.shape
    problem = ""
    if ours.shape != theirs.shape:
        problem = f"its shape is {list(ours.shape)}, theirs {list(theirs.shape)}"
    elif ours.dtype != theirs.dtype:
        problem = f"its type is {ours.dtype.name}, theirs {theirs.dtype.name}"
    if problem:
        far = float("inf")
        return ValueDifference(name, str(kind), shape, far, far, far, (), "", "", 0, at, problem)
    report = _report(name, ours, theirs, bound)
    found, wanted = (array.astype(np.float64) for array in (ours, theirs))
    finite = np.isfinite(found) & np.isfinite(wanted)
    alike = finite | (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(all="ignore"):
        apart = np.abs(found - wanted)
        shares = np.where(apart == 0, 0.0, apart / np.abs(wanted))
    return ValueDifference(
        name,
        str(kind),
        shape,
        float(np.max(apart, initial=0.0, where=finite)),
        float(np.max(shares, initial=0.0, where=finite)),
        report.share,
        report.place,
        _text(ours, report.place),
        _text(theirs, report.place),
        int(np.count_nonzero(~alike)),
        at,
    )


def _report(name: str, ours: Array, theirs: Array, bound: ValueBound) -> OutputReport:
    """The largest error over what is allowed, and where."""

    def compared(roundings: Mapping[str, float] | None) -> OutputReport:
        return compare_outputs(
            "",
            {name: ours},
            {name: theirs},
            bound.atol,
            bound.rtol,
            slack=SLACK,
            tolerance=bound.tolerance,
            roundings=roundings,
        ).outputs[0]

    report = compared(None)
    stated = bound.atol is not None or bound.rtol is not None
    if report.share <= 1 or stated or bound.roundings is None:
        return report
    roundings = bound.roundings()
    if as_dtype(ours.dtype).is_float:
        return compared(roundings)
    explained = roundings[name]
    share = report.error / explained if explained else float("inf")
    return OutputReport(name, report.error, share, report.place, explained)


def _text(array: Array, place: tuple[int, ...]) -> str:
    """An element as a table shows it; empty where there is none."""
    if array.size == 0:
        return ""
    value = array[place]
    return f"{float(value):.7g}" if as_dtype(array.dtype).is_float else str(value)
