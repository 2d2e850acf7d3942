"""Axes: a frame for marks, with a grid at the ticks of two scales."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .picture import Picture
from .scale import Scale, tick_text
from .shapes import FAINT, line, text

LEFT, TOP, RIGHT, BELOW = 64.0, 26.0, 16.0, 42.0  # pixels around the frame
_SMALL = 11.0


@dataclass(frozen=True, slots=True)
class Axes:
    """Two scales and what they measure.

    x_text, y_text: how a value is written at its tick.
    """

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    x_text: Callable[[float], str] = tick_text
    y_text: Callable[[float], str] = tick_text

    @staticmethod
    def spans(width: float, height: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """The pixels of both scales in a picture of this size: from left to right, upwards."""
        return (LEFT, width - RIGHT), (height - BELOW, TOP)

    def picture(self, caption: str, marks: Iterable[str]) -> Picture:
        """The picture of the axes with marks in their frame."""
        width, height = self.x.end + RIGHT, self.y.start + BELOW
        return Picture(width, height, caption, (*self._frame(), *marks))

    def _frame(self) -> Iterable[str]:
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        for value in self.x.ticks:
            at = self.x(value)
            yield line(((at, bottom), (at, top)), opacity=FAINT)
            yield text(at, bottom + 16, self.x_text(value), anchor="middle", size=_SMALL)
        for value in self.y.ticks:
            at = self.y(value)
            yield line(((left, at), (right, at)), opacity=FAINT)
            yield text(left - 6, at + 4, self.y_text(value), anchor="end", size=_SMALL)
        yield line(((left, top), (left, bottom), (right, bottom)), opacity=0.6)
        yield text(right, bottom + 34, self.x_label, anchor="end")
        yield text(left, top - 10, self.y_label)
