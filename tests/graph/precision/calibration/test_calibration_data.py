"""The data of a calibration: every form of it, one item at a time, and what is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.graph.precision.calibration.calibration_data import items_of
from tilewright.graph.precision.calibration.statistics import CalibrationError
from tilewright.runtime.model.interface import TensorSpec

X = TensorSpec("x", np.dtype(np.float32), (1, 2))
K = TensorSpec("k", np.dtype(np.int64), (1,))
ARRAY, NUMBER = np.ones((1, 2), np.float32), np.array([3], np.int64)


def refused(data: Any, *inputs: TensorSpec) -> str:
    with pytest.raises(CalibrationError) as caught:
        list(items_of(data, inputs or (X,), None))
    return str(caught.value)


def test_items_are_dicts_tuples_or_arrays() -> None:
    both = {"x": ARRAY, "k": NUMBER}
    for item in (both, (ARRAY, NUMBER)):
        assert list(items_of([item], (X, K), None)) == [both]
    for single in (ARRAY, (ARRAY,), {"x": ARRAY}):
        assert list(items_of([single], (X,), None)) == [{"x": ARRAY}]


def test_a_function_gives_an_iterable() -> None:
    assert list(items_of(lambda: iter([ARRAY, ARRAY]), (X,), None)) == [{"x": ARRAY}] * 2


def test_an_array_holds_items_on_its_first_axis() -> None:
    found = list(items_of(np.arange(6, dtype=np.float32).reshape(3, 1, 2), (X,), None))
    assert [item["x"].tolist() for item in found] == [[[0, 1]], [[2, 3]], [[4, 5]]]  # type: ignore[attr-defined]


def test_one_item_is_read_at_a_time_and_no_more_than_asked_for() -> None:
    read = list[int]()

    def endless() -> Iterator[object]:
        while True:
            read.append(len(read))
            yield ARRAY

    found = items_of(endless(), (X,), 3)
    next(found)
    assert read == [0]
    assert len(list(found)) == 2
    assert read == [0, 1, 2]


def test_a_folder_holds_an_item_in_each_file(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", ARRAY * 2)
    np.savez(tmp_path / "a.npz", x=ARRAY)
    np.savez_compressed(tmp_path / "c.npz", x=ARRAY * 3)
    (tmp_path / "notes.txt").write_text("no array")
    found = [item["x"] for item in items_of(tmp_path, (X,), None)]
    assert np.array_equal(found, [ARRAY, ARRAY * 2, ARRAY * 3])
    assert len(list(items_of(str(tmp_path), (X,), 2))) == 2


def test_no_item_is_refused() -> None:
    used = iter([ARRAY])
    next(used)
    for data in ([], used, lambda: ()):
        assert refused(data) == (
            "CalibrationError: calibrate: the data have no item; expected at least one. "
            "[calibrate-no-items]\n"
            "  Hint: an iterator that was read before is at its end: make a new one."
        )


@pytest.mark.parametrize(("data", "called"), [({"x": ARRAY}, "dict"), (3, "int")])
def test_what_holds_no_items_is_refused(data: object, called: str) -> None:
    assert refused(data) == (
        f"CalibrationError: calibrate: the data are a {called}; expected an iterable of items, "
        "each a dict of arrays by input, a tuple of them in the order of the inputs, or an array "
        "for a single input; a folder of .npy or .npz files; or a function that gives such an "
        "iterable. [calibrate-data]\n"
        "  Hint: [item] is data of one item."
    )


@pytest.mark.parametrize(
    ("item", "called"), [((ARRAY,), "a tuple of 1"), (ARRAY, "a ndarray"), ([ARRAY], "a list")]
)
def test_an_item_that_is_not_one_array_for_each_input_is_refused(item: object, called: str) -> None:
    assert refused([(ARRAY, NUMBER), item], X, K) == (
        f"CalibrationError: calibrate: item 1 is {called}; expected a dict of arrays by input, a "
        "tuple of them in the order of the inputs, or an array for a single input. "
        "[calibrate-item]\n"
        "  Note: the inputs are x: float32[1, 2], k: int64[1]."
    )


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "none") == (
        f"CalibrationError: calibrate: the folder '{tmp_path}/none' cannot be read: No such file "
        "or directory. [calibrate-folder]"
    )


def test_a_folder_without_arrays_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == (
        f"CalibrationError: calibrate: the folder '{tmp_path}' has no .npy or .npz file; expected "
        "one for each item. [calibrate-folder-empty]\n"
        "  Hint: np.savez('item0.npz', **{name: array}) writes one."
    )


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    assert refused(tmp_path) == (
        f"CalibrationError: calibrate: '{tmp_path}/a.npy' is no file of arrays: Object arrays "
        "cannot be loaded when allow_pickle=False; expected .npy or .npz, no pickles. "
        "[calibrate-file]"
    )


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    for name, save in (("a.npy", np.save), ("a.npz", np.savez), ("b.npz", np.savez_compressed)):
        path = tmp_path / name
        save(path, np.arange(100.0))
        data = path.read_bytes()
        for cut in range(0, len(data), 37):
            path.write_bytes(data[:cut])
            assert "[calibrate-file]" in refused(tmp_path)
        path.unlink()


def test_sizes_that_no_memory_has_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100.0))
    path.write_bytes(
        path.read_bytes().replace(b"(100,), }    ", b"(1<<60,), } ".replace(b"1<<60", b"9" * 15))
    )
    assert "[calibrate-file]" in refused(tmp_path)
