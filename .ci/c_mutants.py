"""Mutations of C text: what a slip of the hand makes of comparisons, constants, orders of memory
and calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|^[ \t]*#[^\n]*', re.S | re.M)
SWAPS = {
    "==": "!=",
    "!=": "==",
    "<=": "<",
    ">=": ">",
    "<": "<=",
    ">": ">=",
    "&&": "||",
    "||": "&&",
    " + ": " - ",
    " - ": " + ",
}
OPERATORS = {  # name -> what it finds; all of it is replaced, but for numbers and orders
    "c/Swap": re.compile(
        r"(?<![<>=!&|+\-])(?:==|!=|<=|>=|&&|\|\||(?<= )[<>](?= )| [+-] )(?![=&|])"
    ),
    "c/Number": re.compile(r"(?<![\w.])\d+(?![\w.])"),
    "c/Order": re.compile(r"memory_order_(?:acq_rel|acquire|release)"),
    "c/Statement": re.compile(
        r"(?<=\n)[ \t]+(?:atomic_\w+|set_float_mode|hold|take_cpu|wake)\([^;\n]*;"
    ),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operator changes a text: from `start` to `end`, into `new`."""

    operator: str
    start: int
    end: int
    new: str


def places(text: str) -> Iterator[Place]:
    """All places, operator by operator, in order."""
    code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", "\0", found.group()), text)
    for name, pattern in OPERATORS.items():
        for found in pattern.finditer(code):
            new = _changed(name, found.group())
            yield Place(name, found.start(), found.end(), new)


def _changed(operator: str, old: str) -> str:
    match operator:
        case "c/Swap":
            return SWAPS[old]
        case "c/Number":
            return str(int(old) + 1)
        case "c/Order":
            return "memory_order_relaxed"
    return re.sub(r"\S.*", ";", old, count=1)


def mutated(text: str, place: Place) -> str:
    """The text with one change."""
    return text[: place.start] + place.new + text[place.end :]
