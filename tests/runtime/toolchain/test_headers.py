from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.runtime.toolchain import headers
from tilewright.runtime.toolchain.cache import Cache
from tilewright.runtime.toolchain.compile import CompileFailed, compile_shared
from tilewright.runtime.toolchain.compilers import Compiler, compile_flags, find_compiler
from tilewright.runtime.toolchain.headers import compiled_form, precompiled_header
from tilewright.runtime.toolchain.library import Library
from tilewright.tir.target.target import Target

AVX2 = Target.parse("c:avx2")
SOURCE = "#include <immintrin.h>\nint answer(void) { return 42; }\n"


@pytest.fixture
def compiler() -> Compiler:
    found = find_compiler()
    if found.family == "zig":
        pytest.skip("zig's compiler keeps its own headers")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("headers")


@pytest.mark.needs_cc
def test_a_header_is_made_once_and_serves_a_compilation(compiler: Compiler, folder: Path) -> None:
    flags = compile_flags(AVX2)
    header = precompiled_header(compiler, flags, SOURCE, Cache(folder))
    assert header is not None
    made = compiled_form(header, compiler)
    before = made.stat().st_mtime_ns
    shared = compile_shared(SOURCE, AVX2, cache=Cache(folder))
    assert Library(shared, name="f").entry("answer", "tw_count")() == 42
    assert precompiled_header(compiler, flags, SOURCE, Cache(folder)) == header
    assert made.stat().st_mtime_ns == before


@pytest.mark.needs_cc
def test_a_header_that_fails_its_hash_is_made_again(compiler: Compiler, folder: Path) -> None:
    flags = compile_flags(AVX2)
    header = precompiled_header(compiler, flags, SOURCE, Cache(folder))
    assert header is not None
    made = compiled_form(header, compiler)
    with made.open("r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    headers._verified.cache_clear()
    assert precompiled_header(compiler, flags, SOURCE, Cache(folder)) == header
    with made.open("rb") as file:
        file.seek(1000)
        assert file.read(6) != b"damage"


@pytest.mark.needs_cc
def test_a_header_that_does_not_serve_is_removed(
    compiler: Compiler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = folder / "bad.h"
    bad.write_text("#error this header does not serve\n")
    compiled_form(bad, compiler).write_text("not a precompiled header")
    monkeypatch.setattr(
        "tilewright.runtime.toolchain.compile.precompiled_header", lambda *arguments: bad
    )
    shared = compile_shared(SOURCE + "\n", AVX2, cache=Cache(None))
    assert Library(shared, name="f").entry("answer", "tw_count")() == 42
    assert not compiled_form(bad, compiler).exists()


@pytest.mark.needs_cc
def test_the_header_hides_no_error_of_the_source(compiler: Compiler, folder: Path) -> None:
    with pytest.raises(CompileFailed, match="missing"):
        compile_shared("#include <immintrin.h>\nint f(void) { return missing; }\n", AVX2)


@pytest.mark.needs_cc
def test_no_header_without_intrinsics_or_without_a_cache(compiler: Compiler, folder: Path) -> None:
    flags = compile_flags(AVX2)
    assert precompiled_header(compiler, flags, "int x;\n", Cache(folder)) is None
    assert precompiled_header(compiler, flags, SOURCE, Cache(None)) is None
    (folder / "file").write_text("")
    assert precompiled_header(compiler, flags, SOURCE, Cache(folder / "file")) is None
