"""A loop nest as HTML: its text, and at each loop, where the pointer rests on its line, how often
it runs and how many bytes it touches.
"""

from __future__ import annotations

from html import escape
from math import prod

from ..analysis.footprint import footprint
from ..stmt import For, Stmt
from .html import FRAME, spans
from .size import bytes_text


def nest_html(text: str, body: Stmt) -> str:
    """The text of a function, with what is known of each of its loops. body: the function's."""
    titles = [_title(loop, around) for loop, around in _loops(body, ())]
    lines = text.splitlines()
    places = [at for at, line in enumerate(lines) if line.lstrip().startswith("for ")]
    known = dict(zip(places, titles, strict=False)) if len(places) == len(titles) else {}
    shown = "\n".join(_line(line, known.get(at, "")) for at, line in enumerate(lines))
    return f'<pre style="{FRAME}">{shown}</pre>'


def _loops(stmt: Stmt, around: tuple[int, ...]) -> list[tuple[For, tuple[int, ...]]]:
    """Each loop in the order of the text, with the extents of those around it."""
    if isinstance(stmt, For):
        return [(stmt, around), *_loops(stmt.body, (*around, stmt.extent))]
    below = (child for child in stmt.children() if isinstance(child, Stmt))
    return [found for child in below for found in _loops(child, around)]


def _title(loop: For, around: tuple[int, ...]) -> str:
    times = prod(around)
    return (
        f"{loop.extent} iterations, begun {times:,} time{'s' * (times != 1)}; "
        f"{bytes_text(footprint(loop))} touched each time"
    )


def _line(line: str, title: str) -> str:
    shown = spans(line)
    return f'<span title="{escape(title)}">{shown}</span>' if title else shown
