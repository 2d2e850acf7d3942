"""Which C compiler a build would use, told by its file and without running it: a process that finds
its engine in the cache starts no other one.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from .cache import cache_key

C_VARIABLE = "CC"  # of the environment, names a compiler
C_COMMANDS = ("cc", "gcc", "clang")  # looked for otherwise, in order


def compiler_stamp() -> str:
    """Changes with the command and with each file that it names, its size and its time; the
    variable's text where there is none.
    """
    named = os.environ.get(C_VARIABLE, "")
    for command in [command_words(named)] if named else [(name,) for name in C_COMMANDS]:
        files = [Path(path).resolve() for path in map(shutil.which, command) if path is not None]
        if files:
            stamps = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
            return cache_key(*command, str(stamps))
    return named


def command_words(command: str) -> tuple[str, ...]:
    """The words of a command line; none where its quotes do not close."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()
