"""runtime/files/replacement.py: a file is replaced whole or not at all, and killed writers leave
nothing for long.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.runtime.files import replacement
from tilewright.runtime.files.replacement import replacing, sweep

KILLED = """
import os, signal, sys
from pathlib import Path
from tilewright.runtime.files.replacement import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_reader_finds_the_old_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        with replacing(path) as file:
            file.write(b"new")
            assert path.read_bytes() == b"old"
        assert path.read_bytes() == b"new"
        assert reader.read() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_failure_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_any_name_that_a_file_may_have_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_it_is_on_the_disk_before_it_takes_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(replacement.os, "fsync", lambda file: steps.append("sync"))
    whole = Path.replace

    def replace(path: Path, target: Path) -> Path:
        steps.append("replace")
        return whole(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    for sync in (True, False):
        with replacing(tmp_path / "file", sync=sync) as file:
            file.write(b"new")
    assert steps == ["sync", "replace", "sync", "replace"]


def test_what_a_killed_writer_left_goes_when_somebody_writes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".twe-")
    assert sweep(tmp_path) == 0  # it is fresh
    old = time.time() - 3600
    os.utime(left, (old, old))
    other = tmp_path / ".twe-of-mine"
    other.write_bytes(b"")
    os.utime(other, (old, old))
    with replacing(path) as file:
        file.write(b"new")
    assert sorted(os.listdir(tmp_path)) == [".twe-of-mine", "file"]


def test_what_is_being_written_is_not_swept(tmp_path: Path) -> None:
    slow = tmp_path / ".twe-0123456789abcdef"
    with slow.open("xb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(slow, (0, 0))
        assert sweep(tmp_path) == 0
    assert sweep(tmp_path) == 1
