# PYTHON_ARGCOMPLETE_OK
"""`tilewright`: the command line. Each verb is a module, which imports lazily what it runs."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..tir.errors import TilewrightError
from ..tir.text.display import printable
from . import bench, calibrate, compile, doctor, explain, export_c, fuzz, reduce, run, tune, verify
from .demo import demo
from .errors import ENVIRONMENT, INTERRUPTED, OK, USAGE, error_json, exit_code
from .guarded import guarded_output
from .log import log
from .parser import Parser

VERBS = (
    demo,
    run,
    verify,
    reduce,
    bench,
    calibrate,
    compile,
    export_c,
    explain,
    tune,
    log,
    fuzz,
    doctor,
)

_EPILOG = """\
exit codes:
  0  ok                       3  a model that is not supported
  1  results differ           4  the environment: no compiler, a folder that cannot be written
  2  usage, or no such file

start with:
  tilewright demo             compile a real model, check it, time it
  tilewright doctor           what was found on this machine
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; returns the exit code."""
    made = parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow
        complete(made)
    parsed = made.parse(arguments)
    if parsed.verb is None:
        made.print_help(sys.stderr)
        return USAGE
    with _logging(verbose=parsed.verbose), guarded_output():
        try:
            code = int(parsed.run(parsed))
            sys.stdout.flush()
        except TilewrightError as error:
            print(error, file=sys.stderr)
            if getattr(parsed, "json", False):
                print(json.dumps({"error": error_json(error)}, indent=1))
            return exit_code(error)
        except BrokenPipeError:
            # the reader closed the pipe: Python must not fail to flush its buffer at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except OSError as error:
            print(f"tilewright: {printable(str(error))}", file=sys.stderr)
            return USAGE if isinstance(error, FileNotFoundError) else ENVIRONMENT
        except KeyboardInterrupt:
            print("tilewright: interrupted", file=sys.stderr)
            return INTERRUPTED
    return code


def complete(made: argparse.ArgumentParser) -> None:
    """Answer a shell that completes a command line, and exit; without argcomplete, say nothing."""
    try:
        import argcomplete  # optional: tilewright[completion]
    except ImportError:
        sys.exit(1)
    argcomplete.autocomplete(made)


def parser() -> Parser:
    """The parser with all verbs."""
    made = Parser(
        prog="tilewright",
        description="A tensor compiler: models in, proved and checked machine code out.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    made.add_argument(
        "-v", "--verbose", action="store_true", help="log what the package does to stderr"
    )
    verbs = made.add_subparsers(title="verbs", dest="verb", metavar="VERB")
    for verb in VERBS:
        verb.add_parser(verbs)
    return made


class _Version(argparse.Action):
    """Prints the version, which is looked up lazily."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from ..runtime.version import tool_version  # start-up: nothing else needs the runtime

        print(f"tilewright {tool_version()}")
        parser.exit()


class _Plain(logging.Formatter):
    """Formats records with control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@contextmanager
def _logging(*, verbose: bool) -> Iterator[None]:
    """Log the package's warnings, or everything, to stderr."""
    package = logging.getLogger("tilewright")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("tilewright: %(levelname)s: %(message)s"))
    before = package.level
    package.addHandler(handler)
    package.setLevel(logging.DEBUG if verbose else logging.WARNING)
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.setLevel(before)
