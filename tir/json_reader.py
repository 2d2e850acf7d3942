"""Read values from JSON that may come from anybody: each with its kind and its bounds, or an error
that names the place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from .dtype import DType
from .dtype import dtype as as_dtype
from .errors import IRError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Value = TypeVar("Value")

LONGEST_TEXT = 1 << 12
LONGEST_LINE = 1 << 16  # of what is shown to people; who writes longer ones cuts them
LARGEST_SIZE = 1 << 48  # of anything that counts bytes or elements
_MOST_ITEMS = 1 << 20
_MOST_DIMENSIONS = 32


def parse_json(text: str | bytes, where: str) -> Reader:
    """The value that a text describes; `where` is what errors call it.

    Raises: IRError for what is not JSON.
    """
    try:
        return Reader(json.loads(text), where)
    except (ValueError, RecursionError) as error:
        raise IRError(f"json: {where} is not JSON: {error}.", code="json-syntax") from None


def cut_line(text: str) -> str:
    """The text, or as much of it as a reader of lines for people takes."""
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."


@dataclass(frozen=True, slots=True)
class Reader:
    """A JSON value and where it stands. Every method raises IRError for what it does not accept."""

    value: Json
    where: str

    def __getitem__(self, name: str) -> Reader:
        """The field `name` of an object."""
        if not isinstance(self.value, dict) or name not in self.value:
            raise self._error(f"an object with '{name}'")
        return Reader(self.value[name], f"{self.where}.{name}")

    def optional(self, name: str) -> Reader | None:
        """The field `name` of an object; None where older files have none."""
        return self[name] if isinstance(self.value, dict) and name in self.value else None

    def or_none(self, read: Callable[[Reader], Value]) -> Value | None:
        """What `read` makes of the value; None where that is null."""
        return None if self.value is None else read(self)

    def items(self, most: int = _MOST_ITEMS) -> Iterator[Reader]:
        """The items of a list of at most `most`."""
        if not isinstance(self.value, list) or len(self.value) > most:
            raise self._error(f"a list of at most {most}")
        return (Reader(item, f"{self.where}[{number}]") for number, item in enumerate(self.value))

    def fields(self, most: int = _MOST_ITEMS) -> Iterator[tuple[str, Reader]]:
        """The fields of an object of at most `most`."""
        if not isinstance(self.value, dict) or len(self.value) > most:
            raise self._error(f"an object of at most {most} fields")
        return ((name, Reader(item, f"{self.where}.{name}")) for name, item in self.value.items())

    def text(self, longest: int = LONGEST_TEXT) -> str:
        """A text of at most `longest` characters."""
        if not isinstance(self.value, str) or len(self.value) > longest:
            raise self._error(f"a text of at most {longest} characters")
        return self.value

    def line(self) -> str:
        """A text that is shown to people."""
        return self.text(LONGEST_LINE)

    def integer(self, most: int = LARGEST_SIZE) -> int:
        """A whole number from 0 to `most`."""
        if type(self.value) is not int or not 0 <= self.value <= most:
            raise self._error(f"a whole number from 0 to {most}")
        return self.value

    def number(self) -> float:
        """A number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._error("a number")
        return float(self.value)

    def truth(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self._error("true or false")
        return self.value

    def one_of(self, *texts: str) -> str:
        """One of these texts."""
        if not isinstance(self.value, str) or self.value not in texts:
            raise self._error(" or ".join(f"'{text}'" for text in texts) or "nothing")
        return self.value

    def dtype(self) -> DType:
        """The name of an element type."""
        kind = as_dtype(self.text(16))
        if kind.lanes != 1:
            raise self._error("an element type")
        return kind

    def shape(self) -> tuple[int, ...]:
        """Extents whose product is bounded."""
        extents = tuple(item.integer() for item in self.items(_MOST_DIMENSIONS))
        size = 1
        for extent in extents:
            size *= max(1, extent)
        if size > LARGEST_SIZE:
            raise self._error(f"a shape of at most {LARGEST_SIZE} elements")
        return extents

    def _error(self, expected: str) -> IRError:
        text = repr(self.value)
        got = text if len(text) <= 60 else f"{text[:57]}..."
        return IRError(f"json: {self.where} is {got}; expected {expected}.", code="json-value")
