"""tir/output_file.py: a file that cannot be written where it was to be is an error of ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.runtime.files.disk import DiskFull
from tilewright.runtime.model.profile import Profile
from tilewright.tir.output_file import OutputFileError, writing, writing_folder
from tilewright.tir.svg.picture import Picture

from ..tiny_engine import tiny_engine

SAVERS: dict[str, Callable[[Path], Path]] = {
    "engine": lambda path: tiny_engine().save(path),
    "profile": Profile("m", 1, 5, 1.0, ()).save,
    "picture": Picture(4, 4, "a dot", ()).save,
}
EXPECTED = "expected a file in a folder. [output-parent]"


@pytest.mark.parametrize("kind", SAVERS)
def test_a_saver_says_why_the_file_has_no_place(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    texts = {
        tmp_path / "no" / "out": (
            f"OutputFileError: write: '{tmp_path}/no/out' cannot be written: there is no folder "
            f"'{tmp_path}/no'; {EXPECTED}\n"
            "  Hint: make the folder first, or name another one."
        ),
        tmp_path / "file" / "out": (
            f"OutputFileError: write: '{tmp_path}/file/out' cannot be written: '{tmp_path}/file' "
            f"is no folder; {EXPECTED}\n"
            "  Hint: name one."
        ),
        tmp_path: (
            f"OutputFileError: write: '{tmp_path}' is a folder; expected the name of a file. "
            "[output-folder]\n"
            "  Hint: name a file in it."
        ),
    }
    for path, text in texts.items():
        with pytest.raises(OSError, match=r"\[output-") as caught:
            SAVERS[kind](path)
        assert str(caught.value) == text
    assert os.listdir(tmp_path) == ["file"]
    assert SAVERS[kind](tmp_path / "out").stat().st_size > 0


def test_an_export_needs_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below"):
        with pytest.raises(OutputFileError) as caught:
            tiny_engine("c:scalar").export_c(place)
        assert str(caught.value) == (
            f"OutputFileError: write: '{place}' is no folder; expected one, or the name of one to "
            "make. [output-no-folder]\n"
            "  Hint: name another one."
        )


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("guard", [writing, writing_folder])
def test_what_the_system_says_is_told_with_the_path(
    guard: Callable[[Path], object], number: int, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    with pytest.raises(OutputFileError) as caught, guard(path):  # type: ignore[attr-defined]
        raise OSError(number, os.strerror(number))
    assert str(caught.value) == (
        f"OutputFileError: write: '{path}' cannot be written: {os.strerror(number)}. "
        "[output-write]\n"
        "  Hint: name a place that this process may write to, and that has room."
    )
    assert isinstance(caught.value.__cause__, OSError)


def test_a_file_of_an_export_is_named_where_that_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "model.h").mkdir()
    with pytest.raises(OutputFileError, match=r"model\.h' cannot be written: Is a directory\."):
        tiny_engine("c:scalar").export_c(tmp_path)


def test_a_link_to_nowhere_is_no_missing_folder(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "no" / "out")
    with pytest.raises(OutputFileError, match=r"\[output-write\]"):
        Picture(4, 4, "a dot", ()).save(path)


def test_an_error_of_ours_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(DiskFull), writing(tmp_path / "out"):
        raise DiskFull("compile: full.", code="compile-disk")
