"""How signatures and docstrings are written into the pages."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import overload

from tests.reference.api_pages import function_entry, member_entries, members, signature
from tests.reference.docstrings import markdown


class Colour(Enum):
    RED = "red"


def paint(what: str, *more: int, colour: Colour = Colour.RED, how: object = len) -> str:
    """Paint `what`.

    what: a thing,
    any thing. more: numbers.
    other: is no parameter.

        paint("wall")

    Raises: nothing * at all.
    """


@overload
def twice(what: int) -> int: ...


@overload
def twice(what: str) -> str: ...


def twice(what: int | str) -> int | str:
    """`what` two times."""
    return what * 2


class Wall:
    """A wall."""

    hidden = None

    def height(self, unit: str = "m", *, bricks: Sequence[tuple[int, int]] = ()) -> float:
        """How high it is."""
        return 0.0

    def __call__(self) -> None:
        """Stand."""

    def _inner(self) -> None:
        """Nobody's business."""

    def bare(self) -> None:
        pass

    @property
    def colour(self) -> Colour:
        """What it is painted in."""
        return Colour.RED


Wall.__module__ = "tilewright.wall"


def test_an_entry_is_a_signature_and_the_docstring() -> None:
    assert function_entry("paint", paint) == [
        "### `paint`",
        "",
        "```python",
        "paint(what: str, *more: int, colour: Colour = Colour.RED, how: object = len) -> str",
        "```",
        "",
        "Paint `what`.",
        "",
        "- **what**: a thing,",
        "  any thing. more: numbers.",
        "  other: is no parameter.",
        "",
        "```python",
        'paint("wall")',
        "```",
        "",
        "- Raises: nothing \\* at all.",
        "",
    ]


def test_a_long_signature_has_a_line_for_each_parameter() -> None:
    assert signature("a_rather_long_name_for_a_painter", paint, bound=False).splitlines() == [
        "a_rather_long_name_for_a_painter(",
        "    what: str,",
        "    *more: int,",
        "    colour: Colour = Colour.RED,",
        "    how: object = len,",
        ") -> str",
    ]


def test_overloads_stand_in_place_of_what_serves_them() -> None:
    assert function_entry("twice", twice)[3:5] == [
        "twice(what: int) -> int",
        "twice(what: str) -> str",
    ]


def test_members_are_public_and_documented() -> None:
    assert list(members(Wall)) == ["height", "__call__", "colour"]
    lines = member_entries("StoneWall", members(Wall).values())
    assert lines[:4] == [
        "Properties:",
        "",
        "- **colour**: `Colour`\\\n  What it is painted in.",
        "",
    ]
    assert [line for line in lines if "wall" in line.lower() and "#" not in line] == [
        "stone_wall.height(unit: str = 'm', *, bricks: Sequence[tuple[int, int]] = ()) -> float",
        "stone_wall() -> None",
    ]
    assert "#### `StoneWall.__call__`" in lines


def test_markdown_takes_nothing_of_a_docstring_for_its_own() -> None:
    words = "`a * b`, a * b, a < b and __call__, not sample_*"
    assert markdown(words, frozenset()) == [
        "`a * b`, a \\* b, a \\< b and \\__call__, not sample_\\*"
    ]
