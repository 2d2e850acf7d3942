from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.autotune.errors import LogError
from tilewright.autotune.log.file import LogWriter
from tilewright.autotune.log.follow import Follower
from tilewright.autotune.log.record import line_of

from ..samples import trial, workload


def test_what_is_added_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "tune.jsonl"
    follower = Follower(path)
    assert follower.read() == []
    with LogWriter(path) as writer:
        writer.append(workload(), trial(0))
        assert follower.read() == [workload(), trial(0)]
        assert follower.read() == []
        writer.append(trial(1))
        writer.append(trial(1))
        assert follower.read() == [trial(1)]
    assert follower.problems == []


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path, line = tmp_path / "tune.jsonl", line_of(trial(0))
    follower = Follower(path)
    for end in range(1, len(line), 97):
        path.write_bytes(line[:end])
        assert follower.read() == []
    path.write_bytes(line)
    assert follower.read() == [trial(0)]
    assert follower.problems == []


def test_a_damaged_line_is_told_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "tune.jsonl"
    follower = Follower(path)
    path.write_bytes(line_of(workload()))
    follower.read()
    with path.open("ab") as file:
        file.write(b"\nno record\n" + line_of(trial(0)))
    assert follower.read() == [trial(0)]
    (problem,) = follower.problems
    assert problem.line == 3


def test_files_that_appear_in_a_folder_are_read(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "logs")
    for number in range(3):
        with LogWriter(f"{tmp_path / 'logs'}/") as writer:
            writer.append(workload(), trial(number))
        new = [trial(number)] if number else [workload(), trial(number)]
        assert follower.read() == new


def test_a_log_that_was_written_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "tune.jsonl"
    follower = Follower(path)
    path.write_bytes(b"".join(map(line_of, (workload(), trial(0), trial(1)))))
    assert len(follower.read()) == 3
    path.write_bytes(line_of(workload()) + line_of(trial(2)))
    assert follower.read() == [trial(2)]


def test_a_log_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tune.jsonl"
    path.touch()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(LogError) as refused:
        Follower(path).read()
    assert str(refused.value) == (
        f"LogError: log: '{path}' cannot be read: Permission denied. [log-read]"
    )
