"""Text output: emphasis on a terminal, aligned columns, progress on stderr."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from ..tir.text.display import printable

WIDTH = 100
_LABEL = 11  # columns of the label before a paragraph
_NUMERIC = frozenset("0123456789-+")
_STYLE = re.compile(r"\x1b\[\d+m")


def strong(text: str) -> str:
    """The text, bold on a terminal."""
    return _styled(text, "1")


def good(text: str) -> str:
    """The text, green on a terminal."""
    return _styled(text, "32")


def bad(text: str) -> str:
    """The text, red on a terminal."""
    return _styled(text, "31")


def faint(text: str) -> str:
    """The text, dimmed on a terminal."""
    return _styled(text, "2")


def paragraph(label: str, *lines: str) -> str:
    """Lines with a label before the first; long ones are wrapped at words."""
    shown = [part for line in lines for part in _wrapped(line)]
    first = strong(label) + " " * (_LABEL - len(label))
    return "\n".join(
        (first if number == 0 else " " * _LABEL) + line for number, line in enumerate(shown)
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], indent: int = 0) -> str:
    """Aligned columns, two blanks apart, with numbers to the right and dimmed heads."""
    listed = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *listed, strict=True)]
    right = [
        bool(listed) and all(not row[n] or row[n][0] in _NUMERIC for row in listed)
        for n in range(len(heads))
    ]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if flag else cell.ljust(width)
            for cell, width, flag in zip(row, widths, right, strict=True)
        ]
        return " " * indent + "  ".join(cells).rstrip()

    return "\n".join([faint(line(heads)), *map(line, listed)])


def shortened(text: str, width: int) -> str:
    """The text, cut to at most `width` characters that end with "..." where it is longer."""
    return text if len(text) <= width else text[: width - 3].rstrip(" ,") + "..."


def duration_text(seconds: float) -> str:
    """A duration: "45 s", "3 min 20 s", "1 h 05 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@contextmanager
def working(what: str) -> Iterator[Callable[[str], object]]:
    """Show a status on stderr, on a terminal only. Yields a function that sets the stage."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console  # start-up: only a terminal needs it

    what = printable(what)
    with Console(stderr=True, markup=False).status(what) as status:
        yield lambda stage: status.update(f"{what}: {printable(stage)}")


@contextmanager
def progress_bar(steps: int) -> Iterator[Callable[[str], object]]:
    """Show a bar on stderr, on a terminal only, until the end. Yields a function to call with the
    name of each of so many steps as it begins.
    """
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console  # start-up: only a terminal needs it
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    console = Console(stderr=True, markup=False)
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("", total=steps)
        begun = -1

        def begin(step: str) -> None:
            nonlocal begun
            begun += 1
            shown.update(task, completed=begun, description=printable(step), refresh=True)

        yield begin


def _wrapped(line: str) -> list[str]:
    room = WIDTH - _LABEL
    inner = " " * (len(line) - len(line.lstrip()) + 2)
    if len(_STYLE.sub("", line)) <= room:
        return [line]
    return textwrap.wrap(
        line, room, subsequent_indent=inner, break_long_words=False, break_on_hyphens=False
    )


def _styled(text: str, code: str) -> str:
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain or not sys.stdout.isatty() else f"\x1b[{code}m{text}\x1b[0m"
