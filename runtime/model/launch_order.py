"""The kernels of a run as a picture: each launch with the nodes that it computes, in order; layers
that repeat are shown once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from ...tir.svg.picture import Picture
from ...tir.svg.shapes import (
    BLUE,
    FAINT,
    GREEN,
    ORANGE,
    TEAL,
    arrow,
    fitting,
    line,
    rectangle,
    text,
)

_WIDTH, _ROW, _GAP, _TOP = 720.0, 24.0, 8.0, 26.0
_NUMBERS, _NODES, _KERNEL = 40.0, 380.0, 180.0  # the widths of what stands in a row
_MOST_LAUNCHES = 48  # of a layer that repeats
_COLOURS = {"tuned": GREEN, "similar": TEAL, "hand": ORANGE}  # of origins; others are blue


@dataclass(frozen=True, slots=True)
class LaunchedGroup:
    """A launch: the nodes that it computes, the kernel that does, where its schedule came from.
    title: what else is known of the kernel.
    """

    nodes: str
    kernel: str
    origin: str
    title: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Launches `start` to `start + length - 1`, that run `times` times with other data."""

    start: int
    length: int
    times: int


def fold_repeats(keys: Sequence[Hashable]) -> tuple[Fold, ...]:
    """Cut a sequence into parts, so that a part which repeats at once is there once: at each place
    the part that leaves out most, the shorter one of two.
    """
    found: list[Fold] = []
    start = 0
    while start < len(keys):
        best = Fold(start, 1, 1)
        for length in range(1, min(_MOST_LAUNCHES, (len(keys) - start) // 2) + 1):
            times = _repeats(keys, start, length)
            if (times - 1) * length > (best.times - 1) * best.length:
                best = Fold(start, length, times)
        found.append(best)
        start += best.length * best.times
    return tuple(found)


def draw_launches(groups: Sequence[LaunchedGroup], caption: str) -> Picture:
    """A row for each launch, those of a layer that repeats once, with a bracket and how often."""
    marks = [text(_NUMBERS, 16, "nodes", bold=True)]
    marks.append(text(_NUMBERS + _NODES + 12, 16, "kernel", bold=True))
    top = _TOP
    folds = fold_repeats([(group.kernel, group.origin) for group in groups])
    for fold in folds:
        for number in range(fold.start, fold.start + fold.length):
            same = groups[number : number + fold.length * fold.times : fold.length]
            marks += _row(same, number, top, arrives=number > 0)
            top += _ROW + _GAP
        if fold.times > 1:
            marks += _bracket(top - fold.length * (_ROW + _GAP), top - _GAP, fold.times)
    return Picture(_WIDTH, top, caption, tuple(marks))


def _repeats(keys: Sequence[Hashable], start: int, length: int) -> int:
    """How often the part of `length` keys at `start` stands there, one behind the other."""
    times = 1
    part = keys[start : start + length]
    while part == keys[start + times * length : start + (times + 1) * length]:
        times += 1
    return times


def _row(same: Sequence[LaunchedGroup], number: int, top: float, *, arrives: bool) -> Iterator[str]:
    """The row of the launches of one kernel in each of the layers that repeat, or of one launch.
    Where the pointer rests on it, it says what all of them compute.
    """
    group = same[0]
    title = "\n".join([*(one.nodes for one in same), group.title])
    colour = _COLOURS.get(group.origin, BLUE)
    base = top + _ROW / 2 + 4
    width = _NODES + _KERNEL
    if arrives:
        yield arrow((_NUMBERS + 20, top - _GAP), (_NUMBERS + 20, top))
    yield text(_NUMBERS - 8, base, str(number), anchor="end")
    yield rectangle(
        _NUMBERS, top, width, _ROW, fill=colour, opacity=FAINT, stroke=colour, title=title
    )
    nodes = fitting(group.nodes or group.kernel, _NODES - 16)
    yield text(_NUMBERS + 8, base, nodes, title=title)
    kernel = fitting(f"{group.kernel} ({group.origin})", _KERNEL - 20)
    yield text(_NUMBERS + _NODES + 12, base, kernel, title=title)


def _bracket(top: float, bottom: float, times: int) -> Iterator[str]:
    left = _NUMBERS + _NODES + _KERNEL + 8
    yield line(((left, top), (left + 6, top), (left + 6, bottom), (left, bottom)))
    yield text(left + 14, (top + bottom) / 2 + 4, f"{times} times", bold=True)
