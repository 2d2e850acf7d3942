"""runtime/files/temporary.py: folders that killed processes left go, and nothing else does."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tilewright.runtime.files.temporary import sweep, temporary_folder


def made(path: Path, days: float) -> Path:
    path.mkdir()
    (path / "object.so").write_bytes(b"code")
    then = time.time() - days * 86_400
    os.utime(path, (then, then))
    return path


def test_folders_of_killed_processes_go_a_day_later(tmp_path: Path) -> None:
    old = made(tmp_path / "tilewright-abcd_012", 1.1)
    kept = [
        made(tmp_path / "tilewright-abcd_013", 0.9),
        made(tmp_path / "tilewright-demo-abcd_014", 30),
        made(tmp_path / "tilewright-notes", 30),
        made(tmp_path / "another-abcd_015", 30),
    ]
    file = tmp_path / "tilewright-abcd_016"
    file.write_text("no folder")
    os.utime(file, (0, 0))
    link = tmp_path / "tilewright-abcd_017"
    link.symlink_to(kept[2], target_is_directory=True)
    assert sweep(tmp_path) == 1
    assert not old.exists()
    assert all((folder / "object.so").exists() for folder in kept)
    assert file.exists()
    assert link.is_symlink()


def test_no_folder_is_no_error(tmp_path: Path) -> None:
    assert sweep(tmp_path / "absent") == 0


def test_a_folder_goes_with_its_use() -> None:
    with temporary_folder() as folder:
        Path(folder, "file").write_text("x")
    assert not Path(folder).exists()
