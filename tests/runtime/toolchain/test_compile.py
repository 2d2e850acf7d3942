from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tilewright.runtime.toolchain import compile as compile_module
from tilewright.runtime.toolchain.cache import Cache, user_cache
from tilewright.runtime.toolchain.compile import (
    CompileFailed,
    CompileTimedOut,
    SharedObject,
    Units,
    assembly,
    compile_shared,
)
from tilewright.runtime.toolchain.compilers import find_compiler
from tilewright.runtime.toolchain.library import Library
from tilewright.tir.target.target import Target

from ...linked import linked

SCALAR = Target.parse("c:scalar")
SOURCE = "int answer(void)\n{\n    return 42;\n}\n"


def answer(library: Library, symbol: str = "answer") -> int:
    return int(library.entry(symbol, "tw_count")())


@pytest.mark.needs_cc
def test_a_source_is_compiled_once_and_then_found(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = compile_shared(SOURCE, SCALAR, cache=cache)
    again = compile_shared(SOURCE, SCALAR, cache=cache)
    assert first.seconds > 0.0 == again.seconds
    assert (first.binary, first.path) == (again.binary, again.path)
    assert answer(Library(again, name="answer")) == 42
    assert first.compiler == find_compiler().version


@pytest.mark.needs_cc
def test_source_flags_and_target_make_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    compile_shared(SOURCE, SCALAR, cache=cache)
    compile_shared(SOURCE, SCALAR, cache=cache, flags=("-DX",))
    compile_shared(SOURCE, Target.parse("c:avx2"), cache=cache)
    compile_shared(SOURCE + "\n", SCALAR, cache=cache)
    monkeypatch.delenv("TILEWRIGHT_WERROR")
    compile_shared(SOURCE, SCALAR, cache=cache)
    assert cache.info().entries == 5


@pytest.mark.needs_cc
def test_a_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = compile_shared(SOURCE, SCALAR, cache=cache)
    assert first.path is not None
    first.path.write_bytes(first.path.read_bytes()[:-100])
    again = compile_shared(SOURCE, SCALAR, cache=cache)
    assert again.seconds > 0
    assert answer(Library(again, name="answer")) == 42


@pytest.mark.needs_cc
def test_without_a_cache_it_works_too() -> None:
    shared = compile_shared(SOURCE, SCALAR, cache=Cache(None))
    assert shared.path is None
    assert answer(Library(shared, name="answer")) == 42


@pytest.mark.needs_cc
def test_several_translation_units_become_one_object() -> None:
    sources = [f"int part{index}(void) {{ return {index}; }}\n" for index in range(3)]
    sources.append("int part2(void);\nint answer(void) { return 40 + part2(); }\n")
    library = Library(linked(sources, SCALAR, name="parts"), name="parts")
    assert [answer(library, f"part{index}") for index in range(3)] == [0, 1, 2]
    assert answer(library) == 42


@pytest.mark.needs_cc
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
@pytest.mark.skipif(sys.platform != "linux", reason="names are those of ELF")
def test_an_object_imports_memory_functions_and_nothing_else(tmp_path: Path) -> None:
    source = (
        "#include <immintrin.h>\n#include <string.h>\n"
        "void copy(char *to, const char *from, unsigned long n)\n"
        "{\n    memcpy(to, from, n);\n    memmove(to + 1, to, n);\n    memset(to, 0, n);\n}\n"
    )
    path = tmp_path / "object.so"
    path.write_bytes(compile_shared(source, Target.parse("c:avx2")).binary)
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True, check=True
    )
    symbols = [line.split() for line in listing.stdout.splitlines()]
    strong = {name.partition("@")[0] for kind, name in symbols if kind == "U"}
    assert strong == {"memcpy", "memmove", "memset"}
    weak = {name.partition("@")[0] for kind, name in symbols if kind == "w"}
    start_up = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
    assert weak <= {*start_up, "__cxa_finalize", "__gmon_start__"}


