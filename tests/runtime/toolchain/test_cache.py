from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.runtime.toolchain.cache import Cache, cache_key, user_cache

KEY = cache_key("a key")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def entry(cache: Cache, key: str = KEY) -> Path:
    path = cache.path("things", key)
    assert path is not None
    return path


def test_what_was_put_is_got_by_another_cache_on_the_same_folder(cache: Cache) -> None:
    assert cache.get("things", KEY) is None
    path = cache.put("things", KEY, b"payload")
    assert path == entry(cache)
    assert Cache(cache.folder).get("things", KEY) == b"payload"
    assert path.read_bytes().startswith(b"payload")
    assert [child.name for child in path.parent.iterdir()] == [KEY]


def test_an_empty_payload_is_an_entry(cache: Cache) -> None:
    cache.put("things", KEY, b"")
    assert cache.get("things", KEY) == b""


def test_keys_keep_the_bounds_of_their_parts() -> None:
    assert cache_key("ab", "c") != cache_key("a", "bc")
    assert cache_key("ab") == cache_key(b"ab")
    assert len(cache_key()) == 64


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"q" + data[1:],
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data + b"\0",
    ],
)
def test_a_damaged_entry_is_a_miss_and_is_removed(cache: Cache, damage: object) -> None:
    cache.put("things", KEY, b"payload")
    assert callable(damage)
    entry(cache).write_bytes(damage(entry(cache).read_bytes()))
    assert cache.get("things", KEY) is None
    assert not entry(cache).exists()
    cache.put("things", KEY, b"payload")
    assert cache.get("things", KEY) == b"payload"


def test_an_entry_moved_to_another_key_or_kind_is_a_miss(cache: Cache) -> None:
    cache.put("things", KEY, b"payload")
    other = cache_key("another key")
    entry(cache).rename(entry(cache, other))
    assert cache.get("things", other) is None


def test_the_entries_used_least_recently_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, max_bytes=4000)
    keys = [cache_key(str(number)) for number in range(5)]
    for age, key in enumerate(keys[:4]):
        path = cache.put("things", key, bytes(900))
        assert path is not None
        os.utime(path, ns=(0, age))
    assert cache.get("things", keys[0]) is not None  # used: now the youngest
    cache.put("things", keys[4], bytes(900))
    left = [key for key in keys if entry(cache, key).exists()]
    assert left == [keys[0], keys[3], keys[4]]
    assert cache.info().bytes <= 4000


def test_nobody_evicts_while_another_does(tmp_path: Path) -> None:
    cache = Cache(tmp_path, max_bytes=10)
    holder = (
        "import fcntl, os, sys; d = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR);"
        "fcntl.flock(d, fcntl.LOCK_EX); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        cache.put("things", KEY, bytes(100))
        assert entry(cache).exists()
        other.communicate("\n")
    assert cache.evict() == 1
    assert not entry(cache).exists()


def test_information_counts_and_clearing_empties(cache: Cache) -> None:
    cache.put("things", KEY, b"payload")
    assert cache.private_folder("tool") == Path(cache.folder or "", "tool")
    assert (cache.info().entries, cache.info().bytes) == (1, len(b"payload") + 48)
    cache.clear()
    assert cache.info().entries == 0
    assert cache.get("things", KEY) is None
    assert not Path(cache.folder or "", "tool").exists()


def test_a_cache_that_is_off_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", "off")
    cache = user_cache()
    assert cache.put("things", KEY, b"payload") is None
    assert cache.get("things", KEY) is None
    assert cache.private_folder("tool") is None
    assert cache.info().folder is None


def test_the_folder_and_its_files_are_the_user_s_alone(empty_cache: Path) -> None:
    path = user_cache().put("things", KEY, b"payload")
    assert path is not None
    assert empty_cache.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_size_can_be_set(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_BYTES", "12345")
    assert user_cache().info().max_bytes == 12345


def refused(caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level(logging.WARNING, logger="tilewright.runtime"):
        cache = user_cache()
        assert cache is user_cache()
        assert cache.put("things", KEY, b"payload") is None
        assert cache.get("things", KEY) is None
    assert len(caplog.messages) == 1
    return caplog.messages[0]


def test_a_folder_that_cannot_be_made_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "file" / "cache"))
    assert "cannot be made (Not a directory); going on without" in refused(caplog)


def test_a_folder_that_others_can_write_is_not_used(
    empty_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    empty_cache.mkdir()
    empty_cache.chmod(0o777)
    assert "can be written by others (mode 777; chmod 700)" in refused(caplog)


def test_a_folder_of_somebody_else_is_not_used(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    owner = os.geteuid()
    empty_cache.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert f"belongs to user {owner}, not to {owner + 1}" in refused(caplog)


def test_a_link_is_not_used(empty_cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    (empty_cache.parent / "elsewhere").mkdir(mode=0o700)
    empty_cache.symlink_to(empty_cache.parent / "elsewhere")
    assert "is a link, not a folder" in refused(caplog)


def test_a_folder_that_stops_taking_files_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "entries").write_text("a file stands where the folder should")
    cache = Cache(tmp_path)
    with caplog.at_level(logging.WARNING, logger="tilewright.runtime"):
        assert cache.put("things", KEY, b"payload") is None
        assert cache.put("things", KEY, b"payload") is None
    assert len(caplog.messages) == 1
    assert f"cannot write below '{tmp_path}'" in caplog.messages[0]


def test_two_processes_that_write_one_key_leave_one_whole_entry(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from tilewright.runtime.toolchain.cache import Cache\n"
        "cache = Cache(Path(sys.argv[1]))\n"
        "for _ in range(200):\n"
        "    cache.put('things', 'key', sys.argv[2].encode() * 5000)\n"
        "    assert cache.get('things', 'key') in (b'a' * 5000, b'b' * 5000)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    writers = [subprocess.Popen([*command, letter]) for letter in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert [path.name for path in (tmp_path / "entries" / "things").iterdir()] == ["key"]
