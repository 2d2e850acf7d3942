"""Standard output that shows names as text, whoever wrote them: the one way out of what a verb
prints. Colours of our own pass; other control characters are written as escapes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

from ..tir.text.display import printable

_STYLE = re.compile(r"(\x1b\[(?:0|1|2|31|32)m)")


class Guarded:
    """A stream that escapes what is written to it, and is otherwise the one behind it."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind
        self._styled = behind.isatty()  # elsewhere nothing of ours has colours

    def write(self, text: str) -> int:
        """Write the text, escaped."""
        if self._styled:
            parts = _STYLE.split(text)
            parts[::2] = map(printable, parts[::2])
            self.behind.write("".join(parts))
        else:
            self.behind.write(printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextmanager
def guarded_output() -> Iterator[None]:
    """Guard standard output while a verb runs."""
    with redirect_stdout(Guarded(sys.stdout)):
        yield


def unguarded(stream: TextIO) -> TextIO:
    """The stream itself, for who moves the cursor on purpose and escapes names on their own."""
    return stream.behind if isinstance(stream, Guarded) else stream
