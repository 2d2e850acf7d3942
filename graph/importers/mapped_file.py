"""Files of models that are mapped into memory: what is not read is not loaded."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from ...runtime.files.regular_file import open_regular
from ..errors import ModelFileError


def mapped_file(path: Path, most: int | None = None) -> memoryview:
    """The bytes of a regular file, read-only. most: how many it may have.

    Who cuts the file while it is mapped ends the process that reads there.

    Raises: ModelFileError where it cannot be read, has no bytes, or more than `most`.
    """
    try:
        with open_regular(path) as file:
            if file is None:
                raise ModelFileError(
                    f"model: file '{path}' cannot be read: it is not a regular file.",
                    code="mapped-file-kind",
                )
            size = os.fstat(file.fileno()).st_size
            if size < 1 or (most is not None and size > most):
                limit = "1 or more" if most is None else f"1 to {most}"
                raise ModelFileError(
                    f"model: file '{path}' has {size} bytes; expected {limit}.",
                    code="mapped-file-size",
                )
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelFileError(
            f"model: file '{path}' cannot be read: {reason}.", code="mapped-file"
        ) from error
