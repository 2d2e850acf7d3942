"""A calibration as pictures: the magnitudes of all ranges, and the histogram of each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np

from ....tir.svg.axes import Axes
from ....tir.svg.picture import Picture
from ....tir.svg.scale import Scale, whole_text
from ....tir.svg.shapes import BLUE, FAINT, GREY, ORANGE, line, rectangle, text
from ....tir.text.display import printable
from ....tir.text.html import details
from .histogram import ValueHistogram
from .ranges import Interval

_WIDTH, _HEIGHT = 760.0, 300.0
_SMALL_WIDTH, _SMALL_HEIGHT, _BARS = 260.0, 44.0, 64  # of a histogram in a row
_MOST_ROWS = 400


def draw_ranges(
    ranges: Mapping[str, Interval], extremes: Mapping[str, Interval], caption: str
) -> Picture:
    """How far the range of each value reaches above and below 0, in the order of the model, on a
    logarithmic scale; faint, how far it would have to reach for all that was seen.
    """
    magnitudes = [abs(end) for one in (ranges, extremes) for both in one.values() for end in both]
    across, upwards = Axes.spans(_WIDTH, _HEIGHT)
    axes = Axes(
        Scale(0.0, float(max(len(ranges), 1)), *across),
        Scale.over(magnitudes, *upwards, logarithmic=True),
        "values, in the order of the model",
        "magnitude of the largest (blue) and the least (orange) number",
        x_text=whole_text,
    )
    marks = [
        mark
        for number, name in enumerate(ranges)
        for mark in _value_marks(axes, number, name, ranges[name], extremes[name])
    ]
    return axes.picture(caption, marks)


def _value_marks(
    axes: Axes, number: int, name: str, cut: Interval, seen: Interval
) -> Iterator[str]:
    """The ends of a range, and of what was seen where that is more."""
    title = printable(f"{name}: {cut[0]:.4g} to {cut[1]:.4g}, seen {seen[0]:.4g} to {seen[1]:.4g}")
    start, end = axes.x(number + 0.1), axes.x(number + 0.9)
    for colour, inner, outer in ((BLUE, cut[1], seen[1]), (ORANGE, -cut[0], -seen[0])):
        if outer > inner > 0:
            y = axes.y(outer)
            height = axes.y(inner) - y
            yield rectangle(
                start, y, end - start, height, fill=colour, opacity=2 * FAINT, title=title
            )
        if inner > 0:
            y = axes.y(inner)
            yield line(((start, y), (end, y)), stroke=colour, title=title)


def draw_histogram(histogram: ValueHistogram, cut: Interval) -> Picture:
    """The elements of a value on a logarithmic scale, those beyond its range in grey."""
    counts, edges = histogram.trimmed(_BARS)
    low, high = float(edges[0]), float(edges[-1])
    across = Scale(low, high, 0.0, _SMALL_WIDTH)
    upwards = Scale(0.0, max(float(np.log1p(counts.max())), 1.0), _SMALL_HEIGHT - 12, 2.0)
    marks = []
    for count, start, end in zip(counts, edges[:-1], edges[1:], strict=True):
        top, left = upwards(float(np.log1p(count))), across(float(start))
        is_kept = cut[0] <= float(end) and float(start) <= cut[1]
        width, height = across(float(end)) - left, upwards.start - top
        fill = BLUE if is_kept else GREY
        marks.append(rectangle(left, top, width, height, fill=fill, title=f"{count}"))
    for end in cut:
        x = across(end)
        marks.append(line(((x, 2.0), (x, upwards.start)), stroke=ORANGE))
    base = _SMALL_HEIGHT - 1
    marks.append(text(0.0, base, f"{low:.3g}", size=10.0))
    marks.append(text(_SMALL_WIDTH, base, f"{high:.3g}", size=10.0, anchor="end"))
    caption = f"{histogram.elements} elements, stored from {cut[0]:.4g} to {cut[1]:.4g}"
    return Picture(_SMALL_WIDTH, _SMALL_HEIGHT, caption, tuple(marks))


def ranges_html(ranges: Mapping[str, Interval], histograms: Mapping[str, ValueHistogram]) -> str:
    """A table of the ranges, with histograms where there are some, which opens at a click."""
    names = list(ranges)[:_MOST_ROWS]
    heads = ("value", "least", "largest", *(("elements (log)",) if histograms else ()))
    rows = "".join(_row(name, ranges[name], histograms.get(name)) for name in names)
    head = "".join(f"<th>{text}</th>" for text in heads)
    more = len(ranges) - len(names)
    below = f"<p>and {more} more values</p>" if more > 0 else ""
    return details(f"{len(ranges)} values", f"<table><tr>{head}</tr>{rows}</table>{below}")


def _row(name: str, cut: Interval, histogram: ValueHistogram | None) -> str:
    texts = (printable(name), f"{cut[0]:.4g}", f"{cut[1]:.4g}")
    cells = "".join(f"<td>{escape(one)}</td>" for one in texts)
    drawn = "" if histogram is None else f"<td>{draw_histogram(histogram, cut).svg}</td>"
    return f"<tr>{cells}{drawn}</tr>"
