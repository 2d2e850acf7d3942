"""Arrays of .npy and .npz files, which may come from anybody: no pickle is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..arrays import Array
from .regular_file import open_regular


class NoArrays(ValueError):
    """A file holds something else than arrays."""


def read_arrays(path: Path) -> Array | dict[str, Array]:
    """The array of a .npy, or the arrays of a .npz by name.

    Raises: NoArrays with the reason; OSError where the file cannot be opened.
    """
    with open_regular(path) as file:  # NumPy leaves a damaged one open
        if file is None:
            raise NoArrays("it is no regular file")
        try:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            return {name: found[name] for name in found.files}
        except Exception as error:  # any class: NumPy's reader raises what its parts do
            raise NoArrays(str(error).rstrip(".")) from error
