"""`tilewright log watch`: follow a log that another process writes: a live table on a terminal, a
line for each gain in a pipe, until Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...tir.text.display import printable
from ..arguments import seconds
from ..errors import OK
from ..guarded import unguarded
from .arguments import add_action

if TYPE_CHECKING:
    from ...autotune.log.record import Record
    from ..arguments import Verbs

_EXAMPLES = """\
  tilewright log watch resnet50.jsonl
  tilewright log watch cluster/ --json | jq .seconds       each trial as it comes, by any writer
"""
_PAUSE = 0.5


def add_parser(actions: Verbs) -> None:
    """The action and its options."""
    parser = add_action(actions, "watch", "follow a log that grows", __doc__, _EXAMPLES, "LOG")
    parser.add_argument(
        "log", metavar="LOG", help="a file, or a folder of files, which may not exist yet"
    )
    parser.add_argument(
        "--seconds", type=seconds, metavar="S", help="end after so long (default: at Ctrl-C)"
    )
    parser.add_argument("--json", action="store_true", help="print each trial as a line of JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Poll the log and show new records."""
    from ...autotune.log.follow import Follower  # start-up

    follower = Follower(Path(arguments.log))
    ends = float("inf") if arguments.seconds is None else time.monotonic() + arguments.seconds
    if not follower.path.exists():
        print(f"tilewright: waiting for '{printable(str(follower.path))}'", file=sys.stderr)
    reported = 0
    try:
        with _shown(as_json=arguments.json) as show:
            while True:
                for record in follower.read():
                    show(record)
                for problem in follower.problems[reported:]:
                    print(f"tilewright: {printable(str(problem))}", file=sys.stderr)
                reported = len(follower.problems)
                if time.monotonic() >= ends:
                    return OK
                time.sleep(min(_PAUSE, max(0.0, ends - time.monotonic())))
    except KeyboardInterrupt:
        return OK


@contextmanager
def _shown(*, as_json: bool) -> Iterator[Callable[[Record], object]]:
    """A function that shows a record."""
    if as_json:
        yield _Lines()
        return
    from ...autotune.report.progress_table import ProgressTable  # start-up
    from ..tuning_progress import Progress

    with Progress(ProgressTable(), unguarded(sys.stdout)) as progress:
        yield progress


class _Lines:
    """Prints each trial as a line of JSON, with the columns of `log export`."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, record: Record) -> None:
        """Print a trial; note the name of a workload."""
        from ...autotune.log.flat import flat  # start-up
        from ...autotune.log.record import Workload

        if isinstance(record, Workload):
            self._names[record.key] = record.name
        else:
            print(json.dumps(flat(record, self._names)), flush=True)
