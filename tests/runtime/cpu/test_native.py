from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.artifact import ToldSize
from tilewright.runtime.cpu import native
from tilewright.runtime.cpu.native import NativeCode, NativeEntry
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.toolchain.library import Library, LibraryError
from tilewright.tir.dim import Dim

from ..handwritten import COLUMNS, ROWS, artifact


def load(b: np.ndarray, c: np.ndarray) -> NativeCode:
    made = artifact()
    return NativeCode.load(made, compile_shared(made.source, made.target), {"B": b, "C": c})


@pytest.fixture
def b() -> np.ndarray:
    return np.arange(COLUMNS, dtype=np.float32)


@pytest.mark.needs_cc
@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_code_runs_on_its_constants_and_the_arrays_of_a_call(b: np.ndarray, threads: int) -> None:
    a, y = np.ones((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    load(b, b + 1).run((a, y), threads)
    assert np.array_equal(y, a + 2 * b + (b + 1))


@pytest.mark.needs_cc
def test_constants_are_copied_and_prepared_once(b: np.ndarray) -> None:
    c = b + 1
    code = load(b, c)
    assert set(code.fixed) == {"B_twice", "C"}
    assert np.array_equal(code.fixed["B_twice"], 2 * b)
    c[...] = 0
    assert np.array_equal(code.fixed["C"], b + 1)


@pytest.mark.needs_cc
def test_what_is_prepared_begins_as_zeros(b: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[np.ndarray] = []

    def dirty(types: Sequence[tuple[tuple[int, ...], np.dtype[np.generic]]]) -> list[np.ndarray]:
        made.extend(np.full(shape, 7, dtype) for shape, dtype in types)
        return made

    monkeypatch.setattr(native, "side_by_side", dirty)
    monkeypatch.setattr(native.NativeEntry, "run", lambda *_: 1)  # prepare computes nothing
    assert not load(b, b).fixed["B_twice"].any()
    assert made


@pytest.mark.needs_cc
def test_a_bound_call_sees_what_its_arrays_hold_now(b: np.ndarray) -> None:
    a, y = np.zeros((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    call = load(b, b).bind((a, y), 2)
    for value in (1.0, 2.0):
        a[...] = value
        assert call() in (1, 2)
        assert np.array_equal(y, a + 3 * b)


@pytest.mark.needs_cc
def test_copies_of_constants_take_turns_over_the_same_scratch_memory(
    b: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    class Counted(native.ScratchMemory):
        def __init__(self, size: int) -> None:
            made.append(size)
            super().__init__(size)

    a, y = np.zeros((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    code = load(b, b)
    monkeypatch.setattr(native, "ScratchMemory", Counted)
    call = code.bind((a, y), 1, rotated=3)
    assert made == [192]
    code.fixed["C"][...] = 7  # of the first turn alone
    for plus in (7, b, b, 7):
        call()
        assert np.array_equal(y, a + 2 * b + plus)


@pytest.mark.needs_cc
def test_other_sizes_of_code_share_its_constants_and_their_copies(b: np.ndarray) -> None:
    a, y = np.zeros((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    code = load(b, b)
    other = code.at(code.artifact.at(()))
    calls = [one.bind((a, y), 1, rotated=3) for one in (code, other)]
    assert other.fixed["C"] is code.fixed["C"]
    code.fixed["C"][...] = 7
    for copy in code._copies:
        copy["C"][...] = 9
    for plus in (7, 9, 9, 7):
        for call in calls:
            call()
            assert np.array_equal(y, a + 2 * b + plus)


@pytest.mark.needs_cc
def test_scratch_memory_depends_on_the_threads(b: np.ndarray) -> None:
    assert [load(b, b)._run.workspace_bytes(threads) for threads in (1, 2)] == [192, 320]


@pytest.mark.needs_cc
@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: ())(0)) < 2, reason="one CPU")
def test_two_threads_take_part_where_nobody_else_runs(b: np.ndarray) -> None:
    a = np.zeros((ROWS, COLUMNS), np.float32)
    assert load(b, b).bind((a, a.copy()), 2)() == 2


@pytest.mark.needs_cc
def test_a_size_that_no_array_tells_is_to_be_said() -> None:
    made = artifact()
    library = Library(compile_shared(made.source, made.target), name="rows")
    n = Dim("n", low=1, high=9)
    entry = replace(made.run, sizes=(ToldSize(n, None),))
    with pytest.raises(LibraryError) as caught:
        NativeEntry(library, entry, {})
    assert str(caught.value) == (
        f"LibraryError: library: no array of '{entry.symbol}' tells its size 'n'; expected an "
        "entry at sizes that are known. [library-size]"
    )
    assert NativeEntry(library, entry.at({n: 3}), {}).workspace_bytes(1) >= 0
