"""A loop nest as HTML: its text, and at each loop, where the pointer rests on its line, how often
it runs and how many bytes it touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import prod

from ..analysis.footprint import footprint
from ..stmt import Block, For, Stmt
from .html import FRAME, spans
from .size import bytes_text

_HEADS = ("for ", "with block(")


@dataclass(frozen=True, slots=True, eq=False)
class LoopPlace:
    """Where a loop stands in the text of its function: `lines` is its head.

    around: the loops around it, outermost first.
    """

    loop: For
    around: tuple[For, ...]
    lines: range


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlace:
    """Where a block stands in the text of its function: all of its lines."""

    block: Block
    around: tuple[For, ...]
    lines: range


Place = LoopPlace | BlockPlace


def places(text: str, body: Stmt) -> tuple[Place, ...]:
    """Where the loops and blocks of a function stand, in the order of its text. body: the
    function's.
    """
    lines = text.splitlines()
    heads = (at for at, line in enumerate(lines) if line.lstrip().startswith(_HEADS))
    return tuple(_places(body, (), lines, heads))


def nest_html(text: str, body: Stmt) -> str:
    """The text of a function, with what is known of each of its loops. body: the function's."""
    known = loop_titles(places(text, body))
    shown = "\n".join(_line(line, known.get(at, "")) for at, line in enumerate(text.splitlines()))
    return f'<pre style="{FRAME}">{shown}</pre>'


def loop_titles(listed: Iterable[Place]) -> dict[int, str]:
    """What is known of each loop, by the line of its head."""
    return {p.lines.start: _title(p) for p in listed if isinstance(p, LoopPlace)}


def _places(
    stmt: Stmt, around: tuple[For, ...], lines: Sequence[str], heads: Iterator[int]
) -> Iterator[Place]:
    """Where the loops and blocks of a statement stand. heads: the lines at which those that are not
    yet met begin.
    """
    if isinstance(stmt, For):
        at = next(heads)
        yield LoopPlace(stmt, around, range(at, at + 1))
        around = (*around, stmt)
    elif isinstance(stmt, Block):
        at = next(heads)
        yield BlockPlace(stmt, around, range(at, _end(lines, at)))
    for child in stmt.children():
        if isinstance(child, Stmt):
            yield from _places(child, around, lines, heads)


def _end(lines: Sequence[str], head: int) -> int:
    """Behind the last of the lines that stand further in than the head before them."""
    indent = _indent(lines[head])
    below = range(head + 1, len(lines))
    return next((at for at in below if _indent(lines[at]) <= indent), len(lines))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _title(place: LoopPlace) -> str:
    loop, times = place.loop, prod(outer.extent for outer in place.around)
    return (
        f"{loop.extent} iterations, begun {times:,} time{'s' * (times != 1)}; "
        f"{bytes_text(footprint(loop))} touched each time"
    )


def _line(line: str, title: str) -> str:
    shown = spans(line)
    return f'<span title="{escape(title)}">{shown}</span>' if title else shown