@pytest.mark.needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="macOS has libm in its C library")
def test_a_source_that_calls_libm_is_refused() -> None:
    if find_compiler().family == "zig":
        pytest.skip("zig links libm by itself")
    source = "float expf(float);\nfloat f(float x)\n{\n    return expf(x);\n}\n"
    with pytest.raises(CompileFailed, match="it calls 'expf', which no library that we link has"):
        compile_shared(source, SCALAR)


@pytest.mark.needs_cc
def test_assembly_is_text_with_the_symbol() -> None:
    assert "answer" in assembly(SOURCE, SCALAR)


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """A compiler that knows its version, says something and fails."""
    path = tmp_path / "fake"
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if '--version' in sys.argv: print('fake 1.0'); raise SystemExit\n"
        f"print({said!r}, file=sys.stderr); raise SystemExit(1)\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))


TAIL = (
    "  Note: the compiler is fake 1.0.\n"
    "  Hint: generated C that a compiler refuses is a defect of tilewright; please report it."
)


def test_a_refused_source_shows_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "f.c: In function 'f':\nf.c:4:12: error: 'x' undeclared\nf.c:9:1: error: more"
    fake(tmp_path, monkeypatch, said)
    with pytest.raises(CompileFailed) as caught:
        compile_shared("\nint f(void)\n{\n    return x;\n}\n", SCALAR, name="f")
    assert str(caught.value) == (
        "CompileFailed: compile: the C compiler refused 'f': 'x' undeclared. [compile-failed]\n"
        "  in f.c:\n"
        "         2 | int f(void)\n"
        "         3 | {\n"
        "    >    4 |     return x;\n"
        "         5 | }\n" + TAIL
    )
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (
            "f.o: undefined reference to `sinf'\nld returned 1",
            "it calls 'sinf', which no library that we link has",
        ),
        (
            "ld.lld: error: undefined symbol: cosf",
            "it calls 'cosf', which no library that we link has",
        ),
        ("one\nout of disk", "out of disk"),
        ("", "it said nothing"),
    ],
)
def test_other_complaints_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, complaint: str
) -> None:
    fake(tmp_path, monkeypatch, said)
    with pytest.raises(CompileFailed) as caught:
        compile_shared(SOURCE, SCALAR, name="f")
    first = f"CompileFailed: compile: the C compiler refused 'f': {complaint}. [compile-failed]\n"
    assert str(caught.value) == first + TAIL


@pytest.mark.parametrize(
    "said",
    [
        "gcc: error: unrecognized command-line option '-mavxvnni'; did you mean '-mavx'?",
        "clang: error: unknown argument: '-mavxvnni'",
        'error: unknown clang option: "-mavxvnni"',
    ],
)
def test_a_compiler_that_is_too_old_for_the_target_is_not_our_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    fake(tmp_path, monkeypatch, said)
    with pytest.raises(CompileFailed) as caught:
        compile_shared(SOURCE, SCALAR, name="f")
    assert str(caught.value).splitlines()[-1] == (
        "  Hint: a newer compiler knows -mavxvnni, which the target's instructions need; or "
        "TILEWRIGHT_CPU hides these: it names the most that is used of this CPU."
    )


@pytest.mark.needs_cc
def test_a_warning_is_an_error_in_our_tests() -> None:
    with pytest.raises(CompileFailed, match="unused"):
        compile_shared("int f(void) { int unused; return 0; }\n", SCALAR)


