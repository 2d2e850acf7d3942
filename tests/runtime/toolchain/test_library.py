from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.runtime.files.disk import DiskFull
from tilewright.runtime.machine.host import CPU_VARIABLE, host_target
from tilewright.runtime.toolchain.cache import Cache
from tilewright.runtime.toolchain.compile import Units, compile_shared
from tilewright.runtime.toolchain.library import Library, LibraryError, SharedObject
from tilewright.tir.errors import TargetError
from tilewright.tir.target.target import ISAS, Target

SOURCE = "int answer(void) { return 42; }\n"


@pytest.mark.isa
@pytest.mark.needs_cc
def test_an_entry_missing_in_the_object_is_named() -> None:
    library = Library(compile_shared(SOURCE, ISAS["scalar"]), name="matmul")
    with pytest.raises(LibraryError) as caught:
        library.entry("question")
    assert str(caught.value) == (
        "LibraryError: load: the object of 'matmul' has no function 'question'. [library-symbol]"
    )
    assert isinstance(caught.value, OSError)


@pytest.mark.skipif(sys.platform != "linux", reason="the text is that of glibc")
def test_bytes_that_are_no_object_are_refused() -> None:
    with pytest.raises(LibraryError) as caught:
        Library(
            SharedObject(b"not an object " * 100, None, "fake 1.0", 0.0, "scalar"), name="matmul"
        )
    assert str(caught.value) == (
        "LibraryError: load: the object of 'matmul' cannot be loaded: it: invalid ELF header. "
        "[library-load]\n"
        "  Note: it was made by fake 1.0."
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the text is that of glibc")
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "evicted"])
def test_a_refusal_names_the_folders_that_are_mounted_noexec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    def noexec(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(f_flag=os.ST_NOEXEC | os.ST_NODEV)

    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    for folder in (cache, temporary):
        folder.mkdir()
    if kept:
        (cache / "object").write_bytes(b"not an object " * 100)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(os, "statvfs", noexec)
    shared = SharedObject(b"not an object " * 100, cache / "object", "fake 1.0", 0.0, "scalar")
    with pytest.raises(LibraryError) as caught:
        Library(shared, name="matmul")
    places = f"'{cache}' and '{temporary}' are" if kept else f"'{temporary}' is"
    named = "TILEWRIGHT_CACHE or TMPDIR" if kept else "TMPDIR"
    assert str(caught.value) == (
        "LibraryError: load: the object of 'matmul' cannot be loaded: it: invalid ELF header. "
        "[library-load]\n"
        "  Note: it was made by fake 1.0.\n"
        f"  Note: {places} mounted noexec: no code is loaded from there.\n"
        f"  Hint: name a folder that is not mounted noexec in {named}."
    )


_BUILD = """
import tilewright as tw
from tilewright import te

A = te.placeholder((8,), "float32", name="A")
R = te.compute((8,), lambda i: te.relu(A[i]), name="R")
try:
    tw.build(te.func(A, R, name="relu"))
except OSError as error:
    print(error)
"""


@pytest.mark.needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system")
def test_folders_that_are_mounted_noexec_are_told_and_one_that_is_not_will_do(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "noexec"
    folder.mkdir()
    mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o noexec none '{folder}' && mkdir '{folder}/cache' && "
    try:
        able = not subprocess.run([*mounted, mount + "true"], capture_output=True).returncode
    except OSError:
        able = False
    if not able:
        pytest.skip("no file system can be mounted here")

    def built(cache: Path) -> str:
        places = {"TMPDIR": str(folder), "TILEWRIGHT_CACHE": str(cache)}
        run = f'{mount} exec "$0" -c "$1"'
        return subprocess.run(
            [*mounted, run, sys.executable, _BUILD],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **places},
        ).stdout

    refused = built(folder / "cache")
    assert "failed to map segment from shared object. [library-load]" in refused
    assert f"'{folder}' are mounted noexec: no code is loaded from there." in refused
    assert "not mounted noexec in TILEWRIGHT_CACHE or TMPDIR." in refused
    assert built(tmp_path / "cache") == ""


def test_code_that_this_machine_lacks_the_instructions_for_is_refused_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    shared = SharedObject(b"nobody looks", tmp_path / "nowhere", "", 0.0, "avx512+vnni")
    with pytest.raises(TargetError) as caught:
        Library(shared, name="matmul")
    assert str(caught.value) == (
        "TargetError: load: 'matmul' is compiled for avx512+vnni, which this machine lacks; it has "
        "scalar. [load-isa]"
    )


@pytest.mark.isa
@pytest.mark.needs_cc
def test_an_object_says_what_it_was_compiled_for(tmp_path: Path) -> None:
    best, source = host_target(), "int answer(void) { return 7; }\n"
    cache = Cache(tmp_path)
    fresh = compile_shared(source, best, cache=cache)
    kept = compile_shared(source, best, cache=cache)
    assert (fresh.seconds > 0, kept.seconds) == (True, 0)
    assert {fresh.instructions, kept.instructions} == {best.instructions}
    with Units("parts", cache=cache) as units:
        units.add(source, best)
        units.add("int other(void) { return 8; }\n", best.using(()))
        assert units.link().instructions == best.instructions


@pytest.mark.isa
@pytest.mark.needs_cc
def test_an_object_whose_file_is_gone_is_loaded_from_its_bytes(tmp_path: Path) -> None:
    shared = replace(compile_shared(SOURCE, ISAS["scalar"]), path=tmp_path / "evicted")
    assert Library(shared, name="f").entry("answer", "tw_count")() == 42


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("pinned", [False, True])
def test_an_object_is_unloaded_when_nobody_holds_it_unless_pinned(pinned: bool) -> None:
    shared = compile_shared(SOURCE, ISAS["scalar"], flags=(f"-DPINNED={pinned:d}",))
    library = Library(shared, name="f", pinned=pinned)
    assert str(shared.path) in Path("/proc/self/maps").read_text()
    del library
    assert (str(shared.path) in Path("/proc/self/maps").read_text()) is pinned


@pytest.mark.needs_cc
def test_an_object_that_finds_no_room_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written to a file to be loaded, where the cache does not hold it."""
    shared = compile_shared("int nine(void)\n{\n    return 9;\n}\n", Target.parse("c:scalar"))

    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DiskFull, match=r"'nine' needs room in '.*': No space left on device\."):
        Library(replace(shared, path=None), name="nine")
