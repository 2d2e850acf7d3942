"""How much memory a process may take."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilewright.runtime.machine.memory import process_memory


def test_a_process_may_take_no_more_than_the_machine_has() -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < process_memory() <= machine


@pytest.mark.parametrize(
    ("group", "path", "text", "least"),
    [
        ("0::/a/b\n", "sys/fs/cgroup/a/memory.max", "1000000\n", 1_000_000),
        ("0::/a\n", "sys/fs/cgroup/a/memory.max", "max\n", None),
        ("4:cpu:/c\n1:memory:/box\n", "sys/fs/cgroup/memory/box/memory.limit_in_bytes", "7", 7),
    ],
)
def test_the_limit_of_a_control_group_counts(
    tmp_path: Path, group: str, path: str, text: str, least: int | None
) -> None:
    for name, content in (("proc/self/cgroup", group), (path, text)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    nothing = process_memory(tmp_path / "empty")
    assert process_memory(tmp_path) == (nothing if least is None else least)
