"""A docstring as Markdown: its words stay, its parameters become a list, its code is fenced."""

from __future__ import annotations

import inspect
import re

NAMED = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)")
SECTIONS = frozenset({"Raises", "Requires", "Ensures", "Returns"})
QUOTED = re.compile(r"(`[^`]*`)")


def markdown(doc: str, words: frozenset[str]) -> list[str]:
    """The lines of a docstring. words: the parameters, each of which begins an item of a list where
    it begins a line, followed by a colon.
    """
    lines: list[str] = []
    is_code, is_item = False, False
    for line in inspect.cleandoc(doc).split("\n"):
        if line.startswith("    ") != is_code and line:
            lines += ["```"] if is_code else [*([""] if lines and lines[-1] else []), "```python"]
            is_code = not is_code
            if not is_code:
                lines.append("")
        if is_code:
            lines.append(line[4:])
            continue
        match = NAMED.match(line)
        if match and set(re.findall(r"\w+", match[1])) <= words | SECTIONS:
            if not is_item and lines and lines[-1]:
                lines.append("")
            lines.append(f"- **{match[1]}**: {_escaped(match[2])}".replace("**Raises**", "Raises"))
            is_item = True
        else:
            is_item = is_item and bool(line)
            lines.append(f"  {_escaped(line)}" if is_item else _escaped(line))
    if is_code:
        lines.append("```")
    return _without_blanks_in_fences(lines)


def _escaped(line: str) -> str:
    """What Markdown would take for its own outside of backquotes."""
    parts = QUOTED.split(line)
    return "".join(
        part if part.startswith("`") else re.sub(r"\*|(?<!\w)_|<", r"\\\g<0>", part)
        for part in parts
    )


def _without_blanks_in_fences(lines: list[str]) -> list[str]:
    """No empty line right before the end of a fence."""
    text = "\n".join(lines)
    return re.sub(r"\n+```(\n|$)", r"\n```\1", text).split("\n")
