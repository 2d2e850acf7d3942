"""Follow a log that other processes write: read what was appended since the last time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import RecordError
from .file import COMPRESSED, UNREADABLE, Problem, log_files, not_a_log, open_log_file, unreadable
from .record import LONGEST_LINE, Record, identity, record_of


@dataclass
class _File:
    """How much of a file was read, in bytes of complete lines and in lines."""

    bytes: int = 0
    lines: int = 0


@dataclass
class Follower:
    """Reads a log that grows: a file, or a folder in which files appear. It may not exist yet.

    problems: the invalid lines so far.
    """

    path: Path
    problems: list[Problem] = field(default_factory=list)
    _files: dict[Path, _File] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def read(self) -> list[Record]:
        """The records that were added since the last call, each once.

        An unfinished last line is read once it is complete. A file that became shorter is read
        again from its start.
        Raises: LogError where the log cannot be read; NotALog where no line of it is a record.
        """
        if not self.path.exists():
            return []
        added = [record for file in log_files(self.path) for record in self._added(file)]
        if self.problems and not self._known:
            raise not_a_log(self.path, len(self.problems))
        return added

    def _added(self, path: Path) -> list[Record]:
        state, added = self._files.setdefault(path, _File()), []
        for line in self._lines(path, state):
            state.lines += 1
            if not line.strip():
                continue
            try:
                record = record_of(line)
            except RecordError as error:
                self.problems.append(Problem(path, state.lines, error.message))
                continue
            if identity(record) not in self._known:
                self._known.add(identity(record))
                added.append(record)
        return added

    def _lines(self, path: Path, state: _File) -> list[bytes]:
        """The complete lines that were not read yet."""
        try:
            with open_log_file(path) as file:
                is_plain = path.suffix != COMPRESSED
                if is_plain and os.fstat(file.fileno()).st_size < state.bytes:
                    state.bytes = state.lines = 0
                file.seek(state.bytes)
                data = file.read()
        except FileNotFoundError:  # removed since it was listed
            return []
        except UNREADABLE as error:
            raise unreadable(path, error) from error
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) > LONGEST_LINE:  # no record is that long: skip it
            whole = data
        state.bytes += len(whole)
        return whole.splitlines()
