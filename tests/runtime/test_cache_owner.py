"""The cache beside other users, and on what cannot be written: each case in a process of its own,
as root where another user is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_cc
NOBODY = 65534
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may become another user"
)

# begins with the rights of this process, imports all that a build needs, then becomes USER
BEGIN = """
import codecs, logging, os, sys
from pathlib import Path
import numpy as np
import tilewright as tw
from tilewright import te

folder, user = Path(sys.argv[1]), int(sys.argv[2])
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("tilewright.runtime").addHandler(handler)

def built(factor):
    x = te.placeholder((50,), "float32", name="X")
    y = te.compute((50,), lambda i: x[i] * factor, name="Y")
    data = np.arange(50, dtype=np.float32)
    return np.array_equal(tw.build(te.func(x, y, name="scaled"))(data), factor * data)

def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)

os.environ["TILEWRIGHT_CACHE"] = "off"
assert built(2.0) and codecs.lookup("ascii")
"""
REFUSED = """
os.environ["TILEWRIGHT_CACHE"] = str(folder)
become(user)
assert built(3.0) and built(5.0)
print(*said, sep="\\n")
"""
READ_ONLY = """
become(user)
os.environ["TILEWRIGHT_CACHE"] = str(folder)
assert built(3.0)
held = sorted(path for path in folder.rglob("*") if path.is_file())
assert held and not said
for path in [folder, *folder.rglob("*")]:
    path.chmod(0o500 if path.is_dir() else 0o400)
assert built(3.0) and not said
assert built(7.0) and built(11.0)
assert sorted(path for path in folder.rglob("*") if path.is_file()) == held
for path in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
    path.chmod(0o700)
print(*said, sep="\\n")
"""
ON_A_DISK = """
import subprocess
os.environ["TILEWRIGHT_CACHE"] = str(folder)
assert built(3.0) and not said
subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
assert built(3.0) and not said
assert built(7.0) and built(11.0)
print(*said, sep="\\n")
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter; those of pytest are its owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def lines(code: str, folder: Path, user: int) -> list[str]:
    """What a program says as a user."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + code, str(folder), str(user)],
        capture_output=True,
        text=True,
        cwd=folder.parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_root
def test_a_user_builds_beside_the_cache_of_another_and_leaves_it_alone(place: Path) -> None:
    cache = place / "cache"
    cache.mkdir(mode=0o700)
    assert lines(REFUSED, cache, NOBODY) == [
        f"cache: '{cache}' belongs to user 0, not to {NOBODY}; going on without"
    ]
    assert not list(cache.iterdir())


@needs_root
def test_root_loads_no_code_from_the_cache_of_another_user(place: Path) -> None:
    cache = place / "cache"
    cache.mkdir(mode=0o700)
    os.chown(cache, NOBODY, NOBODY)
    assert lines(REFUSED, cache, 0) == [
        f"cache: '{cache}' belongs to user {NOBODY}, not to 0; going on without"
    ]
    assert not list(cache.iterdir())


def test_a_cache_that_cannot_be_written_serves_what_it_holds(place: Path) -> None:
    """Nothing is as good as read-only to root, so it becomes another user."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    cache = place / "cache"
    cache.mkdir(mode=0o700)
    os.chown(cache, user, -1)
    code = READ_ONLY if os.geteuid() == 0 else READ_ONLY.replace("become(user)\n", "")
    (said,) = lines(code, cache, user)
    assert said.startswith(f"cache: cannot write below '{cache}' (")
    assert said.endswith("; going on without")


def test_a_cache_on_a_disk_that_turns_read_only_serves_what_it_holds(place: Path) -> None:
    cache = place / "cache"
    cache.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", str(cache)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no disk may be mounted here")
    try:
        (said,) = lines(ON_A_DISK, cache, 0)
    finally:
        subprocess.run(["umount", str(cache)], check=True)
    assert said.startswith(f"cache: cannot write below '{cache}' (")
    assert "Read-only file system" in said
