"""An error as a notebook shows it: the frames of the caller alone, the message once, what to do
right below it, and an arrow at the loop that is meant.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence
from itertools import groupby
from types import TracebackType
from typing import Any

_WHOLE = 12  # lines of a program that is shown whole
_ARROW = "-->"
_LIBRARY = __name__.partition(".")[0]  # our frames are those of modules of this package


def notebook_text(head: str, where: str, notes: Sequence[str], hints: Sequence[str]) -> str:
    """The text of an error: head, hints, notes, and the program with the loop marked that the head
    names first.
    """
    lines = [head, *(f"  Hint: {hint}" for hint in hints), *(f"  Note: {note}" for note in notes)]
    if where:
        lines += [f"  {line}" if line else line for line in mark_loop(where, head)]
    return "\n".join(lines)


def mark_loop(where: str, message: str) -> list[str]:
    """The lines of a program, with an arrow at the loop that a message names first, or at the block
    where it names no loop. Of a long one, the lines around it alone. All lines where it is not
    clear which one is meant.
    """
    lines = where.rstrip("\n").split("\n")
    marked = _meant(lines, message)
    if marked is None:
        return lines
    kept = {0, 1, marked, marked + 1, *_around(lines, marked)}
    if len(lines) <= _WHOLE:
        kept = set(range(len(lines)))
    shown: list[str] = []
    for is_kept, run in groupby(range(len(lines)), kept.__contains__):
        part = list(run)
        if is_kept or len(part) == 1:
            shown += [_with_arrow(lines[at]) if at == marked else lines[at] for at in part]
        else:
            shown.append(f"{_indent(lines[part[0]]) * ' '}... {len(part)} more lines")
    return shown


def notebook_traceback(error: BaseException, text: str, *, folded: bool = True) -> list[str]:
    """What IPython shows of an error whose text is `text`: its own rendering, without our frames
    where they are folded.
    """
    shell = _shell()
    frames = error.__traceback__
    if folded and frames is not None:
        frames = _callers(frames)
    if shell is None:
        return [*traceback.format_tb(frames), text]
    shown = RuntimeError(text.removeprefix(f"{type(error).__name__}: "))
    shown.__cause__, shown.__suppress_context__ = error.__cause__, True
    rendered: list[str] = shell.InteractiveTB.structured_traceback(type(error), shown, frames)
    return rendered


def _meant(lines: Sequence[str], message: str) -> int | None:
    """The line of the loop, or of the block, that a message names first; None where there is none,
    or several that it could be.
    """
    blocks = [
        at
        for name in re.findall(r"block '([^']*)'", message)[:1]
        for at, line in enumerate(lines)
        if line.lstrip().startswith(f'with block("{name}"')
    ]
    loops = re.findall(r"loop '([^']*)'", message)
    if not loops:
        return blocks[0] if len(blocks) == 1 else None
    found = [at for at, line in enumerate(lines) if line.lstrip().startswith(f"for {loops[0]} in ")]
    if len(found) > 1 and len(blocks) == 1:
        found = [at for at in found if at in _around(lines, blocks[0])]
    return found[0] if len(found) == 1 else None


def _around(lines: Sequence[str], at: int) -> list[int]:
    """The lines that a line stands in, the nearest first."""
    found: list[int] = []
    inside = _indent(lines[at])
    for above in range(at - 1, -1, -1):
        if _indent(lines[above]) < inside:
            inside = _indent(lines[above])
            found.append(above)
    return found


def _with_arrow(line: str) -> str:
    """The line with an arrow in its margin, where that is wide enough."""
    wide = not line[: len(_ARROW)].strip()
    return _ARROW + line[len(_ARROW) :] if wide else line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _callers(frames: TracebackType) -> TracebackType | None:
    """The traceback without the frames of this package."""
    kept: list[TracebackType] = []
    at: TracebackType | None = frames
    while at is not None:
        name = at.tb_frame.f_globals.get("__name__", "")
        if name.partition(".")[0] != _LIBRARY:
            kept.append(at)
        at = at.tb_next
    chain: TracebackType | None = None
    for one in reversed(kept):
        chain = TracebackType(chain, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return chain


def _shell() -> Any:
    """The shell of IPython where this runs in one."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
