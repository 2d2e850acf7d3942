"""The tuning log: a file of records that many processes append to and that lasts for years.

A record is appended in one write, under a lock, and synced; a line that a killed process left
unfinished is ended by the next writer. Reading never fails because of a line: invalid lines are
reported, all others are read. A log may be a folder, for network file systems, whose locks and
appends are unreliable: each writer then has its own file, and reading merges them.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import os
import secrets
import socket
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import LogError, NotALog, RecordError
from .record import LONGEST_LINE, Record, Trial, Workload, identity, line_of, record_of

SUFFIX = ".jsonl"
COMPRESSED = ".gz"  # behind it; such a log is read, but not appended to
UNREADABLE = (OSError, EOFError, zlib.error)  # of what `open_log_file` opens
_BEGINNING = b'{"kind":"'  # of each line that was ours, also of one that was cut
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that is no valid record. line: its number, from 1; reason: why it is invalid."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Contents:
    """The records of a log, each once, in the order of the lines, and its invalid lines.

    by_identity: the records, each by its identity.
    """

    workloads: tuple[Workload, ...]
    trials: tuple[Trial, ...]
    problems: tuple[Problem, ...] = ()
    by_identity: Mapping[str, Record] = field(default_factory=dict, repr=False)

    @property
    def records(self) -> tuple[Record, ...]:
        """All records, workloads first."""
        return (*self.workloads, *self.trials)


def read_log(path: str | os.PathLike[str]) -> Contents:
    """Read a log, which is a file or a folder of files.

    Raises: LogError where it is missing or cannot be read; NotALog where none of its lines ever
    was a record.
    """
    records: dict[str, Record] = {}
    problems: list[Problem] = []
    for file in log_files(Path(path)):
        was_ours = False
        for number, line in enumerate(_lines(file), 1):
            was_ours = was_ours or line.startswith(_BEGINNING)
            try:
                record = record_of(line)
            except RecordError as error:
                problems.append(Problem(file, number, error.message))
            else:
                records.setdefault(identity(record), record)
        if not was_ours and problems and problems[-1].path == file:
            raise not_a_log(file, problems[-1].line)
    return _contents(records, problems)


def contents(records: Iterable[Record], problems: Iterable[Problem] = ()) -> Contents:
    """The contents of a log with these records."""
    return _contents({identity(record): record for record in records}, problems)


def _contents(each: Mapping[str, Record], problems: Iterable[Problem]) -> Contents:
    workloads = tuple(r for r in each.values() if isinstance(r, Workload))
    trials = tuple(r for r in each.values() if isinstance(r, Trial))
    return Contents(workloads, trials, tuple(problems), each)


def merge(*logs: Contents) -> Contents:
    """The union of logs: workloads before trials, trials in the order of their times.

    The result does not depend on the order of the logs, nor on duplicates.
    """
    records = {key: record for log in logs for key, record in log.by_identity.items()}
    problems = {p: None for log in logs for p in log.problems}
    ordered = sorted(records, key=lambda key: (_time(records[key]), key))
    reported = sorted(problems, key=lambda p: (str(p.path), p.line, p.reason))
    return _contents({key: records[key] for key in ordered}, reported)


def write_log(known: Contents, path: Path) -> Path:
    """Replace a log atomically; returns its path. Raises: LogError."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".log-", delete=False) as file:
            try:
                file.writelines(map(line_of, known.records))
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def _time(record: Record) -> str:
    return record.time if isinstance(record, Trial) else ""


def log_files(path: Path) -> list[Path]:
    """The files of a log. Raises: LogError."""
    if path.is_dir():
        names = (f"*{SUFFIX}", f"*{SUFFIX}{COMPRESSED}")
        return sorted(child for name in names for child in path.glob(name) if child.is_file())
    if not path.is_file():
        if path.exists():
            raise no_file(path)
        raise LogError(
            f"log: there is no file '{path}'; expected a tuning log, or a folder of them.",
            code="log-missing",
        )
    return [path]


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file without their ends; one that is too long is cut."""
    try:
        with open_log_file(path) as file:
            while line := file.readline(LONGEST_LINE):
                if not line.endswith(b"\n"):
                    while (rest := file.readline(_BLOCK)) and not rest.endswith(b"\n"):
                        pass
                if line.strip():
                    yield line.rstrip(b"\n")
    except UNREADABLE as error:
        raise unreadable(path, error) from error


def open_log_file(path: Path) -> BinaryIO:
    """Open a file of a log to read it, whether it is compressed or not."""
    opened = gzip.open(path) if path.suffix == COMPRESSED else path.open("rb")  # noqa: SIM115
    return cast("BinaryIO", opened)


class LogWriter:
    """Appends to a log. A context manager; several processes may write to one file.

    path: a file, created where it is missing; or a folder, in which this writer has its own file.
    Raises: LogError where it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = Path(path)
        folder = given.is_dir() or os.fspath(path).endswith(os.sep)
        self.path = given / _own_name() if folder else given
        if self.path.suffix == COMPRESSED:
            raise LogError(
                f"log: '{self.path}' is compressed; expected a log that can be appended to.",
                code="log-compressed",
                hints=(f"gunzip {self.path}",),
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise unwritable(self.path, error) from error
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            self.close()
            raise no_file(self.path)

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def append(self, *records: Record) -> None:
        """Append records, all of them or none. Raises: LogError; the log is then unchanged."""
        data = b"".join(map(line_of, records))
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            end = os.lseek(self._file, 0, os.SEEK_END)
            if end and os.pread(self._file, 1, end - 1) != b"\n":
                data = b"\n" + data  # a process was killed in the middle of a line
            try:
                if os.write(self._file, data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file)
            except BaseException:
                os.ftruncate(self._file, end)
                raise
        except OSError as error:
            raise unwritable(self.path, error) from error
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def unreadable(path: Path, error: Exception) -> LogError:
    """The error of a log that cannot be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return LogError(f"log: '{path}' cannot be read: {reason}.", code="log-read")


def not_a_log(path: Path, lines: int) -> NotALog:
    """The error of a file that holds something else."""
    return NotALog(
        f"log: '{path}' is no tuning log: none of its {lines} lines is a record; expected "
        "what tilewright tune MODEL --log LOG writes, or tilewright.tune(func, log=path).",
        code="log-other",
    )


def unwritable(path: Path, error: OSError) -> LogError:
    """The error of a log that cannot be written."""
    return LogError(f"log: '{path}' cannot be written: {error.strerror}.", code="log-write")


def no_file(path: Path) -> LogError:
    """The error of a path that is a pipe or a device."""
    return LogError(
        f"log: '{path}' is neither a file nor a folder; expected a tuning log, which is a file or "
        "a folder of files.",
        code="log-kind",
    )


def _own_name() -> str:
    host = "".join(c if c.isalnum() or c in "-." else "-" for c in socket.gethostname())
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
