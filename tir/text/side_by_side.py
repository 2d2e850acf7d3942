"""Two texts of a function beside each other: what a step, or several, made of a loop nest.

A line counts as the same where only its indentation differs: a loop that is put around a body does
not change the body. In a notebook the two stand in columns, with the other lines tinted, and a long
line goes on below itself, further in; as text they are one list of lines, those of `before` alone
marked `-`, those of `after` alone marked `+`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from .html import FRAME, STEPS, highlight, spans

_GONE = "rgba(220,70,60,0.16)"  # translucent: they tint a light page and a dark one alike
_NEW = "rgba(50,160,80,0.18)"
_COLUMN = f"flex:1 1 0;min-width:0;{FRAME};white-space:pre-wrap;overflow-wrap:anywhere"
_ROW = "display:flex;gap:1.5em;align-items:flex-start"
_FURTHER_IN = 6  # characters from a line's own indentation to that of its continuation


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Texts before and after some steps. steps: the lines that say what was done, may be none."""

    before: str
    after: str
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"# {step}" for step in self.steps]
        old, new = self.before.splitlines(), self.after.splitlines()
        for kind, start, stop, other_start, other_stop in _opcodes(old, new):
            if kind == "equal":
                lines += [f"  {line}" for line in new[other_start:other_stop]]
                continue
            lines += [f"- {line}" for line in old[start:stop]]
            lines += [f"+ {line}" for line in new[other_start:other_stop]]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        old, new = self.before.splitlines(), self.after.splitlines()
        gone: set[int] = set()
        made: set[int] = set()
        for kind, start, stop, other_start, other_stop in _opcodes(old, new):
            if kind != "equal":
                gone.update(range(start, stop))
                made.update(range(other_start, other_stop))
        steps = highlight("\n".join(self.steps), STEPS) if self.steps else ""
        return steps + row(_tinted(old, gone, _GONE) + _tinted(new, made, _NEW))


def _opcodes(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    """What becomes of the lines, compared without their indentation."""
    matcher = SequenceMatcher(
        None, [line.strip() for line in old], [line.strip() for line in new], autojunk=False
    )
    return list(matcher.get_opcodes())


def _tinted(lines: list[str], marked: set[int], tint: str) -> str:
    """A column of lines, those whose numbers are `marked` on a tint."""
    grounds = (f"background:{tint}" if at in marked else "" for at in range(len(lines)))
    return column(map(line_of_column, lines, map(spans, lines), grounds))


def row(columns: str) -> str:
    """Columns beside each other."""
    return f'<div style="{_ROW}">{columns}</div>'


def column(lines: Iterable[str], style: str = "") -> str:
    """A column of lines, as `line_of_column` makes them; style: CSS declarations of its own."""
    own = f"{_COLUMN};{style}" if style else _COLUMN
    return f'<pre style="{own}">{"".join(lines)}</pre>'


def line_of_column(line: str, shown: str, ground: str = "", *, attributes: str = "") -> str:
    """One line, which goes on below itself further in where the column is too narrow.

    shown: the line as HTML. ground: a CSS declaration of what it stands on. attributes: those of
    its element, as HTML.
    """
    indent = len(line) - len(line.lstrip()) + _FURTHER_IN
    style = f"display:block;padding-left:{indent}ch;text-indent:-{indent}ch"
    style += f";{ground}" if ground else ""
    return f'<span style="{style}"{attributes}>{shown}\n</span>'
