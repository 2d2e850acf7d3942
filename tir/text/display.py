"""Text that is safe to show: names come from models, logs and files that anybody may have written,
and a terminal obeys what it is sent.
"""

from __future__ import annotations

import re

_LONGEST = 4000  # characters of one sentence
# outside of plain ASCII, line ends and tabs; `str.isprintable` decides on each
_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")


def printable(text: str) -> str:
    """The text with everything that is not shown as itself written as an escape, as Python writes
    it: control characters but line ends and tabs, marks of direction, other spaces, surrogates.
    """
    return _UNUSUAL.sub(_shown, text)


def sentence(text: str) -> str:
    """The text on one line, at most as long as somebody reads: what a message is."""
    line = printable(text).replace("\n", "\\n")
    if len(line) <= _LONGEST:
        return line
    half = _LONGEST // 2
    return f"{line[:half]} ... {line[-half:]}"


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
