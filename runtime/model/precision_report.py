"""What each product of an engine computes with, and why, as values: what chose it made them, the
engine's file keeps them, and texts, tables and pictures are made of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from ...tir.text.display import printable
from ...tir.text.html import details, html_table

if TYPE_CHECKING:  # a run draws nothing
    from ...tir.svg.picture import Picture

BYTES, FLOATS = "bytes", "float32"  # what a layer may compute with; others name 16 bits
_NAME = 48  # columns, at most
_SHOWN = 24  # rows of a table that is open


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTimes:
    """Seconds of the kernels of a layer, with those that only round its data. narrow: where it is
    not computed in float32; floats: where it is. is_estimate: by the cost model, not measured.
    """

    narrow: float
    floats: float
    is_estimate: bool = False

    def __str__(self) -> str:
        said = "estimated " if self.is_estimate else ""
        return f"{said}{self.narrow * 1e6:.1f} us, in float32 {self.floats * 1e6:.1f} us"


@dataclass(frozen=True, slots=True)
class LayerPrecision:
    """A product by constant weights. layer: its node. precision: what it multiplies: "bytes",
    "float32", or "weights" or "data and weights" in a type of 16 bits. reason: why it stays float,
    or has what it has; empty where all of a kind were asked for. error: of bytes, the power of what
    its result is off by over that of its result; None where it was not measured. times: with what
    was tried for it, and in float32; None where neither was measured or estimated.
    """

    layer: str
    precision: str
    reason: str = ""
    error: float | None = None
    times: LayerTimes | None = None

    @property
    def is_rounded(self) -> bool:
        """Whether its operands are floats of 16 bits."""
        return self.precision not in (BYTES, FLOATS)

    @property
    def kind(self) -> str:
        """The type of its operands: "bytes", "float32", or one of 16 bits."""
        return self.precision.rpartition(" ")[2]

    @property
    def said(self) -> str:
        """Its error, the reason, and the times, as far as they are known."""
        error = "" if self.error is None else f"error {self.error:.1e}"
        times = "" if self.times is None else str(self.times)
        return "; ".join(filter(None, (error, self.reason, times)))

    def __str__(self) -> str:
        return printable(f"{self.layer}: {self.precision}{f': {self.said}' if self.said else ''}")

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class SliceScore:
    """The mean scores of a part of the data: of floats, and of what was made. metric: of the
    accuracy that was asked for. count: of samples. most_drop: by how much the score may be lower;
    None: the part is not held to the budget.
    """

    metric: str
    name: str
    count: int
    exact: float
    narrow: float
    most_drop: float | None

    @property
    def drop(self) -> float:
        """By how much the score is lower."""
        return self.exact - self.narrow

    @property
    def is_within(self) -> bool:
        """Whether it keeps the budget, as far as it is held to it."""
        return self.most_drop is None or self.drop <= self.most_drop

    def __str__(self) -> str:
        most = self.most_drop
        held = "not held to the budget" if most is None else f"at most {most:g} lower"
        scores = f"{self.narrow:.6g}, in float32 {self.exact:.6g}"
        return f"{self.metric} of {self.name}: {scores}; {self.count} samples, {held}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class PrecisionReport:
    """What products compute with. layers: each of which something is known. remarks: on all of
    them, such as from which calibration. scores: of the accuracy that was asked for, of the model
    of floats and of this one, first of all data. accuracy: what else is known of what the outputs
    are off by.
    """

    layers: tuple[LayerPrecision, ...] = ()
    remarks: tuple[str, ...] = ()
    scores: tuple[SliceScore, ...] = ()
    accuracy: tuple[str, ...] = ()

    def with_others(self, others: PrecisionReport) -> PrecisionReport:
        """This one, and what became of the products that multiply no bytes: of a layer in both, the
        precision and the times are those of `others`, the error of bytes is kept.
        """
        theirs = {one.layer: one for one in others.layers}
        layers = [_joined(one, theirs.pop(one.layer, None)) for one in self.layers]
        return PrecisionReport(
            (*layers, *theirs.values()),
            (*self.remarks, *others.remarks),
            (*self.scores, *others.scores),
            (*self.accuracy, *others.accuracy),
        )

    @property
    def rounded(self) -> tuple[LayerPrecision, ...]:
        """The layers whose operands are floats of 16 bits."""
        return tuple(one for one in self.layers if one.is_rounded)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.layers or self.remarks or self.scores or self.accuracy)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types of operands other than float32, each once."""
        return tuple(dict.fromkeys(one.kind for one in self.layers if one.precision != FLOATS))

    @property
    def counts(self) -> str:
        """How many layers compute with what."""
        found = Counter(layer.precision for layer in self.layers)
        listed = ", ".join(f"{kind} {count}" for kind, count in found.items())
        return f"products {len(self.layers)}: {listed or 'none'}"

    @property
    def summary(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """A label and some lines for each part, without the layers."""
        remarks = self.remarks or ((self.counts,) if self.layers else ())
        accuracy = (*map(str, self.scores), *self.accuracy)
        parts = (("precision", remarks), ("accuracy", accuracy))
        return tuple((label, lines) for label, lines in parts if lines)

    def __str__(self) -> str:
        width = min(_NAME, max((len(one.layer) for one in self.layers), default=0))
        kinds = max((len(one.precision) for one in self.layers), default=0)
        heads = [f"{label}: {line}" for label, lines in self.summary for line in lines]
        rows = []
        for one in self.layers:
            row = f"precision: {one.layer:{width}}  {one.precision:{kinds}}  {one.said}"
            rows.append(row.rstrip())
        return printable("\n".join([*heads, *rows]))

    __repr__ = __str__

    def picture(self) -> Picture:
        """The error of each layer that multiplies bytes, on a logarithmic scale."""
        from .precision_picture import ErrorBar, draw_errors  # a run draws nothing

        bars = [
            ErrorBar(one.layer, one.precision, one.error, one.precision == BYTES, str(one))
            for one in self.layers
        ]
        return draw_errors(bars, self.counts)

    def _repr_html_(self) -> str:
        heads = ("layer", "precision", "error", "us", "us in float32", "why")
        rows = [
            (
                printable(one.layer),
                one.precision,
                "" if one.error is None else f"{one.error:.1e}",
                *_times_cells(one.times),
                printable(one.reason),
            )
            for one in self.layers
        ]
        said = [f"{label}: {line}" for label, lines in self.summary for line in lines]
        text = "<br>".join(escape(printable(line)) for line in said)
        shown = len(rows) <= _SHOWN
        title = f"{len(rows)} product{'' if len(rows) == 1 else 's'}"
        table = details(title, html_table(heads, rows), shown=shown)
        return f"<p>{text}</p>" + (table if rows else "")


def _joined(one: LayerPrecision, other: LayerPrecision | None) -> LayerPrecision:
    """What is known of a layer, of which `other` says what it computes with instead of bytes."""
    if other is None:
        return one
    reasons = [other.reason, f"no bytes: {one.reason}" if one.reason else ""]
    return replace(other, reason="; ".join(filter(None, reasons)), error=one.error)


def _times_cells(times: LayerTimes | None) -> tuple[str, str]:
    if times is None:
        return "", ""
    sign = "~" if times.is_estimate else ""
    return f"{sign}{times.narrow * 1e6:.1f}", f"{sign}{times.floats * 1e6:.1f}"
