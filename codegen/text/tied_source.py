"""A source that shows itself beside the loop nest that it was made of.

In a notebook the two stand in columns: where the pointer rests on a line of the one, or a click
was, the lines of the other that belong to it are tinted. A style sheet of its own does that,
without a script; where a page drops the sheet, two plain columns are left. As a text it is the
source alone.
"""

from __future__ import annotations

from hashlib import sha256
from html import escape
from typing import Self

from ...tir.func import PrimFunc
from ...tir.text.html import C, spans
from ...tir.text.nest import loop_titles, places
from ...tir.text.side_by_side import column, line_of_column, row
from ...tir.text.source_text import SourceText
from .marked import MarkedText
from .ties import Places, ties

_TINT = "rgba(90,140,240,0.26)"  # translucent, for a light page and a dark one
_NEST = "position:sticky;top:0;max-height:100vh;overflow-y:auto"
_SMALL = "font-size:0.85em;opacity:0.75"
_SAID = "lines that belong together are tinted where the pointer is, or where a click was"
_CAPTION = f'<div style="{_SMALL}">the loop nest, and the source that was made of it: {_SAID}</div>'


class TiedSource(SourceText):
    """C or CUDA C, and the nest of the schedule that it was made of."""

    __slots__ = ("_nest", "_source")
    _nest: PrimFunc
    _source: MarkedText

    def __new__(cls, source: MarkedText, nest: PrimFunc) -> Self:
        made = super().__new__(cls, source)
        made._nest = nest
        made._source = source
        return made

    def __reduce__(self) -> tuple[type[SourceText], tuple[str]]:
        return SourceText, (str(self._source),)

    def _repr_html_(self) -> str:
        name = f"tied-{sha256(self.encode()).hexdigest()[:12]}"
        found = ties(self._nest, self._source.marks)
        tied = sorted({place.lines.start for listed in found for place in listed})
        columns = _nest_column(self._nest, set(tied)) + _source_column(self, found)
        return f'<div class="{name}">{_style(name, tied)}{_CAPTION}{row(columns)}</div>'


def beside_nest(source: str, nest: PrimFunc) -> SourceText:
    """The source, beside the nest where it says which statements its lines were written for."""
    return TiedSource(source, nest) if isinstance(source, MarkedText) else SourceText(source)


def _style(name: str, tied: list[int]) -> str:
    """The style sheet: for each place of the nest, what lights up with it."""
    picked = ",".join(
        f".{name}:has(.n{n}:{state}) .n{n}" for n in tied for state in ("hover", "focus")
    )
    return f"<style>{picked}{{background:{_TINT}}}.{name} span:focus{{outline:none}}</style>"


def _nest_column(nest: PrimFunc, tied: set[int]) -> str:
    text = str(nest)
    listed = places(text, nest.body)
    titles = loop_titles(listed)
    heads = {at: place.lines.start for place in listed for at in place.lines}
    lines = enumerate(zip(text.split("\n"), spans(text).split("\n"), strict=True))
    shown = [
        line_of_column(
            line, coloured, attributes=_attributes(tied & {heads.get(at, -1)}, titles.get(at))
        )
        for at, (line, coloured) in lines
    ]
    return column(shown, _NEST)


def _source_column(source: str, found: tuple[Places, ...]) -> str:
    lines = zip(source.split("\n"), spans(source, C).split("\n"), found, strict=True)
    shown = [
        line_of_column(line, coloured, attributes=_attributes({p.lines.start for p in listed}))
        for line, coloured, listed in lines
    ]
    return column(shown)


def _attributes(places: set[int], title: str | None = None) -> str:
    """What makes a line light up with places of the nest, and its tooltip."""
    classes = " ".join(f"n{place}" for place in sorted(places))
    tied = f' class="{classes}" tabindex="-1"' if places else ""
    return tied + (f' title="{escape(title)}"' if title else "")
