"""Reading and writing arrays: `--load-inputs`, `--held-out` and `--save-outputs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..runtime.arrays import Array
from ..runtime.files.array_files import read_arrays
from ..runtime.model.interface import TensorSpec
from ..tir.output_file import writing
from .errors import UsageError


def load_inputs(
    path: str, specs: Sequence[TensorSpec], option: str = "--load-inputs"
) -> dict[str, Array]:
    """Load the inputs of a file: .npz with arrays by name, or .npy for a single input.

    Raises: UsageError for a file that holds something else; OSError.
    """
    try:
        found = read_arrays(Path(path))
    except ValueError as error:
        raise UsageError(
            f"{option}: '{path}' is no file of arrays; expected .npz or .npy, no pickles.",
            code="cli-inputs-file",
            hints=("np.savez('inputs.npz', **{name: array}) writes one.",),
        ) from error
    if isinstance(found, dict):
        return found
    if len(specs) != 1:
        listed = ", ".join(map(str, specs))
        raise UsageError(
            f"{option}: '{path}' holds one array without a name; expected {listed}.",
            code="cli-inputs-names",
            hints=("np.savez('inputs.npz', **{name: array}) keeps names.",),
        )
    return {specs[0].name: found}


def save_outputs(path: str, outputs: Mapping[str, Array]) -> Path:
    """Write the outputs as .npz, by name; returns the path.

    Raises: OutputFileError.
    """
    file = Path(path)
    with writing(file), file.open("wb") as stream:
        np.savez(stream, **dict(outputs))  # type: ignore[arg-type]  # its stub lists other keywords
    return file
