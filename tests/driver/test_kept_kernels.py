"""Kernels that are kept: another build lowers, proves and checks what is new alone."""

from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.driver import build_code, kept_kernels, lower, lower_program
from tilewright.driver.build_program import build_program
from tilewright.driver.check.program import KernelCheck, KernelChecker
from tilewright.driver.check.ways import Ways
from tilewright.driver.jobs import ProgramOptions
from tilewright.driver.kept_kernels import KERNELS, CachedKernels
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.toolchain.cache import FOLDER_VARIABLE, user_cache
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.source import as_source
from tilewright.schedule.verdict import UNKNOWN, Verdict
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..tiny_program import M, N, constants, image, tiny

pytestmark = pytest.mark.needs_cc

SCALAR = Target.parse("c:scalar")
ALL_CHECKED = "3 of 3 kernels were lowered and proved by an earlier build, 3 of them checked"
NONE_CHECKED = "3 of 3 kernels were lowered and proved by an earlier build, 0 of them checked"


@pytest.fixture(autouse=True)
def folder(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where kernels are kept; none is."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(shared_folder))
    kernels = shared_folder / "entries" / KERNELS
    shutil.rmtree(kernels, ignore_errors=True)
    return kernels


def built(**options: object) -> Engine:
    how = ProgramOptions(verify="kernels", keep_kernels=True)
    return build_program(tiny(), constants(), SCALAR, options=replace(how, **options))  # type: ignore[arg-type]


def bits(engine: Engine) -> list[bytes]:
    return [array.tobytes() for array in engine.run({"x": image()}).values()]


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that are lowered."""
    names: list[str] = []
    best = Ways.best

    def listen(self: Ways) -> object:
        names.append(self._func.name)
        return best(self)

    monkeypatch.setattr(Ways, "best", listen)
    return names


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions whose kernels are run alone."""
    names: list[str] = []
    check = KernelChecker.check

    def listen(self: KernelChecker, func: PrimFunc, *given: object, **how: object) -> KernelCheck:
        names.append(func.name)
        return check(self, func, *given, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(KernelChecker, "check", listen)
    return names


def test_a_second_build_lowers_proves_and_checks_nothing_and_has_the_same_code(
    lowered: list[str], checked: list[str]
) -> None:
    first = built()
    assert (lowered, checked) == (["mm1", "relu", "add"],) * 2
    assert first.explain().notes == ()
    second = built()
    assert (lowered, checked) == (["mm1", "relu", "add"],) * 2
    assert second.explain().notes == (ALL_CHECKED,)
    assert second.parts.artifact == first.parts.artifact
    assert bits(second) == bits(first)
    for one, other in zip(first.explain().kernels, second.explain().kernels, strict=True):
        assert replace(one, check_seconds=0.0) == other


def test_what_is_new_alone_is_made(lowered: list[str], checked: list[str]) -> None:
    program = tiny()
    built()
    lowered.clear()
    checked.clear()
    x = te.placeholder((N, M), "float32", name="A")
    positive = te.compute((N, M), lambda i, j: te.maximum(x[i, j], 1.0), name="R")
    other = te.func(x, positive, name="relu")
    functions = tuple(other if func.name == "relu" else func for func in program.functions)
    options = ProgramOptions(verify="kernels", keep_kernels=True)
    changed = replace(program, functions=functions)
    engine = build_program(changed, constants(), SCALAR, options=options)
    assert (lowered, checked) == (["relu"],) * 2
    assert engine.explain().notes == (
        "2 of 3 kernels were lowered and proved by an earlier build, 2 of them checked",
    )


def test_what_was_not_run_is_checked_by_the_next_build_that_checks(checked: list[str]) -> None:
    built(verify="off")
    assert not checked
    engine = built()
    assert checked == ["mm1", "relu", "add"]
    assert engine.explain().notes == (NONE_CHECKED,)
    assert built().explain().notes == (ALL_CHECKED,)
    assert checked == ["mm1", "relu", "add"]


def test_what_was_too_large_to_run_is_checked_where_it_is_not() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_code, "unchecked_because", lambda func: "unchecked: too large")
        assert {kernel.check for kernel in built().explain().kernels} == {"unchecked: too large"}
    engine = built()
    assert engine.explain().notes == (NONE_CHECKED,)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}


def test_a_kernel_that_fails_its_check_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = KernelChecker.check

    def fail(self: KernelChecker, func: PrimFunc, *given: object, **how: object) -> KernelCheck:
        found = check(self, func, *given, **how)  # type: ignore[arg-type]
        return KernelCheck("it is wrong.", 9.0, 0.0) if func.name == "mm1" else found

    monkeypatch.setattr(KernelChecker, "check", fail)
    with pytest.raises(build_code.ProgramCheckError):
        built()
    assert not list(folder.glob("*"))


