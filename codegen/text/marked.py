"""Text of a source that knows which statement each of its lines was written for.

The marks stand beside the characters: they are compared with nothing, and what is cut out of such a
text, or pickled, is a plain str.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ...tir.stmt import Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """The statement that a line was written for, and the mark of the one around it."""

    stmt: Stmt
    outer: Mark | None = None


Marks = tuple[Mark | None, ...]


class MarkedText(str):
    """A text with a mark for each of its lines, None where a line belongs to no statement."""

    __slots__ = ("marks",)
    marks: Marks

    def __new__(cls, text: str, marks: Marks) -> Self:
        made = super().__new__(cls, text)
        made.marks = marks
        return made

    @staticmethod
    def of(text: str, mark: Mark | None) -> MarkedText:
        """A text all of whose lines were written for one statement."""
        return MarkedText(text, (mark,) * (text.count("\n") + 1))

    def within(self, whole: str) -> MarkedText:
        """The text `whole`, in which this one begins a line, with the marks of this one."""
        before = whole.count("\n", 0, whole.index(self))
        after = whole.count("\n") + 1 - before - len(self.marks)
        return MarkedText(whole, ((None,) * before) + self.marks + ((None,) * after))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def joined(texts: Sequence[str]) -> MarkedText:
    """The texts, each on lines of its own, with the marks that they have."""
    marks: list[Mark | None] = []
    for text in texts:
        found = text if isinstance(text, MarkedText) else MarkedText.of(text, None)
        marks += found.marks
    return MarkedText("\n".join(texts), tuple(marks))
