"""A mapped file is its bytes, of which it may have so many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.graph.errors import ModelFileError
from tilewright.graph.importers.mapped_file import mapped_file


def test_the_bytes_of_a_file_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    data = mapped_file(path, 3)
    assert data.readonly
    assert bytes(data) == b"abc"
    assert bytes(mapped_file(path)) == b"abc"


def test_a_file_of_too_many_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with pytest.raises(ModelFileError, match=r"has 3 bytes; expected 1 to 2") as caught:
        mapped_file(path, 2)
    assert caught.value.code == "mapped-file-size"
