"""The note of a refusal that names two iterations, and a picture of these two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ..tir.svg.picture import Picture
from ..tir.svg.shapes import BLUE, FAINT, INK, ORANGE, arrow, rectangle, text, width_of
from .verdict import Iteration

_CELL, _LEFT, _TOP = 30.0, 70.0, 46.0  # pixels
_NEAR = 2  # iterations that are drawn on either side of the two
_SMALL = 11.0


class ConflictNote(str):
    """A sentence about two runs that conflict, and the runs: a str, since it is one of the notes of
    an error.
    """

    first: Iteration
    second: Iteration
    element: str

    @staticmethod
    def of(sentence: str, first: Iteration, second: Iteration, element: str) -> ConflictNote:
        """The note that says `sentence` of two runs and the element that both touch."""
        note = ConflictNote(sentence)
        note.first, note.second, note.element = first, second, element
        return note

    def picture(self) -> Picture:
        """The iterations up to the two: rows and columns are the innermost loops in whose values
        they differ, or that both have.
        """
        down, across = _loops(self.first, self.second)
        grid = _Grid(_axis(self.first, self.second, down), _axis(self.first, self.second, across))
        marks = [*_cells(grid), *_runs(grid, self.first, self.second)]
        width = _LEFT + _CELL * len(grid.across.values)
        below = _TOP + _CELL * len(grid.down.values)
        legend = [f"1: {self.first}", f"2: {self.second}", f"both touch {self.element}"]
        for number, each in enumerate(legend):
            marks.append(text(8, below + 24 + 18 * number, each))
        width = max(width, *map(width_of, legend)) + 20
        return Picture(width, below + 24 + 18 * len(legend), self, tuple(marks))


@dataclass(frozen=True, slots=True)
class _Axis:
    """A loop, and the values of it that are drawn; None stands for some that are left out."""

    loop: str
    values: tuple[int | None, ...]

    def at(self, run: Iteration) -> float:
        """The middle of the place of a run along this axis, in pixels from its start."""
        return _CELL * (self.values.index(run.values.get(self.loop, 0)) + 0.5)


@dataclass(frozen=True, slots=True)
class _Grid:
    down: _Axis
    across: _Axis

    def middle(self, run: Iteration) -> tuple[float, float]:
        return _LEFT + self.across.at(run), _TOP + self.down.at(run)


def _loops(first: Iteration, second: Iteration) -> tuple[str, str]:
    """The loops of the two axes, in the order of the nest; empty where there are fewer."""
    names = [name for name, _ in first.loops if name in second.values]
    differing = [name for name in names if first.values[name] != second.values[name]]
    same = [name for name in names if name not in differing]
    down, across, *_ = (*sorted((differing[::-1] + same[::-1])[:2], key=names.index), "", "")
    return (down, across) if across else ("", down)


def _axis(first: Iteration, second: Iteration, loop: str) -> _Axis:
    """The values of a loop from 0 to the later one of the two; those far from both are left out."""
    one, two = first.values.get(loop, 0), second.values.get(loop, 0)
    if not loop:
        return _Axis(loop, (0,))
    near = [
        value
        for value in range(max(one, two) + 1)
        if value == 0 or min(abs(value - one), abs(value - two)) <= _NEAR
    ]
    values: list[int | None] = [near[0]]
    for before, value in pairwise(near):
        values += [value] if value == before + 1 else [None, value]
    return _Axis(loop, tuple(values))


def _cells(grid: _Grid) -> Iterator[str]:
    """A square for each iteration, the values of both loops beside them."""
    for column, value in enumerate(grid.across.values):
        shown = _value(value) if grid.across.loop else ""
        x = _LEFT + _CELL * (column + 0.5)
        yield text(x, _TOP - 8, shown, anchor="middle", size=_SMALL)
    yield text(_LEFT, _TOP - 28, grid.across.loop, bold=True)
    yield text(8, _TOP + 18, grid.down.loop, bold=True)
    for row, value in enumerate(grid.down.values):
        shown = _value(value) if grid.down.loop else ""
        yield text(_LEFT - 8, _TOP + _CELL * row + 19, shown, anchor="end", size=_SMALL)
        for column, other in enumerate(grid.across.values):
            if value is not None and other is not None:
                x, y = _LEFT + _CELL * column, _TOP + _CELL * row
                yield rectangle(x + 1, y + 1, _CELL - 2, _CELL - 2, fill=INK, opacity=FAINT / 2)


def _runs(grid: _Grid, first: Iteration, second: Iteration) -> Iterator[str]:
    """The two runs, and an arrow from the first one to the second one."""
    one, two = grid.middle(first), grid.middle(second)
    half = _CELL / 2 - 1
    for (x, y), colour, run in ((one, BLUE, first), (two, ORANGE, second)):
        corner = (x - half, y - half, 2 * half, 2 * half)
        yield rectangle(*corner, fill=colour, opacity=0.3, stroke=colour, title=str(run))
    if one == two:
        yield text(one[0], one[1] + 4, "1, 2", anchor="middle", size=_SMALL)
        return
    for (x, y), number in ((one, "1"), (two, "2")):
        yield text(x, y + 4, number, anchor="middle", bold=True)
    if max(abs(one[0] - two[0]), abs(one[1] - two[1])) > _CELL + 1:
        yield arrow(*_between(one, two, half + 2))


def _between(
    one: tuple[float, float], two: tuple[float, float], inset: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The part of the way between two middles that lies outside of both squares."""
    across, down = two[0] - one[0], two[1] - one[1]
    share = inset / max(abs(across), abs(down))
    return (
        (one[0] + share * across, one[1] + share * down),
        (two[0] - share * across, two[1] - share * down),
    )


def _value(value: int | None) -> str:
    return "\u2026" if value is None else str(value)
