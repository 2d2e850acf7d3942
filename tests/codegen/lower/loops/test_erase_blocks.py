"""Blocks become their bodies."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.loops.erase_blocks import EraseBlocks
from tilewright.tir.errors import InternalError
from tilewright.tir.parsing.parser import parse


def test_bindings_are_substituted_and_predicates_become_conditions() -> None:
    text = """
def f(A: float32[10], C: output(float32[10])):
    for o in range(3):
        for i in range(4):
            with block("C", vi=spatial(10, o * 4 + i)):
                where(o * 4 + i < 10)
                C[vi] = A[vi + 0] + A[(vi * 2) // 2]
"""
    assert (
        str(EraseBlocks()(parse(text)))
        == """\
def f(A: float32[10], C: output(float32[10])):
    for o in range(3):
        for i in range(4):
            if o * 4 + i < 10:
                C[o * 4 + i] = A[o * 4 + i] + A[o * 4 + i]"""
    )


def test_an_init_that_was_not_placed_is_a_defect() -> None:
    text = """
def f(A: float32[10], C: output(float32[1])):
    for k in range(10):
        with block("C", vi=spatial(1, 0), vk=reduce(10, k)):
            with init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vk]
"""
    with pytest.raises(InternalError) as caught:
        EraseBlocks()(parse(text))
    assert str(caught.value) == (
        "InternalError: erase_blocks: block 'C' still has an init; expected it as a block of "
        "its own. "
        "[erase-init]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )


def test_a_value_that_reads_what_another_store_writes_is_computed_before() -> None:
    text = """
def f(X: float32[4], A: output(float32[4]), B: output(float32[4]), C: output(float32[4])):
    for i in range(4):
        with block("A", v=spatial(4, i)):
            A[v] = A[v] + B[v]
            B[v] = A[v] * let(x, X[v], let(unused, 1.0, x))
            C[v] = A[v] + C[v]
"""
    assert (
        str(EraseBlocks()(parse(text)))
        == """\
def f(X: float32[4], A: output(float32[4]), B: output(float32[4]), C: output(float32[4])):
    for i in range(4):
        B_new: float32 = A[i] * let(x, X[i], x)
        C[i] = A[i] + C[i]
        A[i] = A[i] + B[i]
        B[i] = B_new"""
    )
