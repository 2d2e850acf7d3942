"""The page of all error codes, of what `error_calls` read."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable
from itertools import groupby

from tests.reference.error_calls import ErrorCall, Sources

WIDTH = 100
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
HEAD = """\
# Error codes

Each error of tilewright ends in a code, `[like-this]`: search this page for it, or add `#like-this`
to its address. An entry shows the class, the message and the hints as the sources have them:
`{...}` stands for a value of your program, `{a | b}` for one of two texts, and which of the hints
come depends on the case. What an error says besides is of your program alone: where it happened,
and notes, such as the two iterations that conflict.

`error.code` is the code; the classes are [below](#classes). A refused step is an `argument`, a
`conflict` or a `limit`: [why a step is refused](../design/refusals.md). This page is generated:
[how](README.md).
"""


def error_page(sources: Sources) -> str:
    """The Markdown of the page."""
    calls = sources.calls
    codes = {code: list(of) for code, of in groupby(sorted(calls, key=_code), _code)}
    folders: dict[str, list[str]] = {}
    for code in dict.fromkeys(call.code for call in calls):
        folders.setdefault(_folder(codes[code][0]), []).append(code)
    lines = [HEAD, f"{len(codes)} codes, by the package that raises them:\n", "| package | codes |"]
    lines += ["|---|---|"]
    lines += [f"| [{folder}](#{folder}) | {len(of)} |" for folder, of in folders.items()]
    lines += ["| [the classes](#classes) | |", ""]
    for folder, of in folders.items():
        lines += [f"## {folder}", "", *_index(of), ""]
        lines += [line for code in sorted(of) for line in _entry(code, codes[code])]
    return "\n".join([*lines, *_classes(sources, {call.error for call in calls}), ""])


def _code(call: ErrorCall) -> str:
    return call.code


def _folder(call: ErrorCall) -> str:
    return call.path.partition("/")[0]


def _index(codes: Iterable[str]) -> list[str]:
    """The codes of a package, by what stands before their first dash; a table with links."""
    rows = ["| | |", "|---|---|"]
    for area, of in groupby(sorted(codes), lambda code: code.partition("-")[0]):
        links = ", ".join(f"[{code.removeprefix(f'{area}-')}](#{code})" for code in of)
        rows.append(f"| {area} | {links} |")
    return rows


def _entry(code: str, calls: list[ErrorCall]) -> list[str]:
    """One code: where its errors are made, and their texts."""
    lines = [f"### {code}", ""]
    kinds = " or ".join(dict.fromkeys(f"`{call.kind}`" for call in calls if call.kind))
    places = ", ".join(dict.fromkeys(f"[{call.path}](../../{call.path})" for call in calls))
    lines += [f"{kinds}, {places}" if kinds else places]
    if not all(call.is_literal for call in calls):
        lines += ["", "Its message is put together when it is raised."]
    if any(PLACEHOLDER.fullmatch(hint) for call in calls for hint in call.hints):
        lines += ["", "It has hints that are put together when it is raised."]
    seen = dict.fromkeys(text for call in calls if (text := _text(call)))
    return [*lines, "", "```text", "\n\n".join(seen), "```", ""]


def _text(call: ErrorCall) -> str:
    """An error as a user sees it."""
    heads = [_wrapped(f"{call.error}: {message} [{call.code}]", "") for message in call.messages]
    written = (hint for hint in call.hints if not PLACEHOLDER.fullmatch(hint))
    hints = [_wrapped(f"  Hint: {hint}", "        ") for hint in written]
    return "\n".join([*heads, *hints])


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _classes(sources: Sources, names: set[str]) -> list[str]:
    """The table of the classes, with what each derives from."""
    lines = ["## classes", "", "`except` takes any of them, or what they derive from.", ""]
    lines += ["| class | derives from | what is wrong |", "|---|---|---|"]
    for name in sorted(names):
        node = sources.class_named(name)
        bases = ", ".join(f"`{ast.unparse(base)}`" for base in node.bases)
        first = (ast.get_docstring(node) or "").partition("\n\n")[0]
        lines.append(f"| `{name}` | {bases} | {' '.join(first.split())} |")
    return lines
