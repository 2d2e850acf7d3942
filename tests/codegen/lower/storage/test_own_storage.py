"""codegen/lower/storage/own_storage.py: each thread its own part of what a block keeps in
registers.
"""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.storage.own_storage import OwnStorage
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.printer import print_stmt


def function(first: str, second: str) -> PrimFunc:
    return parse(
        "def f(A: float32[32], X: output(float32[32])):\n"
        '    for b in bound(2, axis="blockIdx.x"):\n'
        '        C = alloc(float32[16], "register")\n'
        '        for t in bound(4, axis="threadIdx.x"):\n'
        "            for i in unrolled(4):\n"
        f"                C[{first}] = A[b * 16 + t * 4 + i]\n"
        "        for k in range(2):\n"
        '            for u in bound(4, axis="threadIdx.x"):\n'
        "                for j in unrolled(4):\n"
        f"                    X[b * 16 + u * 4 + j] = C[{second}]\n"
    )


def body(func: PrimFunc) -> str:
    return print_stmt(OwnStorage()(func).body)


def test_the_part_of_an_index_that_the_thread_decides_goes() -> None:
    assert body(function("t * 4 + i", "u * 4 + j")) == (
        'for b in bound(2, axis="blockIdx.x"):\n'
        '    C = alloc(float32[4], "register")\n'
        '    for t in bound(4, axis="threadIdx.x"):\n'
        "        for i in unrolled(4):\n"
        "            C[i] = A[b * 16 + t * 4 + i]\n"
        "    for k in range(2):\n"
        '        for u in bound(4, axis="threadIdx.x"):\n'
        "            for j in unrolled(4):\n"
        "                X[b * 16 + u * 4 + j] = C[j]"
    )


def test_what_is_kept_of_a_size_that_a_call_decides_has_a_size_of_its_own() -> None:
    func = parse(
        "def f(n: dim(1, 16), A: float32[n], X: output(float32[n])):\n"
        '    C = alloc(float32[n], "register", origin=X)\n'
        '    for t in bound(4, axis="threadIdx.x"):\n'
        "        for i in unrolled(4):\n"
        "            if t * 4 + i < n:\n"
        "                C[t * 4 + i] = A[t * 4 + i]\n"
        '    for u in bound(4, axis="threadIdx.x"):\n'
        "        for j in unrolled(4):\n"
        "            if u * 4 + j < n:\n"
        "                X[u * 4 + j] = C[u * 4 + j]\n"
    )
    assert body(func).startswith('C = alloc(float32[4], "register", origin=X)\n')


def test_a_thread_that_a_condition_leaves_alone_may_be_a_number() -> None:
    """Where one thread is left, the simplifier may have put its number in place of the variable."""
    func = parse(
        "def f(A: float32[16], X: output(float32[16])):\n"
        '    for b in bound(1, axis="blockIdx.x"):\n'
        '        C = alloc(float32[16], "register")\n'
        '        for t in bound(4, axis="threadIdx.x"):\n'
        "            for i in unrolled(4):\n"
        "                C[t * 4 + i] = A[t * 4 + i]\n"
        '        for u in bound(4, axis="threadIdx.x"):\n'
        "            if u < 3:\n"
        "                X[u] = C[u * 4 + 1]\n"
        "            else:\n"
        "                X[u] = C[14]\n"
    )
    text = body(func)
    assert 'C = alloc(float32[4], "register")' in text
    assert "X[u] = C[1]" in text
    assert "X[u] = C[2]" in text


def test_elements_that_lie_apart_keep_their_distance() -> None:
    text = body(function("i * 4 + t", "j * 4 + u"))
    assert 'C = alloc(float32[13], "register")' in text
    assert "C[i * 4] = A" in text


def refusal(first: str, second: str) -> str:
    with pytest.raises(TargetError) as caught:
        OwnStorage()(function(first, second))
    return str(caught.value)


def test_two_ways_to_deal_out_are_refused() -> None:
    assert refusal("t * 4 + i", "u + 4 * j") == (
        "TargetError: registers: loops of threads deal out 'C' in different ways along dimension "
        "0; expected one way. [own-differs]\n"
        "  Hint: split the loops of all blocks that touch it alike, and bind the same parts."
    )


def test_an_index_that_mixes_thread_and_loop_is_refused() -> None:
    assert refusal("(t * 4 + i) % 8", "u * 4 + j") == (
        "TargetError: registers: threads keep 'C' at (t * 4 + i) % 8, which mixes thread and "
        "serial loops; expected a sum of both. [own-mixed]\n"
        "  Hint: stage it inside of the loops of threads, or keep it in scope 'shared'."
    )


def test_what_stands_inside_of_the_threads_stays() -> None:
    func = parse(
        "def f(A: float32[4], X: output(float32[4])):\n"
        '    for t in bound(4, axis="threadIdx.x"):\n'
        '        C = alloc(float32[1], "register")\n'
        "        C[0] = A[t]\n"
        "        X[t] = C[0]\n"
    )
    assert OwnStorage()(func) is func
