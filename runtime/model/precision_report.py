"""What each product of an engine computes with, and why: of the notes of its report, those about
precision and accuracy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ...tir.text.display import printable
from ...tir.text.html import details, html_table

if TYPE_CHECKING:  # a run draws nothing
    from ...tir.svg.picture import Picture

PRECISION, ACCURACY = "precision: ", "accuracy: "  # what such notes begin with
_LAYER = re.compile(
    r"(?:node )?'(?P<layer>.+?)'(?: \(\w+\))?: "
    r"(?P<kind>bytes|float32|(?:weights|data and weights) in \w+)(?:: (?P<reason>.*))?"
)
_ERROR = re.compile(r"error (?P<error>\d\S*) of the power of its result(?:; (?P<rest>.*))?")
_NAME = 48  # columns, at most
_SHOWN = 24  # rows of a table that is open


@dataclass(frozen=True, slots=True)
class LayerPrecision:
    """A product by constant weights. layer: its node. precision: what it multiplies: "bytes",
    "float32", or "weights" or "data and weights" in a type of 16 bits. reason: what it gains, or
    why it stays float; empty where all of a kind were asked for. error: of bytes, the power of what
    its result is off by over that of its result; None where it was not measured.
    """

    layer: str
    precision: str
    reason: str
    error: float | None = None

    def __str__(self) -> str:
        error = "" if self.error is None else f"error {self.error:.1e}"
        said = "; ".join(filter(None, (error, self.reason)))
        return printable(f"{self.layer}: {self.precision}{f': {said}' if said else ''}")

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class PrecisionReport:
    """What products compute with. layers: each of which something is known. remarks: on all of
    them, such as from which calibration. scores: of the accuracy that was asked for, of the model
    of floats and of this one.
    """

    layers: tuple[LayerPrecision, ...] = ()
    remarks: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()

    @staticmethod
    def of(notes: Iterable[str]) -> PrecisionReport:
        """What notes of a report say."""
        layers, remarks, scores = list[LayerPrecision](), list[str](), list[str]()
        for note in notes:
            if note.startswith(ACCURACY):
                scores.append(note.removeprefix(ACCURACY))
            elif note.startswith(PRECISION):
                said = note.removeprefix(PRECISION)
                layer = _layer(said)
                if layer is None:
                    remarks.append(said)
                else:
                    layers.append(layer)
        return PrecisionReport(tuple(layers), tuple(remarks), tuple(scores))

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.layers or self.remarks or self.scores)

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
        parts = (("precision", remarks), ("accuracy", self.scores))
        return tuple((label, lines) for label, lines in parts if lines)

    def __str__(self) -> str:
        width = min(_NAME, max((len(one.layer) for one in self.layers), default=0))
        kinds = max((len(one.precision) for one in self.layers), default=0)
        heads = [f"{label}: {line}" for label, lines in self.summary for line in lines]
        rows = []
        for one in self.layers:
            error = "" if one.error is None else f"error {one.error:.1e}"
            said = "; ".join(filter(None, (error, one.reason)))
            row = f"{PRECISION}{one.layer:{width}}  {one.precision:{kinds}}  {said}"
            rows.append(row.rstrip())
        return printable("\n".join([*heads, *rows]))

    __repr__ = __str__

    def to_json(self) -> dict[str, object]:
        """All of it as plain values."""
        return {
            "layers": [
                {
                    "layer": one.layer,
                    "precision": one.precision,
                    "error": one.error,
                    "reason": one.reason,
                }
                for one in self.layers
            ],
            "remarks": list(self.remarks),
            "accuracy": list(self.scores),
        }

    def picture(self) -> Picture:
        """The error of each layer that multiplies bytes, on a logarithmic scale."""
        from .precision_picture import ErrorBar, draw_errors  # a run draws nothing

        bars = [ErrorBar(one.layer, one.precision, one.error, str(one)) for one in self.layers]
        return draw_errors(bars, self.counts)

    def _repr_html_(self) -> str:
        heads = ("layer", "precision", "error", "why")
        rows = [
            (
                printable(one.layer),
                one.precision,
                "" if one.error is None else f"{one.error:.1e}",
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


def _layer(said: str) -> LayerPrecision | None:
    """The layer that a note is of; None: it is of all."""
    found = _LAYER.fullmatch(said)
    if found is None:
        return None
    reason = found["reason"] or ""
    error = _ERROR.fullmatch(reason)
    if error is None:
        return LayerPrecision(found["layer"], found["kind"], reason)
    return LayerPrecision(found["layer"], found["kind"], error["rest"] or "", float(error["error"]))
