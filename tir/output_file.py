"""Files and folders that a caller names to be written: why one cannot be, as an error of ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import TilewrightError


class OutputFileError(TilewrightError, OSError):
    """A file or a folder that a caller named cannot be written."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise OutputFileError for an OSError that writing a file ends with."""
    try:
        yield
    except OSError as error:
        if isinstance(error, TilewrightError):
            raise
        raise _file_error(path, error) from error


@contextmanager
def writing_folder(folder: Path) -> Iterator[None]:
    """Raise OutputFileError for an OSError that making a folder, or a file in it, ends with."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            raise OutputFileError(
                f"write: '{folder}' is no folder; expected one, or the name of one to make.",
                code="output-no-folder",
                hints=("name another one.",),
            ) from error
        raise _unwritable(error.filename or folder, error) from error


def _file_error(path: Path, error: OSError) -> OutputFileError:
    if error.errno == errno.EISDIR:
        return OutputFileError(
            f"write: '{path}' is a folder; expected the name of a file.",
            code="output-folder",
            hints=("name a file in it.",),
        )
    folder = path.parent
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and not os.path.isdir(folder):
        is_missing = error.errno == errno.ENOENT
        reason = f"there is no folder '{folder}'" if is_missing else f"'{folder}' is no folder"
        return OutputFileError(
            f"write: '{path}' cannot be written: {reason}; expected a file in a folder.",
            code="output-parent",
            hints=("make the folder first, or name another one." if is_missing else "name one.",),
        )
    return _unwritable(path, error)


def _unwritable(path: Path | str, error: OSError) -> OutputFileError:
    return OutputFileError(
        f"write: '{path}' cannot be written: {error.strerror or error}.",
        code="output-write",
        hints=("name a place that this process may write to, and that has room.",),
    )
