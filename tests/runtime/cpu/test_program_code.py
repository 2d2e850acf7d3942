from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tilewright import te
from tilewright.driver.build_program import build_program
from tilewright.driver.check.fenced import Fenced, poisoned
from tilewright.runtime.cpu import program_code
from tilewright.runtime.cpu.program_code import NativeProgram, prepare_constants
from tilewright.runtime.machine.host import host_target
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.program import (
    Copy,
    Launch,
    Program,
    ProgramTensor,
    Slice,
    Step,
    actions,
)

from ...tiny_engine import tiny_engine
from ...tiny_program import M, N, constants, image

pytestmark = pytest.mark.needs_cc


def loaded() -> NativeProgram:
    parts = tiny_engine().parts
    assert parts.code.shared is not None
    return NativeProgram(parts.artifact, parts.code.shared, parts.constants)


def test_a_frame_runs_on_the_arrays_that_it_points_to() -> None:
    frame = loaded().frame(1)
    for seed in range(3):
        y = np.zeros((N, M), np.float32)
        frame.point([image(seed)], [y])
        assert frame.run(1) == 1
        assert np.array_equal(y, tiny_engine()(image(seed)))


def test_the_steps_one_by_one_make_a_run() -> None:
    frame = loaded().frame(2)
    y = np.zeros((N, M), np.float32)
    frame.point([image()], [y])
    steps = frame.steps(2)
    assert [step for step, _ in steps] == list(actions(loaded().artifact.body))
    for _, call in steps:
        call({})
    assert np.array_equal(y, tiny_engine()(image()))
    assert sum(isinstance(step, Launch) for step, _ in steps) == 4


def test_constants_that_no_run_reads_are_dropped() -> None:
    parts = tiny_engine().parts
    assert parts.code.shared is not None
    bound = dict(enumerate(constants().values()))
    made = prepare_constants(parts.artifact, parts.code.shared, bound)
    assert [array is not None for array in made] == [
        position in parts.artifact.read for position in range(len(parts.artifact.constants))
    ]
    for ours, theirs in zip(made, parts.constants, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert np.array_equal(ours, theirs)


COPIED = (1, 15, 16, 17, 63, 333, 1001)  # floats: less than a cache line, whole ones, and a rest


def doubled(size: int) -> PrimFunc:
    x = te.placeholder((size,), "float32", name="X")
    return te.func(x, te.compute((size,), lambda i: x[i] * 2.0, name="Y"), name=f"doubled{size}")


def copying() -> Program:
    """For each size an input, its double, and copies of both."""
    body: list[Step] = []
    outputs: list[ProgramTensor] = []
    for number, size in enumerate(COPIED):
        given = Slice("input", number, FLOAT32, (size,))
        made, again, same = (Slice("output", len(outputs) + n, FLOAT32, (size,)) for n in range(3))
        outputs += [
            ProgramTensor(f"{name}{size}", FLOAT32, (size,)) for name in ("y", "again", "same")
        ]
        body += [
            Launch(f"doubled{size}", (given, made)),
            Copy(made, again),
            Copy(given, same),
        ]
    inputs = tuple(ProgramTensor(f"x{size}", FLOAT32, (size,)) for size in COPIED)
    functions = tuple(map(doubled, COPIED))
    return Program("copying", inputs, tuple(outputs), (), functions, tuple(body), 0)


def test_threads_copy_whole_arrays_and_nothing_beside_them() -> None:
    parts = build_program(copying(), {}).parts
    assert parts.code.shared is not None
    frame = NativeProgram(parts.artifact, parts.code.shared, parts.constants).frame(5)
    given = [np.arange(1, size + 1, dtype=np.float32) for size in COPIED]
    for threads in range(1, 6):
        found = [Fenced(poisoned(FLOAT32, x.shape)) for x in given for _ in range(3)]
        frame.point(given, [one.array for one in found])
        assert frame.run(threads) == threads
        assert all(one.intact() for one in found)
        for number, x in enumerate(given):
            made, again, same = (one.array for one in found[3 * number : 3 * number + 3])
            assert np.array_equal(made, 2 * x)
            assert np.array_equal(again, made), (threads, x.size)
            assert np.array_equal(same, x), (threads, x.size)


def dirty(types: Sequence[tuple[tuple[int, ...], np.dtype[np.generic]]]) -> list[np.ndarray]:
    """Arrays that hold no zero."""
    return [np.full(shape, 7, dtype) for shape, dtype in types]


def test_what_is_prepared_begins_as_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tiny_engine().parts
    assert parts.code.shared is not None
    monkeypatch.setattr(
        program_code, "empty_aligned", lambda shape, dtype: np.full(shape, 7, dtype)
    )
    monkeypatch.setattr(program_code, "side_by_side", dirty)
    monkeypatch.setattr(program_code.NativeEntry, "run", lambda *_: 1)  # computes nothing
    bound = dict(enumerate(constants().values()))
    made = prepare_constants(parts.artifact, parts.code.shared, bound)
    pairs = zip(parts.artifact.constants, made, strict=True)
    prepared = [array for parameter, array in pairs if parameter.role == "prepared"]
    assert prepared
    assert not any(array.any() for array in prepared if array is not None)


def test_the_object_is_for_this_machine() -> None:
    assert loaded().artifact.target.isa == host_target().isa
