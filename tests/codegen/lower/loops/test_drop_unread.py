"""codegen/lower/loops/drop_unread.py: a piece of a cut loop that holds copies alone."""

from __future__ import annotations

from tilewright.codegen.lower.loops.drop_unread import DropUnread
from tilewright.tir.parsing.parser import parse
from tilewright.tir.verify.verify import Stage, verify

TEXT = """
def f(X: float32[4], Y: output(float32[4])):
    for i in range(4):
        X_local = alloc(float32[4], "thread", origin=X)
        for j in range(1):
            with block("X_local_in", v0=spatial(4, i + j), copy="X"):
                X_local[v0] = X[v0]
        with block("Y", vi=spatial(4, i)):
            Y[vi] = SOURCE[vi] * 2.0
"""


def test_a_copy_that_nobody_reads_goes_with_its_loops() -> None:
    func = parse(TEXT.replace("SOURCE", "X"))
    after = DropUnread()(func)
    verify(after, Stage.NEST)
    assert [block.name for block in after.blocks] == ["Y"]
    assert "range(1)" not in str(after)


def test_a_copy_that_is_read_stays_and_the_function_is_the_same_object() -> None:
    func = parse(TEXT.replace("SOURCE", "X_local"))
    assert DropUnread()(func) is func
