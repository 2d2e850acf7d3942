"""The values of inputs that are none from then on: `--constants`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from ..runtime.arrays import Array


def add_constants(parser: argparse.ArgumentParser) -> None:
    """Add `--constants`."""
    parser.add_argument(
        "--constants",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of an input, which is none from then on: k=5, axes=[1], or mask=@mask.npy",
    )


def constants_of(texts: Sequence[str]) -> dict[str, object]:
    """Parse `--constants`: a number or a list of numbers in JSON, or the array of a file.

    Raises: UsageError; OSError.
    """
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise _unread(text, "NAME=VALUE")
        if name in found:
            raise UsageError(
                f"--constants: '{name}' is given twice; expected one value for each input.",
                code="cli-constants-twice",
            )
        found[name] = _loaded(value[1:]) if value.startswith("@") else _parsed(text, value)
    return found


def _parsed(text: str, value: str) -> object:
    try:
        made: object = json.loads(value)
    except (ValueError, RecursionError):
        raise _unread(text, "numbers in JSON") from None
    if isinstance(made, str | dict) or made is None:
        raise _unread(text, "numbers in JSON")
    return made


def _unread(text: str, expected: str) -> UsageError:
    return UsageError(
        f"--constants: cannot read '{text}'; expected {expected}.",
        code="cli-constants",
        hints=("--constants k=5, --constants axes=[1], or --constants mask=@mask.npy.",),
    )


def _loaded(path: str) -> Array:
    from ..runtime.files.array_files import read_arrays  # start-up: few name a file

    try:
        found = read_arrays(Path(path))
    except ValueError:
        found = {}
    if isinstance(found, dict):
        raise UsageError(
            f"--constants: '{path}' is no file of one array; expected .npy, no pickles.",
            code="cli-constants-file",
            hints=("np.save('mask.npy', array) writes one.",),
        )
    return found
