"""The log of sizes: how often runs of models had which sizes, kept over processes.

Each line is a JSON object, {"model": "bert", "sizes": {"batch": 1, "seq": 17}, "runs": 12}: so many
runs more. Lines are appended in one write, under a lock, so that any number of processes may write
to one file; a line that a killed process left unfinished is ended by the next writer, and no reader
counts it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...tir.errors import IRError, TilewrightError
from ...tir.json_reader import parse_json
from ...tir.output_file import writing

_MOST_SIZES = 64  # of one run
_BEGIN = '{"model": '  # of every line


class SizeLogError(TilewrightError, ValueError):
    """A file is no log of sizes."""


def append_sizes(path: Path, model: str, counted: Iterable[tuple[Mapping[str, int], int]]) -> None:
    """Add runs to the log, which is made where it is not there. Raises: OutputFileError."""
    lines = [
        json.dumps({"model": model, "sizes": dict(sizes), "runs": runs}) + "\n"
        for sizes, runs in counted
    ]
    if not lines:
        return
    with writing(path), path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        torn = b"" if file.read(1) in (b"", b"\n") else b"\n"
        file.write(torn + "".join(lines).encode())


def frequent_sizes(
    path: str | os.PathLike[str], count: int, *, model: str | None = None
) -> list[dict[str, int]]:
    """The `count` sizes that most runs in a log had, the most frequent first: for `specialise`.

    model: whose runs, by name; a log that has those of one alone needs none.
    Raises: SizeLogError for a file that is missing, is no such log, or has runs of several models.
    """
    runs = _read_log(Path(path))
    if model is None and len(runs) > 1:
        listed = ", ".join(f"'{name}'" for name in sorted(runs))
        raise SizeLogError(
            f"sizes: '{path}' has runs of {listed}; expected the name of one of them.",
            code="size-log-models",
            hints=(f"frequent_sizes(path, {count}, model={min(runs)!r})",),
        )
    wanted = next(iter(runs), "") if model is None else model
    return [dict(sizes) for sizes, _ in runs.get(wanted, Counter()).most_common(count)]


def logged_runs(path: str | os.PathLike[str], model: str) -> list[tuple[dict[str, int], int]]:
    """The sizes of a model's runs in a log, and how many runs had them. Raises: SizeLogError."""
    runs = _read_log(Path(path)).get(model, Counter[tuple[tuple[str, int], ...]]())
    return [(dict(sizes), often) for sizes, often in runs.items()]


def _read_log(file: Path) -> dict[str, Counter[tuple[tuple[str, int], ...]]]:
    """The runs of each model at each choice of the sizes."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise SizeLogError(
            f"sizes: '{file}' cannot be read: {error.strerror}; expected a log of sizes.",
            code="size-log-file",
            hints=("engine.log_sizes(path) writes one, and so does `tilewright run --shape-log`.",),
        ) from error
    runs: dict[str, Counter[tuple[tuple[str, int], ...]]] = {}
    # what follows the last end of a line was left unfinished
    for number, line in enumerate(lines[:-1], 1):
        if not _is_cut(line):
            name, sizes, more = _read(file, number, line)
            runs.setdefault(name, Counter())[sizes] += more
    return runs


def _is_cut(line: str) -> bool:
    """Whether a line begins as all do and has no end."""
    begins = line[: len(_BEGIN)] == _BEGIN[: len(line)]
    return line != "" and begins and not line.endswith("}")


def _read(path: Path, number: int, line: str) -> tuple[str, tuple[tuple[str, int], ...], int]:
    """The model, the sizes and the runs of a line."""
    try:
        data = parse_json(line.encode(), "line")
        fields = data["sizes"].fields(_MOST_SIZES)
        sizes = tuple((name, size.integer()) for name, size in fields)
        return data["model"].text(), sizes, data["runs"].integer()
    except IRError as error:
        raise SizeLogError(
            f"sizes: line {number} of '{path}' is not one of a log of sizes: {error.message}",
            code="size-log-line",
            hints=("take the line out, or begin another log.",),
        ) from error
