"""The errors of layers that multiply bytes as a picture: a bar for each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...tir.svg.picture import Picture
from ...tir.svg.scale import Scale, tick_text
from ...tir.svg.shapes import BLUE, FAINT, GREY, fitting, line, rectangle, text, width_of

_WIDTH, _ROW, _TOP, _BELOW = 720.0, 22.0, 26.0, 40.0
_LABEL, _VALUE = 260.0, 70.0  # beside the bars; the label at most
_SMALL = 11.0


@dataclass(frozen=True, slots=True)
class ErrorBar:
    """A row: a layer, what it computes with, its error with bytes, or None. is_narrow: whether it
    multiplies bytes. title: all that is known of it.
    """

    layer: str
    precision: str
    error: float | None
    is_narrow: bool
    title: str


def draw_errors(layers: Sequence[ErrorBar], caption: str) -> Picture:
    """A row for each layer, in order: its name, a bar as long as its error with bytes on a
    logarithmic scale, grey where it stays float, the error; of a layer without one, what it
    computes with.
    """
    errors = [one.error for one in layers if one.error]
    label = min(_LABEL, max((width_of(one.layer) for one in layers), default=0.0) + 32)
    scale = Scale.over(errors, label, _WIDTH - _VALUE, logarithmic=True)
    bottom = _TOP + _ROW * len(layers)
    marks = list(_frame(scale, bottom)) if errors else []
    for number, one in enumerate(layers):
        marks += _bar(one, _TOP + _ROW * number, scale)
    return Picture(_WIDTH, bottom + (_BELOW if errors else 8.0), caption, tuple(marks))


def _frame(scale: Scale, bottom: float) -> Iterator[str]:
    for value in scale.ticks:
        at = scale(value)
        yield line(((at, _TOP), (at, bottom)), opacity=FAINT)
        yield text(at, bottom + 15, tick_text(value), anchor="middle", size=_SMALL)
    yield line(((scale.start, _TOP), (scale.start, bottom)), opacity=0.6)
    yield text(scale.end, bottom + 32, "error, of the power of the result", anchor="end")


def _bar(one: ErrorBar, top: float, scale: Scale) -> Iterator[str]:
    base, title = top + _ROW / 2 + 4, one.title
    name = fitting(one.layer, scale.start - 12)
    yield text(scale.start - 8, base, name, anchor="end", title=title)
    if not one.error:
        yield text(scale.start + 8, base, one.precision, size=_SMALL, fill=GREY, title=title)
        return
    end = scale(one.error)
    fill = BLUE if one.is_narrow else GREY
    yield rectangle(scale.start, top + 3, end - scale.start, _ROW - 6, fill=fill, title=title)
    yield text(end + 6, base, f"{one.error:.1e}", size=_SMALL, title=title)