def test_a_kept_kernel_that_turns_out_wrong_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    built(verify="off")
    check, calls = KernelChecker.check, list[str]()

    def fail_once(
        self: KernelChecker, func: PrimFunc, *given: object, **how: object
    ) -> KernelCheck:
        calls.append(func.name)
        if calls.count("mm1") == 1 and func.name == "mm1":
            return KernelCheck("it is wrong.", 9.0, 0.0)
        return check(self, func, *given, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(KernelChecker, "check", fail_once)
    notes = built().explain().notes
    assert notes[0].startswith("kernel 'mm1': rule ")
    assert notes[-1].startswith("2 of 3 kernels were lowered and proved by an earlier build")
    assert calls.count("mm1") == 2


def test_a_kernel_whose_proof_is_undecided_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lower, "prove", lambda *given: Verdict(UNKNOWN, reasons=("no time",)))
    built()
    assert not folder.exists()


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


@pytest.mark.parametrize("damage", [cut, flipped, lambda data: b""])
def test_a_damaged_entry_is_made_anew(
    damage: Callable[[bytes], bytes], folder: Path, lowered: list[str]
) -> None:
    first = built()
    for path in folder.glob("*"):
        path.write_bytes(damage(path.read_bytes()))
    lowered.clear()
    second = built()
    assert lowered == ["mm1", "relu", "add"]
    assert second.explain().notes == ()
    assert bits(second) == bits(first)
    assert built().explain().notes == (ALL_CHECKED,)


@pytest.mark.parametrize("payload", [b"no pickle", pickle.dumps("no kernel"), b""])
def test_an_entry_that_holds_something_else_is_made_anew(
    payload: bytes, folder: Path, lowered: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    built()
    for path in folder.glob("*"):
        user_cache().put(KERNELS, path.name, payload)
    lowered.clear()
    with caplog.at_level(logging.INFO):
        built()
    assert lowered == ["mm1", "relu", "add"]
    assert caplog.text.count("cannot be read and is made anew") == 3
    assert built().explain().notes == (ALL_CHECKED,)


def test_without_leave_nothing_is_kept_or_taken(folder: Path, lowered: list[str]) -> None:
    built(keep_kernels=False)
    assert not folder.exists()
    built()
    lowered.clear()
    assert built(keep_kernels=False).explain().notes == ()
    assert lowered == ["mm1", "relu", "add"]


def test_what_a_source_of_schedules_decides_is_not_kept(folder: Path) -> None:
    source = as_source(lambda func, target: default_schedule(func, target))
    options = ProgramOptions(verify="off", keep_kernels=True)
    build_program(tiny(), constants(), SCALAR, source=source, options=options)
    assert not folder.exists()


def scaled(name: str = "X", factor: float = 2.0) -> PrimFunc:
    x = te.placeholder((64,), "float32", name=name)
    return te.func(x, te.compute((64,), lambda i: x[i] * factor, name="Y"), name="scaled")


def entry(kept: CachedKernels, func: PrimFunc) -> str:
    return kept.entry(func, lower_program.workload_key(func))


def test_the_key_has_all_that_decides_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = entry(CachedKernels(SCALAR, "cc"), scaled())
    others = {
        entry(CachedKernels(Target.parse("c:avx2"), "cc"), scaled()),
        entry(CachedKernels(replace(SCALAR, threads=7), "cc"), scaled()),
        entry(CachedKernels(SCALAR, "another cc"), scaled()),
        entry(CachedKernels(SCALAR, "cc", strict=True), scaled()),
        entry(CachedKernels(SCALAR, "cc", allow=("vpdpbusd",)), scaled()),
        entry(CachedKernels(SCALAR, "cc"), scaled("Z")),
        entry(CachedKernels(SCALAR, "cc"), scaled(factor=3.0)),
    }
    monkeypatch.setattr(kept_kernels, "code_digest", lambda: "other")
    others.add(entry(CachedKernels(SCALAR, "cc"), scaled()))
    monkeypatch.undo()
    assert len(others) == 8
    assert plain not in others
    assert entry(CachedKernels(SCALAR, "cc"), replace(scaled(), name="other")) == plain


def test_builds_at_once_share_a_cache() -> None:
    with ThreadPoolExecutor(4) as pool:
        engines = list(pool.map(lambda _: built(), range(4)))
    assert len({tuple(bits(engine)) for engine in engines}) == 1
    assert built().explain().notes == (ALL_CHECKED,)
    assert np.isfinite(next(iter(engines[0].run({"x": image()}).values()))).all()
