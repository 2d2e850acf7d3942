"""Unrolled loops become copies."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.loops.unroll import Unroll
from tilewright.tir.errors import TargetError
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import Alloc, For
from tilewright.tir.target.target import Target
from tilewright.tir.visit import walk

AVX2 = Target.parse("c:avx2")
TEXT = """
def f(A: float32[2, 6], C: output(float32[2, 6])):
    for i in unrolled(2):
        t = alloc(float32[6], "thread")
        for j in range(6):
            t[j] = A[i, j]
        for j in unrolled(3):
            C[i, j * 2] = t[j * 2]
"""


def test_copies_stand_in_order_with_their_indices_simplified() -> None:
    assert (
        str(Unroll(AVX2)(parse(TEXT)))
        == """\
def f(A: float32[2, 6], C: output(float32[2, 6])):
    t = alloc(float32[6], "thread")
    for j in range(6):
        t[j] = A[0, j]
    C[0, 0] = t[0]
    C[0, 2] = t[2]
    C[0, 4] = t[4]
    del t
    t = alloc(float32[6], "thread")
    for j in range(6):
        t[j] = A[1, j]
    C[1, 0] = t[0]
    C[1, 2] = t[2]
    C[1, 4] = t[4]"""
    )


def test_each_copy_has_variables_and_allocations_of_its_own() -> None:
    body = Unroll(AVX2)(parse(TEXT)).body
    loops = [node.var for node in walk(body) if isinstance(node, For)]
    buffers = [node.buffer for node in walk(body) if isinstance(node, Alloc)]
    assert len(set(loops)) == len(loops) == 2
    assert len(set(buffers)) == len(buffers) == 2


def test_without_vector_registers_the_loop_runs_serially() -> None:
    assert str(Unroll(Target.parse("c:scalar"))(parse(TEXT))) == TEXT.strip().replace(
        "unrolled", "range"
    )


def test_nothing_to_unroll_is_the_same_function() -> None:
    func = parse(TEXT.replace("unrolled", "range"))
    assert Unroll(AVX2)(func) is func


def test_too_many_copies_are_refused() -> None:
    with pytest.raises(TargetError) as caught:
        Unroll(AVX2, max_steps=5)(parse(TEXT))
    assert str(caught.value) == (
        "TargetError: unroll: loops 'i' (2), 'j' (3) make 6 copies of their body; "
        "expected at most 5. [unroll-copies]\n"
        "  Hint: unroll fewer of them, or split one and unroll its inner part only."
    )
