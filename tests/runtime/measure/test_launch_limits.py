"""runtime/measure/launch_limits.py: what the machine allows each launch."""

from __future__ import annotations

import pytest

from tilewright.runtime.measure import launch_limits as module
from tilewright.runtime.measure.limits import FmaLimit, Limits, ReadLimit
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.program import Launch, Program, ProgramTensor, Slice
from tilewright.tir.te import te

MACHINE = Limits("avx2", (FmaLimit(1, 100.0),), (ReadLimit(1, 1 << 20, 10.0),), 0.0, 0.0)


def test_the_longer_of_two_times_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "limits", lambda: MACHINE)
    x = te.placeholder((1000,), "float32", name="x")
    y = te.compute((1000,), lambda i: x[i] * 2.0, name="y")
    func = te.func(x, y, name="scaled")
    tensor = ProgramTensor("x", FLOAT32, (1000,))
    slices = Slice("input", 0, FLOAT32, (1000,)), Slice("output", 0, FLOAT32, (1000,))
    launch = Launch("scaled", slices)
    program = Program("p", (tensor,), (tensor,), (), (func,), (launch, launch), 0)
    assert module.launch_limits(program, 1) == (pytest.approx(8000 / 10e9),) * 2
