"""Where a node comes from, as exporters say it: the path of a module, a line of a source."""

from __future__ import annotations

import re

_OF_SELF = re.compile(r"^L\['self'\]\.?")
_ATTRIBUTE = re.compile(r"\._(?:modules|parameters|buffers)\['([^']+)'\]")


def line_of(stack_trace: str) -> str:
    """The first line of a source in a stack trace: "model.py:7"; "" where there is none."""
    for line in stack_trace.splitlines():
        parts = line.strip().split(", ")
        if parts[0].startswith('File "') and len(parts) > 1 and parts[1].startswith("line "):
            file = parts[0][6:-1].rpartition("/")[2]
            return f"{file}:{parts[1].removeprefix('line ')}"
    return ""


def module_path(text: str) -> str:
    """A module by its path in the model, however torch writes it: "encoder.layer.0"."""
    return _ATTRIBUTE.sub(r".\1", _OF_SELF.sub("", text)).strip(".")
