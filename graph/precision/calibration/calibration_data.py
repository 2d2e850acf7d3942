"""The data of a calibration, item by item: whatever is given, one item is in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from ....runtime.files.array_files import read_arrays
from ....runtime.model.interface import TensorSpec
from .statistics import CalibrationError

CalibrationData = Iterable[object] | str | os.PathLike[str] | Callable[[], Iterable[object]]
Item = dict[str, object]  # the inputs of a run, by name; a run says what is wrong with them

_FORMS = (
    "a dict of arrays by input, a tuple of them in the order of the inputs, or an array for a "
    "single input"
)
_SUFFIXES = (".npy", ".npz")


def items_of(
    data: CalibrationData, inputs: tuple[TensorSpec, ...], most: int | None
) -> Iterator[Item]:
    """The items of data for a model with these inputs, at most so many.

    Raises: CalibrationError for what is no data, and where there is no item.
    """
    empty = True
    for number, item in enumerate(islice(_given(data), most)):
        empty = False
        yield _named(item, inputs, number)
    if empty:
        raise CalibrationError(
            "calibrate: the data have no item; expected at least one.",
            code="calibrate-no-items",
            hints=("an iterator that was read before is at its end: make a new one.",),
        )


def _given(data: object) -> Iterator[object]:
    """The items as they are given. Raises: CalibrationError."""
    if isinstance(data, str | os.PathLike):
        return _of_folder(Path(os.fspath(data)))
    made = data() if callable(data) else data
    if isinstance(made, Mapping) or not isinstance(made, Iterable):
        raise CalibrationError(
            f"calibrate: the data are a {type(made).__name__}; expected an iterable of items, each "
            f"{_FORMS}; a folder of .npy or .npz files; or a function that gives such an iterable.",
            code="calibrate-data",
            hints=("[item] is data of one item.",),
        )
    return iter(made)


def _named(item: object, inputs: tuple[TensorSpec, ...], number: int) -> Item:
    """The inputs of an item by name. Raises: CalibrationError."""
    names = [spec.name for spec in inputs]
    if isinstance(item, Mapping):
        return dict(item)
    given = item if isinstance(item, tuple) else (item,)
    if len(given) == len(names) and not isinstance(item, list):
        return dict(zip(names, given, strict=True))
    raise CalibrationError(
        f"calibrate: item {number} is {_called(item)}; expected {_FORMS}.",
        code="calibrate-item",
        notes=(f"the inputs are {', '.join(map(str, inputs))}.",),
    )


def _called(item: object) -> str:
    if isinstance(item, tuple):
        return f"a tuple of {len(item)}"
    return f"a {type(item).__name__}"


def _of_folder(folder: Path) -> Iterator[object]:
    """What the files of a folder hold, in the order of their names: one item each."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)
    except OSError as error:
        raise CalibrationError(
            f"calibrate: the folder '{folder}' cannot be read: {error.strerror}.",
            code="calibrate-folder",
        ) from error
    if not paths:
        raise CalibrationError(
            f"calibrate: the folder '{folder}' has no .npy or .npz file; expected one for each "
            "item.",
            code="calibrate-folder-empty",
            hints=("np.savez('item0.npz', **{name: array}) writes one.",),
        )
    return map(_of_file, paths)


def _of_file(path: Path) -> object:
    """The array of a .npy, the arrays of a .npz by name. Raises: CalibrationError."""
    try:
        return read_arrays(path)
    except (OSError, ValueError) as error:
        raise CalibrationError(
            f"calibrate: '{path}' is no file of arrays: {str(error).rstrip('.')}; expected .npy or "
            ".npz, no pickles.",
            code="calibrate-file",
        ) from error
