"""Read numbers and texts from bytes that are not trusted, one after another."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ...errors import ModelError

NAME = 1024  # characters
_LENGTH = struct.Struct("<Q")  # of a text


@dataclass(slots=True)
class ByteCursor:
    """A place in the bytes of a file, which reads move on. source: the file, for messages."""

    source: str
    data: memoryview
    place: int = 0

    @property
    def left(self) -> int:
        """Bytes from here to the end."""
        return len(self.data) - self.place

    def take(self, size: int, what: str) -> memoryview:
        """The next bytes. Raises: ModelError where the file ends before."""
        if size > self.left:
            raise ModelError(
                f"model: '{self.source}' ends within {what}: it takes {size} bytes from byte "
                f"{self.place} on, of {len(self.data)}.",
                code="gguf-end",
            )
        self.place += size
        return self.data[self.place - size : self.place]

    def number(self, form: str, what: str) -> int | float | bool:
        """The next number, of a form of `struct`. Raises: ModelError."""
        (found,) = struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}"), what))
        return found  # type: ignore[no-any-return]

    def size(self, form: str, what: str) -> int:
        """The next number, of a form without a sign. Raises: ModelError."""
        return int(self.number(form, what))

    def count(self, form: str, what: str, least: int, most: int) -> int:
        """The next number, of items that take `least` bytes each and more. Raises: ModelError where
        the file has no room for them, or they are more than `most`.
        """
        found = self.size(form, f"the number of {what}")
        if found > min(most, self.left // least):
            raise ModelError(
                f"model: '{self.source}' has {found} {what}; expected at most "
                f"{min(most, self.left // least)}: each takes {least} bytes or more, of "
                f"{self.left} that are left.",
                code="gguf-count",
            )
        return found

    def name(self, what: str) -> str:
        """The next text, which is a name. Raises: ModelError where it is too long for one, too."""
        found = self.text(what)
        if len(found) > NAME:
            raise ModelError(
                f"model: '{self.source}': {what} is a text of {len(found)} characters; expected at "
                f"most {NAME}.",
                code="gguf-name",
            )
        return found

    def texts(self, count: int, what: str) -> tuple[str, ...]:
        """The next texts: a vocabulary has many. Raises: ModelError."""
        data, end, made = self.data, len(self.data), list[str]()
        for number in range(count):
            begin = self.place + _LENGTH.size
            if begin <= end:
                stop = begin + _LENGTH.unpack_from(data, self.place)[0]
                if stop <= end:
                    try:
                        made.append(str(data[begin:stop], "utf-8"))
                    except UnicodeDecodeError:
                        pass  # of which the call below tells
                    else:
                        self.place = stop
                        continue
            made.append(self.text(f"text {number} of {what}"))
        return tuple(made)

    def text(self, what: str) -> str:
        """The next text, behind its length. Raises: ModelError where it is no UTF-8."""
        data = self.take(self.size("Q", f"the length of {what}"), what)
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(
                f"model: '{self.source}': {what} is no text in UTF-8: byte {error.start} of "
                f"{len(data)} is 0x{data[error.start]:02x}.",
                code="gguf-text",
            ) from error
