"""Files of arrays are read without pickles; all else says why it is none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.files.array_files import NoArrays, read_arrays

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_an_array_has_no_name_and_those_of_an_archive_have(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", ARRAY)
    found = read_arrays(tmp_path / "one.npy")
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, ARRAY)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "two.npz", x=ARRAY, y=ARRAY + 1)
        both = read_arrays(tmp_path / "two.npz")
        assert isinstance(both, dict)
        assert list(both) == ["x", "y"]
        assert np.array_equal(both["y"], ARRAY + 1)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.array([print], object), allow_pickle=True)
    with pytest.raises(NoArrays, match="allow_pickle=False"):
        read_arrays(tmp_path / "one.npy")
    np.savez(tmp_path / "two.npz", x=np.array([print], object))
    with pytest.raises(NoArrays, match="allow_pickle=False"):
        read_arrays(tmp_path / "two.npz")


@pytest.mark.parametrize("name", ["one.npy", "two.npz"])
def test_a_file_that_is_cut_off_anywhere_is_none(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name == "one.npy":
        np.save(file, ARRAY)
    else:
        np.savez(file, x=ARRAY)
    data = file.read_bytes()
    for end in range(len(data)):
        file.write_bytes(data[:end])
        with pytest.raises(NoArrays):
            read_arrays(file)


def test_what_has_no_end_is_not_read_and_what_is_not_there_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(NoArrays, match="it is no regular file"):
        read_arrays(tmp_path / "pipe.npy")
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "none.npy")
