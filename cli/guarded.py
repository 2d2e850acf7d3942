"""Standard output that escapes control characters, which untrusted names may contain. All output of
a verb goes through it; our own colours pass.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

from ..tir.text.display import printable

_STYLE = re.compile(r"(\x1b\[(?:0|1|2|31|32)m)")


class GuardedOutput:
    """A stream that escapes what is written to it, and otherwise delegates to another one."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind
        self._styled = behind.isatty()  # we write colours to terminals only

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
    with redirect_stdout(GuardedOutput(sys.stdout)):
        yield


def unguarded(stream: TextIO) -> TextIO:
    """The underlying stream, for callers that move the cursor and escape names themselves."""
    return stream.behind if isinstance(stream, GuardedOutput) else stream
