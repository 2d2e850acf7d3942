"""schedule/proof/unfused.py: fused loops are taken apart, and only these."""

from __future__ import annotations

import numpy as np

from tilewright.schedule.proof.unfused import unfused
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.printer import print_stmt

TEXT = """\
def f(A: float32[6, 8], B: output(float32[6, 8])):
    for x in {loop}:
        with block("B", i=spatial(6, {row}), j=spatial(8, {column})):
            B[i, j] = A[i, j] * 2.0
"""


def body(loop: str, row: str, column: str) -> str:
    func = parse(TEXT.format(loop=loop, row=row, column=column))
    found = unfused(func)
    array = np.arange(48, dtype=np.float32).reshape(6, 8)
    assert np.array_equal(interpret(found, array)[0], interpret(func, array)[0])
    return print_stmt(found.body)


def test_a_loop_of_quotients_and_remainders_becomes_its_digits() -> None:
    assert body("parallel(48)", "x // 8", "x % 8") == (
        "for x_0 in parallel(6):\n"
        "    for x_1 in parallel(8):\n"
        "        x: int64 = x_0 * 8 + x_1\n"
        '        with block("B", i=spatial(6, x // 8), j=spatial(8, x % 8)):\n'
        "            B[i, j] = A[i, j] * 2.0"
    )


def test_three_digits() -> None:
    text = body("range(48)", "x // 16 * 2 + x % 2", "x // 2 % 8")
    assert [line.split(" in ")[1] for line in text.splitlines()[:3]] == [
        "range(3):",
        "range(8):",
        "range(2):",
    ]


def test_what_does_not_divide_evenly_stays() -> None:
    func = parse(TEXT.format(loop="range(47)", row="x // 8", column="x % 8"))
    assert unfused(func) is func


SPLIT = """\
def f(A: float32[6, 8], B: output(float32[6, 8])):
    for b in bound(4, axis="blockIdx.x"):
        for t in bound(16, axis="threadIdx.x"):
            with block("B", i=spatial(6, (b * 16 + t) // 8), j=spatial(8, (b * 16 + t) % 8)):
                where({condition})
                B[i, j] = A[i, j] * 2.0
"""


def test_a_number_that_was_split_again_is_joined_up_to_its_limit() -> None:
    func = parse(SPLIT.format(condition="b * 16 + t < 48"))
    assert print_stmt(unfused(func).body) == (
        'for t_0 in bound(6, axis="blockIdx.x"):\n'
        '    for t_1 in bound(8, axis="blockIdx.x"):\n'
        "        b: int64 = (t_0 * 8 + t_1) // 16\n"
        "        t: int64 = (t_0 * 8 + t_1) % 16\n"
        '        with block("B", i=spatial(6, (b * 16 + t) // 8), '
        "j=spatial(8, (b * 16 + t) % 8)):\n"
        "            where(b * 16 + t < 48)\n"
        "            B[i, j] = A[i, j] * 2.0"
    )


def test_the_limit_is_that_of_the_block_that_goes_furthest() -> None:
    text = SPLIT.format(condition="b * 16 + t < 24").replace("B[i, j] = A[i, j] * 2.0\n", "pass\n")
    one, other = text, text.replace('"B", i', '"C", i').replace("< 24", "< 48")
    body = "".join(other.splitlines(keepends=True)[3:])
    both = (one + body).replace("                pass", "                B[i, j] = A[i, j] * 2.0")
    loops = print_stmt(unfused(parse(both)).body).splitlines()[:2]
    assert [line.split("(")[1].split(",")[0] for line in loops] == ["6", "8"]


def test_without_a_limit_all_values_count() -> None:
    loops = print_stmt(unfused(parse(SPLIT.format(condition="b < 3"))).body).splitlines()[:2]
    assert [line.split("(")[1].split(",")[0] for line in loops] == ["8", "8"]


LANES = """\
def f(A: float32[6, 8], B: output(float32[6, 8])):
    for b in bound(4, axis="blockIdx.x"):
        for t in bound(4, axis="threadIdx.x"):
            for v in vectorized(4):
                with block("B", i=spatial(6, ((b*4 + t)*4 + v) // 8), j=spatial(8, ((b*4 + t)*4 + v) % 8)):
                    where((b * 4 + t) * 4 + v < 48)
                    B[i, j] = A[i, j] * 2.0
"""  # noqa: E501


def test_blocks_threads_and_lanes_count_one_number() -> None:
    func = parse(LANES)
    found = unfused(func)
    array = np.arange(48, dtype=np.float32).reshape(6, 8)
    assert np.array_equal(interpret(found, array)[0], interpret(func, array)[0])
    assert print_stmt(found.body).splitlines()[:5] == [
        'for v_0 in bound(6, axis="blockIdx.x"):',
        '    for v_1 in bound(8, axis="blockIdx.x"):',
        "        b: int64 = (v_0 * 8 + v_1) // 16",
        "        t: int64 = (v_0 * 8 + v_1) // 4 % 4",
        "        v: int64 = (v_0 * 8 + v_1) % 4",
    ]
