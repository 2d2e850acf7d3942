"""schedule/proof/flow.py: the write that reaches a read."""

from __future__ import annotations

import pytest

from tilewright.schedule.proof.prove import prove
from tilewright.tir.parsing.parser import parse

TWO_COPIES_OUT = """
def f(X: float32[4], Y: output(float32[()])):
    for k in range(2):
        with block("Y_init", init="Y"):
            where(k < 1)
            Y[()] = 0.0
        A = alloc(float32[()], "register", origin=Y)
        with block("Y_in", copy="Y"):
            A[()] = Y[()]
        with block("Y", vk=reduce(4, k)):
            A[()] = A[()] + X[vk]
        with block("Y_out", copy="Y"):
            Y[()] = A[()]
        del A
        B = alloc(float32[()], "register", origin=Y)
        with block("Y_in_1", copy="Y"):
            where(k < 1)
            B[()] = Y[()]
        with block("Y_1", vk=reduce(4, k + 3), family="Y"):
            where(k < 1)
            B[()] = B[()] + X[3]
        with block("Y_out_1", copy="Y"):
            where(k < 1)
            Y[()] = B[()]
    with block("Y_2", vk=reduce(4, 2), family="Y"):
        Y[()] = Y[()] + X[2]
"""


@pytest.mark.parametrize("shortcuts", [True, False])
def test_the_last_of_two_writes_in_an_iteration_reaches_the_next(shortcuts: bool) -> None:
    """isl's own dataflow named the first, as only the first is written in each iteration."""
    form = parse(
        """
def f(X: float32[4], Y: output(float32[()])):
    for k in range(4):
        with block("Y", vk=reduce(4, k)):
            with init():
                Y[()] = 0.0
            Y[()] = Y[()] + X[vk]
"""
    )
    verdict = prove(parse(TWO_COPIES_OUT), form, shortcuts=shortcuts)
    assert verdict.status == "proved", str(verdict)


BEFORE_IT_IS_STORED = """
def f(X: float32[4], Y: output(float32[4])):
    T = alloc(float32[4], "global")
    for i in range(2):
        with block("T", vi=spatial(4, i + 2)):
            T[vi] = X[vi] * 2.0
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = T[vi] + 1.0
    for i in range(2):
        with block("T_1", vi=spatial(4, i), family="T"):
            T[vi] = X[vi] * 2.0
"""


@pytest.mark.parametrize("shortcuts", [True, False])
def test_what_is_stored_later_only_reaches_no_read(shortcuts: bool) -> None:
    form = parse(
        """
def f(X: float32[4], Y: output(float32[4])):
    T = alloc(float32[4], "global")
    for i in range(4):
        with block("T", vi=spatial(4, i)):
            T[vi] = X[vi] * 2.0
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = T[vi] + 1.0
"""
    )
    verdict = prove(parse(BEFORE_IT_IS_STORED), form, shortcuts=shortcuts)
    assert verdict.status == "refuted"
    assert [failure.message for failure in verdict.failures] == [
        "block 'Y' needs T[0], but nothing was stored to T[0] before"
    ]
