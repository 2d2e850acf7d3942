"""Text as it may stand in a comment of a source: names come from users and models, and a comment
must neither end early nor show another text than the compiler reads.
"""

from __future__ import annotations

import re

# what is not plain ASCII, and what begins a trigraph or joins two lines
_UNFIT = re.compile(r"[^\x20-\x7e]|[?\\]")


def comment(text: str) -> str:
    """The text on one line, in characters that every compiler and editor shows alike."""
    safe = _UNFIT.sub("_", text)
    return safe.replace("*/", "* /").replace("/*", "/ *")