@pytest.mark.needs_cc
def test_two_processes_that_compile_one_source_leave_one_entry(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from tilewright.runtime.toolchain.cache import Cache\n"
        "from tilewright.runtime.toolchain.compile import compile_shared\n"
        "from tilewright.runtime.toolchain.library import Library\n"
        "from tilewright.tir.target.target import Target\n"
        "cache = Cache(Path(sys.argv[1]))\n"
        "shared = compile_shared(sys.argv[2], Target.parse('c:scalar'), cache=cache)\n"
        "assert Library(shared, name='f').entry('answer', 'tw_count')() == 42\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), SOURCE]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert Cache(tmp_path).info().entries == 1


@pytest.mark.needs_cc
def test_the_user_s_cache_is_the_default() -> None:
    shared = compile_shared(SOURCE, SCALAR)
    folder = user_cache().folder
    assert folder is not None
    assert shared.path is not None
    assert shared.path.is_relative_to(folder)


def units_of(values: list[int], cache: Cache) -> SharedObject:
    with Units("parts", cache=cache) as units:
        for index, number in enumerate(values):
            units.add(f"int part{index}(void) {{ return {number}; }}\n", SCALAR)
        return units.link()


@pytest.mark.needs_cc
def test_units_are_kept_one_by_one_and_only_new_ones_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    compiled: list[str] = []
    compile_one = compile_module._Job.compile

    def counted(job: compile_module._Job, file: Path, *rest: object) -> None:
        compiled.append(file.stem)
        compile_one(job, file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compile_module._Job, "compile", counted)
    first = units_of([1, 2], cache)
    assert sorted(compiled) == ["parts_0", "parts_1"]
    second = units_of([1, 3], cache)
    assert compiled[2:] == ["parts_1"]
    library = Library(second, name="parts")
    assert [answer(library, f"part{index}") for index in range(2)] == [1, 3]
    again = units_of([1, 2], cache)
    assert (again.binary, again.path, again.seconds) == (first.binary, first.path, 0.0)


@pytest.mark.needs_cc
def test_a_unit_that_is_refused_is_an_error_of_link(tmp_path: Path) -> None:
    with Units("parts", cache=Cache(tmp_path)) as units:
        units.add(SOURCE, SCALAR)
        units.add("int wrong(void) { return }\n", SCALAR)
        with pytest.raises(CompileFailed, match="the C compiler refused 'parts_1'"):
            units.link()


@pytest.mark.needs_cc
def test_units_that_are_given_up_leave_no_file(tmp_path: Path) -> None:
    with Units("parts", cache=Cache(tmp_path)) as units:
        units.add(SOURCE, SCALAR)
        folder = units._job.folder
    assert not folder.exists()


@pytest.mark.needs_cc
def test_a_compiler_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    wide = "".join(f"#define P{n + 1} P{n} P{n}\n" for n in range(26))
    source = f"#define P0 x += 1;\n{wide}int f(int x) {{ P26 return x; }}\n"
    with pytest.raises(CompileTimedOut) as caught:
        compile_shared(source, SCALAR, name="f", cache=Cache(tmp_path), seconds=0.5)
    assert str(caught.value) == (
        "CompileTimedOut: compile: the C compiler took longer than 0.5 s. [compile-timed-out]\n"
        f"  Note: the compiler is {find_compiler().version}."
    )


@pytest.mark.needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="what the tools say of a full disk is Linux's")
def test_a_disk_without_room_is_not_a_defect_of_ours(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk; in a process of its own."""
    script = tmp_path / "full.py"
    script.write_text(_FULL_DISK)
    for size in (100, 3000, 9000):
        done = subprocess.run(
            [sys.executable, script, str(size)], capture_output=True, text=True, check=False
        )
        first, *_, last = done.stderr.strip().splitlines()
        assert first.startswith(
            f"DiskFull: compile: 'f' needs room in '{tempfile.gettempdir()}': "
        ), done.stderr
        assert first.endswith(" [compile-disk]")
        assert last == (
            "  Hint: make room there, raise the limit (ulimit -f), or name another folder in "
            "TMPDIR."
        )


_FULL_DISK = f"""
import resource, signal, sys
from tilewright.runtime.toolchain.cache import Cache
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.files.disk import DiskFull
from tilewright.tir.target.target import Target

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
try:
    compile_shared({SOURCE!r}, Target.parse("c:scalar"), name="f",
                   cache=Cache(None))
except DiskFull as error:
    print(error, file=sys.stderr)
"""


def test_what_a_compiler_says_without_a_place_is_quoted() -> None:
    said = "cc1: fatal error: the moon is full\ncompilation terminated.\n"
    error = compile_module._failure(find_compiler(), "f", said)
    assert error.message == "compile: the C compiler refused 'f': the moon is full."
    full = "as: /tmp/a.o: No space left on device\nanother line\n"
    error = compile_module._failure(find_compiler(), "f", full)
    assert error.code == "compile-disk"
    assert error.message.endswith(": as: /tmp/a.o: No space left on device.")
