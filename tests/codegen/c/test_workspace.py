"""Where allocations live."""

from __future__ import annotations

from tilewright.codegen.c.workspace import plan_workspace
from tilewright.tir.parsing.parser import parse

TEXT = """
def f(A: float32[10], C: output(float32[10])):
    T = alloc(float32[10], "global")
    U = alloc(float64[100], "global")
    V = alloc(float32[3], "thread")
    for i in parallel(10):
        W = alloc(float32[20], "global")
        for j in range(2):
            X = alloc(float32[17], "thread")
            X[0] = A[i]
        for j in range(2):
            Y = alloc(float32[40], "global")
            R = alloc(float32[4], "register")
            Y[0] = A[i]
        W[0] = A[i]
    C[0] = T[0]
"""


def test_the_root_is_shared_and_loops_own_slices_that_they_take_in_turns() -> None:
    plan = plan_workspace(parse(TEXT))
    shared = {buffer.name: offset for buffer, offset in plan.shared.items()}
    own = {buffer.name: offset for buffer, offset in plan.own.items()}
    assert shared == {"T": 0, "U": 64}
    assert own == {"V": 0, "W": 64, "X": 192, "Y": 192}
    assert (plan.shared_bytes, plan.own_bytes) == (64 + 832, 192 + 192)
