"""A profile as a picture: each launch as a bar from where it begins in a run to where it ends, with
its share of the run and of what the machine allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...tir.svg.picture import Picture
from ...tir.svg.scale import Scale
from ...tir.svg.shapes import BLUE, FAINT, GREEN, ORANGE, fitting, line, rectangle, text
from ..machine.timing import seconds_text

_WIDTH, _ROW, _TOP = 760.0, 20.0, 40.0
_NAMES, _BARS = 230.0, 340.0  # the widths of names and of the time axis
_TIME, _SHARE, _LIMIT = 640.0, 694.0, 752.0  # where these columns end
_MOST_ROWS = 40
_SMALL = 11.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A launch of a run: from `start` on for `seconds`. limit: the time in which the machine could
    do it at best; None: not known.
    """

    label: str
    kernel: str
    start: float
    seconds: float
    limit: float | None = None


def draw_timeline(bars: Sequence[Bar], caption: str) -> Picture:
    """A row for each launch in order; of many, the longest."""
    whole = sum(bar.seconds for bar in bars) or 1.0
    longest = sorted(bars, key=lambda bar: -bar.seconds)[:_MOST_ROWS]
    shown = [bar for bar in bars if any(bar is one for one in longest)]
    bottom = _TOP + len(shown) * _ROW
    scale = Scale(0.0, whole, _NAMES, _NAMES + _BARS)
    marks = [*_grid(scale, bottom), *_heads(any(bar.limit is not None for bar in shown))]
    for number, bar in enumerate(shown):
        marks += _row(bar, scale, whole, _TOP + number * _ROW)
    left_out = len(bars) - len(shown)
    if left_out:
        rest = whole - sum(bar.seconds for bar in shown)
        others = f"and {left_out} shorter launches: {seconds_text(rest)}, {rest / whole:.1%}"
        marks.append(text(4, bottom + 32, others, size=_SMALL))
    return Picture(_WIDTH, bottom + (40 if left_out else 24), caption, tuple(marks))


def _grid(scale: Scale, bottom: float) -> Iterator[str]:
    for value in scale.ticks:
        at = scale(value)
        yield line(((at, _TOP - 6), (at, bottom)), opacity=FAINT)
        label = seconds_text(value) if value else "0"
        yield text(at, bottom + 14, label, anchor="middle", size=_SMALL)


def _heads(limits: bool) -> Iterator[str]:
    columns = [("time", _TIME), ("share", _SHARE), *([("of limit", _LIMIT)] if limits else [])]
    for head, end in columns:
        yield text(end, 20, head, anchor="end", bold=True)


def _row(bar: Bar, scale: Scale, whole: float, top: float) -> Iterator[str]:
    left, right, base = scale(bar.start), scale(bar.start + bar.seconds), top + 13
    title = f"{bar.label or bar.kernel}: kernel {bar.kernel}, {seconds_text(bar.seconds)}"
    yield text(4, base, fitting(bar.label or bar.kernel, _NAMES - 12), title=title)
    yield rectangle(left, top + 2, max(right - left, 1), _ROW - 6, fill=BLUE, title=title)
    yield text(_TIME, base, seconds_text(bar.seconds), anchor="end")
    yield text(_SHARE, base, f"{bar.seconds / whole:.1%}", anchor="end")
    if bar.limit is not None:
        share = bar.limit / bar.seconds if bar.seconds else 0.0
        colour = GREEN if share >= 0.5 else ORANGE
        yield text(_LIMIT, base, f"{share:.0%}", anchor="end", fill=colour)
