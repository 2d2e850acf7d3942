from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tilewright.runtime.toolchain import compilers
from tilewright.runtime.toolchain.compilers import (
    CPP,
    CompilerNotFound,
    compile_flags,
    find_compiler,
    isa_flags,
    link_flags,
)
from tilewright.tir.target.target import ISAS, Target


def script(folder: Path, name: str, text: str) -> Path:
    """An executable that runs Python text."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_named_compiler_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path, "mine", "print('mine 1.0 clang\\nmore')")
    monkeypatch.setenv("CC", f"{path} --fast")
    found = find_compiler()
    assert found.command == (str(path), "--fast")
    assert (found.version, found.family) == ("mine 1.0 clang", "clang")


def test_names_are_tried_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "cc", "raise SystemExit(1)")
    script(tmp_path, "gcc", "print('gcc 12')")
    script(tmp_path, "clang", "print('clang 19')")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (find_compiler().version, find_compiler().family) == ("gcc 12", "gcc")


def test_the_wheel_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compilers, "find_spec", lambda name: object())
    python = script(tmp_path, "python", "import sys; print('clang', *sys.argv[1:])")
    monkeypatch.setattr(sys, "executable", str(python))
    found = find_compiler()
    assert (found.family, found.version) == ("zig", "clang -m ziglang cc --version")
    assert "-fno-sanitize=all" in found.flags


def test_a_compiler_of_another_language_is_looked_for_by_its_own_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, "cc", "print('gcc 12')")
    script(tmp_path, "clang++", "print('clang 19')")
    monkeypatch.setenv("CC", "cc")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (find_compiler(CPP).version, find_compiler(CPP).language) == ("clang 19", CPP)
    (tmp_path / "clang++").unlink()
    monkeypatch.setattr(compilers, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", f"{tmp_path}:")  # another text, so that it is looked at again
    with pytest.raises(CompilerNotFound) as caught:
        find_compiler(CPP)
    assert str(caught.value) == (
        "CompilerNotFound: compile: no C++ compiler runs here; looked for $CXX (not set), c++, "
        "g++, clang++ and the ziglang wheel. [compiler-missing]\n"
        "  Hint: Debian, Ubuntu: sudo apt install g++\n"
        "  Hint: macOS: xcode-select --install\n"
        "  Hint: anywhere: python -m pip install ziglang"
    )
    assert compile_flags(ISAS["scalar"], CPP)[0] == "-std=c++17"


def test_the_identity_changes_with_the_executable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script(tmp_path, "mine", "print('mine 1.0')")
    monkeypatch.setenv("CC", str(path))
    before = find_compiler()
    os.utime(path, ns=(1, 1))
    monkeypatch.setenv("CC", f" {path}")  # another text, so that it is looked at again
    assert find_compiler().identity != before.identity


def test_a_named_compiler_that_does_not_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -x")
    with pytest.raises(CompilerNotFound) as caught:
        find_compiler()
    assert str(caught.value) == (
        "CompilerNotFound: compile: $CC is 'no-such-compiler -x', which does not run; expected a C "
        "compiler. [compiler-named]\n"
        "  Hint: unset CC to have cc, gcc, clang or the ziglang wheel found."
    )
    assert isinstance(caught.value, OSError)


def test_no_compiler_at_all_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compilers, "find_spec", lambda name: None)
    with pytest.raises(CompilerNotFound) as caught:
        find_compiler()
    assert str(caught.value) == (
        "CompilerNotFound: compile: no C compiler runs here; looked for $CC (not set), cc, gcc, "
        "clang and the ziglang wheel. [compiler-missing]\n"
        "  Hint: Debian, Ubuntu: sudo apt install gcc\n"
        "  Hint: macOS: xcode-select --install\n"
        "  Hint: anywhere: python -m pip install ziglang\n"
        '  Hint: without one: target="python" runs everything in the interpreter, slowly.'
    )


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_no_flag_lets_a_compiler_change_a_result(isa: str) -> None:
    flags = compile_flags(Target.parse(f"c:{isa}"))
    assert {"-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno"} <= set(flags)
    assert not {"-ffast-math", "-Ofast", "-O3", "-march=native", "-funsafe-math-optimizations"} & {
        *flags,
        *link_flags(),
    }


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        (
            "gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
            ("-fno-move-loop-stores", "-fno-predictive-commoning"),
        ),
        ("gcc-14 (GCC) 14.1.1 20240720", ("-fno-move-loop-stores", "-fno-predictive-commoning")),
        ("gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", ()),
        ("cc 12.2.0", ("-fno-move-loop-stores", "-fno-predictive-commoning")),
        ("a compiler", ()),
    ],
)
def test_gcc_is_told_to_leave_sums_in_memory_from_12_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, flags: tuple[str, ...]
) -> None:
    script(tmp_path, "mine", f"print({version!r})")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CC", "mine")
    assert find_compiler().flags == flags


def test_the_flags_name_the_instruction_set_and_no_more() -> None:
    assert isa_flags(Target.parse("c:scalar")) == ()
    assert isa_flags(Target.parse("c:avx2")) == ("-mavx2", "-mfma", "-mf16c")
    wide = isa_flags(Target.parse("c:avx512"))
    assert {"-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma"} <= set(wide)
    assert isa_flags(Target.parse("c:avx512+bf16")) == (*wide, "-mavx512bf16")


def test_warnings_are_errors_only_where_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "-Werror" in compile_flags(ISAS["scalar"])
    monkeypatch.delenv("TILEWRIGHT_WERROR")
    assert "-Werror" not in compile_flags(ISAS["scalar"])
    assert {"-Wall", "-Wextra"} <= set(compile_flags(ISAS["scalar"]))
