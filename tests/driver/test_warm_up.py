"""driver/warm_up.py: what every build needs is made beside the caller, once, where it is kept."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import tilewright as tw
from tests.isas import reads_x86
from tilewright.driver.backends.c import CBackend
from tilewright.driver.resolve_target import resolve_target
from tilewright.driver.warm_up import begin_warm_up
from tilewright.graph.samples import samples
from tilewright.runtime.cpu.pool import pool_object
from tilewright.runtime.toolchain import compile as toolchain
from tilewright.runtime.toolchain.compile import common_header
from tilewright.runtime.toolchain.compilers import find_compiler
from tilewright.runtime.toolchain.headers import compiled_form
from tilewright.tir.target.target import Target

pytestmark = [pytest.mark.needs_cc, reads_x86]

AVX2 = Target.parse("c:avx2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    return tmp_path


def test_the_header_and_the_pool_are_there_afterwards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_compiler().family == "zig":
        pytest.skip("zig's compiler keeps its own headers")
    thread = begin_warm_up(AVX2)
    assert thread is not None
    thread.join()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the compiler runs")

    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr(toolchain._Job, "compile", refuse)
    header = common_header(AVX2)
    assert header is not None
    assert folder in header.parents
    assert compiled_form(header, find_compiler()).exists()
    assert pool_object().seconds == 0.0


def test_a_unit_without_features_uses_the_header_that_was_made(folder: Path) -> None:
    if find_compiler().family == "zig":
        pytest.skip("zig's compiler keeps its own headers")
    thread = begin_warm_up(replace(AVX2, features=("vnni",)))
    assert thread is not None
    thread.join()
    source = "#include <immintrin.h>\nint answer(void) { return 42; }\n"
    with toolchain.Units("answer") as units:
        units.add(source, AVX2)
        units.link()
    assert len(list((folder / "headers").iterdir())) == 1


@pytest.mark.parametrize("name", ["c:scalar", "c:neon", "c:avx2"])
def test_no_header_is_made_that_no_source_includes(folder: Path, name: str) -> None:
    target = Target.parse(name)
    made = common_header(target)
    assert (made is not None) == (name == "c:avx2" and find_compiler().family != "zig")


def test_nothing_is_begun_for_another_kind_of_processor_or_without_a_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert begin_warm_up(Target.parse("c:neon")) is None
    monkeypatch.setenv("TILEWRIGHT_CACHE", "off")
    assert begin_warm_up(AVX2) is None


def test_a_compiler_that_is_missing_is_for_the_build_to_say(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    thread = begin_warm_up(AVX2)
    assert thread is not None
    thread.join()  # pytest makes an error of what a thread raises
    assert not (folder / "headers").exists()


def test_a_compile_begins_it_where_it_builds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Target] = []
    monkeypatch.setattr(CBackend, "warm_up", lambda self, target: asked.append(target))
    for _ in range(2):  # the second one finds the engine
        tw.compile(samples.tiny_model().model)
    assert asked == [resolve_target(None)]
