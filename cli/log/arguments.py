"""What the actions of `tilewright log` share: their parsers, reading logs, damaged lines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ...tir.text.display import printable
from ..arguments import add_verb, described_by
from ..errors import UsageError

if TYPE_CHECKING:
    from ...autotune.log.file import Contents
    from ..arguments import Verbs

VERB = "log"
KEY_DIGITS = 12  # that are shown of a key


def add_action(
    actions: Verbs, name: str, summary: str, documentation: str | None, examples: str, takes: str
) -> argparse.ArgumentParser:
    """Add the parser of an action; see `add_verb`."""
    return add_verb(
        actions, name, summary, described_by(documentation), examples, takes, below=VERB
    )


def add_output(parser: argparse.ArgumentParser, help: str) -> None:
    """Add `-o FILE`, the file to write."""
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=help)


def add_logs(parser: argparse.ArgumentParser, *, only: bool = True) -> None:
    """Add LOG..., and `--only` to select functions of them."""
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="a file, also .gz, or a folder of files; several are joined",
    )
    if only:
        parser.add_argument(
            "--only",
            metavar="NAME",
            help="functions of this name, 'conv*' for all that begin so, or whose key begins so",
        )


def read(
    arguments: argparse.Namespace, begin: Callable[[str], object] = lambda step: None
) -> Contents:
    """Read and merge the logs; report damaged lines on stderr. begin: called with each log's name.

    Raises: LogError; UsageError where no function has the name.
    """
    from ...autotune.log.file import merge, read_log  # start-up

    each = []
    for log in arguments.logs:
        begin(f"reading {log}")
        each.append(read_log(log))
    known = merge(*each)
    print_problems(known)
    wanted = getattr(arguments, "only", None)
    return known if wanted is None else _only(known, wanted)


def print_problems(known: Contents) -> None:
    """Report the damaged lines on stderr."""
    for problem in known.problems:
        print(f"tilewright: {printable(str(problem))}", file=sys.stderr)


def _only(known: Contents, wanted: str) -> Contents:
    keys = {
        workload.key
        for workload in known.workloads
        if fnmatchcase(workload.name, wanted) or workload.key.startswith(wanted)
    }
    if not keys:
        from ...tir.errors import known_names  # only for the error

        names = known_names(wanted, [workload.name for workload in known.workloads])
        raise UsageError(
            f"log: --only: no function is '{wanted}'; expected one of {names}.",
            code="cli-log-only",
        )
    from ...autotune.log.file import contents  # start-up

    workloads = (one for one in known.workloads if one.key in keys)
    trials = (one for one in known.trials if one.workload in keys)
    return contents((*workloads, *trials), known.problems)
