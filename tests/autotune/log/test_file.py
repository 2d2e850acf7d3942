from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.autotune.errors import LogError, NotALog
from tilewright.autotune.log.file import Contents, LogWriter, contents, merge, read_log
from tilewright.autotune.log.record import line_of

from ..samples import trial, workload


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "tune.jsonl"
    with LogWriter(path) as writer:
        writer.append(workload(), trial(0))
        writer.append(trial(1))
        writer.append(trial(2))
    return path


def test_what_was_appended_is_read(log: Path) -> None:
    found = read_log(log)
    assert found.workloads == (workload(),)
    assert found.trials == (trial(0), trial(1), trial(2))
    assert found.problems == ()


def test_a_log_cut_at_every_byte_of_its_last_record_gives_all_whole_ones(log: Path) -> None:
    data = log.read_bytes()
    lines = data.splitlines(keepends=True)
    before_last = len(data) - len(lines[-1])
    for end in (len(lines[0]), *range(before_last - 1, len(data) + 1)):
        log.write_bytes(data[:end])
        whole = [n for n in range(3) if end >= len(b"".join(lines[: n + 2])) - 1]
        found = read_log(log)
        assert found.trials == tuple(trial(n) for n in whole)
        assert len(found.problems) <= 1


def test_after_a_cut_line_the_next_record_starts_a_line_of_its_own(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-5])
    with LogWriter(log) as writer:
        writer.append(trial(3))
    found = read_log(log)
    assert found.trials == (trial(0), trial(1), trial(3))
    (problem,) = found.problems
    assert str(problem).startswith(f"{log}:4: log: no record of ours: json: record is not JSON:")


def test_a_record_that_stands_twice_counts_once(log: Path) -> None:
    log.write_bytes(2 * log.read_bytes())
    assert read_log(log) == contents([workload(), trial(0), trial(1), trial(2)])


def test_a_line_without_end_in_a_huge_file_is_one_problem(log: Path) -> None:
    log.write_bytes(b"x" * (9 << 20) + b"\n" + line_of(trial(0)))
    found = read_log(log)
    assert found.trials == (trial(0),)
    assert len(found.problems) == 1


def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    script = (
        "import sys; from tests.autotune.samples import trial\n"
        "from tilewright.autotune.log.file import LogWriter\n"
        "with LogWriter(sys.argv[1]) as writer:\n"
        "    for n in range(40): writer.append(trial(1000 * int(sys.argv[2]) + n))\n"
    )
    path, root = tmp_path / "tune.jsonl", Path(__file__).parents[3]
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(n)], cwd=root)
        for n in range(8)
    ]
    assert [process.wait() for process in started] == [0] * 8
    found = read_log(path)
    assert found.problems == ()
    assert sorted(t.time for t in found.trials) == sorted(
        trial(1000 * n + m).time for n in range(8) for m in range(40)
    )


def test_writers_to_a_folder_have_files_of_their_own_that_are_read_as_one(tmp_path: Path) -> None:
    for number in range(3):
        with LogWriter(f"{tmp_path / 'logs'}/") as writer:
            writer.append(workload(), trial(number))
    assert len(list((tmp_path / "logs").iterdir())) == 3
    found = read_log(tmp_path / "logs")
    assert found.workloads == (workload(),)
    assert {t.time for t in found.trials} == {trial(n).time for n in range(3)}


def test_a_full_disk_leaves_the_log_as_it_was(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, write = log.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:100]))
    with LogWriter(log) as writer, pytest.raises(LogError) as refused:
        writer.append(trial(3))
    assert str(refused.value) == (
        f"LogError: log: '{log}' cannot be written: No space left on device. [log-write]"
    )
    assert log.read_bytes() == before


def test_a_compressed_file_is_read_alone_and_in_a_folder_but_not_appended_to(log: Path) -> None:
    known = read_log(log)
    packed = log.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    assert read_log(packed) == read_log(packed.parent) == known
    with pytest.raises(LogError, match=r"'.*\.gz' is compressed; expected a log that can be"):
        LogWriter(packed)


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-9], lambda data: b"no gzip", lambda data: data[:20] + b"\xff" * 40],
)
def test_a_damaged_compressed_file_is_refused(log: Path, damage: Callable[[bytes], bytes]) -> None:
    packed = log.with_suffix(".jsonl.gz")
    packed.write_bytes(damage(gzip.compress(log.read_bytes())))
    with pytest.raises(LogError, match="cannot be read: "):
        read_log(packed)


def test_a_file_that_holds_something_else_is_no_log(log: Path) -> None:
    other = log.parent / "a.jsonl"
    other.write_text('{"a": 1}\n[2]\n')
    for path in (other, other.parent):
        with pytest.raises(NotALog) as caught:
            read_log(path)
        assert str(caught.value) == (
            f"NotALog: log: '{other}' is no tuning log: none of its 2 lines is a record; "
            "expected what tilewright tune MODEL --log LOG writes, or tilewright.tune(func, "
            "log=path). [log-other]"
        )


def test_an_empty_file_beside_one_with_a_cut_line_is_an_empty_log(log: Path) -> None:
    (log.parent / "zero.jsonl").touch()
    log.write_bytes(log.read_bytes()[:-5])
    found = read_log(log.parent)
    assert (len(found.trials), len(found.problems)) == (2, 1)


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError) as refused:
        read_log(tmp_path / "none.jsonl")
    assert str(refused.value) == (
        f"LogError: log: there is no file '{tmp_path}/none.jsonl'; expected a tuning log, or a "
        "folder of them. [log-missing]"
    )


def test_a_log_is_a_file_or_a_folder(tmp_path: Path) -> None:
    """A device and a pipe were opened for writing; of either it was said that there is none."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/zero", str(pipe)):
        for use in (read_log, LogWriter):
            with pytest.raises(LogError) as caught:
                use(path)
            assert str(caught.value) == (
                f"LogError: log: '{path}' is neither a file nor a folder; expected a tuning log, "
                "which is a file or a folder of files. [log-kind]"
            )


def test_a_log_that_cannot_be_read_is_refused(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(LogError) as refused:
        read_log(log)
    assert str(refused.value) == (
        f"LogError: log: '{log}' cannot be read: Permission denied. [log-read]"
    )


def test_a_log_below_a_file_is_refused(log: Path) -> None:
    with pytest.raises(LogError) as refused:
        LogWriter(log / "below.jsonl")
    assert "cannot be written: " in str(refused.value)


RECORDS = [workload(), workload(32), *(trial(n) for n in range(6))]
LOGS = st.lists(st.sampled_from(RECORDS), max_size=8).map(contents)


@given(LOGS, LOGS, LOGS)
def test_merging_is_associative_commutative_and_idempotent(
    a: Contents, b: Contents, c: Contents
) -> None:
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, b) == merge(b, a)
    assert merge(a, a) == merge(a) == merge(merge(a), a)
    assert merge(a, b).by_identity == dict(a.by_identity) | dict(b.by_identity)
