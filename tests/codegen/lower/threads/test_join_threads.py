"""codegen/lower/threads/join_threads.py: the text of a tree of threads, and what is refused."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.threads.join_threads import JoinThreads
from tilewright.tir.errors import TargetError
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.printer import print_stmt

SUM = """
def f(P: float32[4, 32], S: output(float32[4])):
    for b in bound(4, axis="blockIdx.x"):
        with block("S_init", vi=spatial(4, b), init="S"):
            S[vi] = 0.0
        for t in bound(32, axis="threadIdx.x"):
            with block("S", vi=spatial(4, b), vk=reduce(32, t)):
                S[vi] = S[vi] + P[vi, vk]
"""


def joined(text: str) -> list[str]:
    return print_stmt(JoinThreads()(parse(text)).body).splitlines()


def test_threads_take_their_values_and_join_them_in_rounds() -> None:
    assert joined(SUM) == [
        'for b in bound(4, axis="blockIdx.x"):',
        '    for t in bound(32, axis="threadIdx.x"):',
        '        S_joined = alloc(float32[()], "register")',
        "        S_joined[()] = P[b, t]",
        "        for turn in range(5, unroll_hint=5):",
        "            S_joined_other: float32 = exchange(S_joined[()], 16 >> turn)",
        "            S_joined[()] = S_joined[()] + S_joined_other",
        "        if t < 1:",
        "            S[b] = S_joined[()]",
    ]


def test_what_a_thread_keeps_is_joined_in_place() -> None:
    text = SUM.replace("S: output(float32[4])", "Y: output(float32[4])").replace(
        '"blockIdx.x"):\n', '"blockIdx.x"):\n        S = alloc(float32[4], "register")\n'
    )
    lines = joined(text)
    assert "        S[b] = P[b, t]" in lines
    assert not any("S_joined[" in line or "if t" in line for line in lines)


def test_groups_of_a_warp_do_the_same() -> None:
    text = (
        SUM.replace("32, t", "8, t")
        .replace("bound(32", "bound(8")
        .replace(
            '        with block("S_init',
            '        for u in bound(64, axis="threadIdx.x"):\n'
            '            with block("Q", vi=spatial(64, u)):\n                Q[vi] = 1.0\n'
            '        with block("S_init',
        )
        .replace("S: output", "Q: output(float32[64]), S: output")
    )
    lines = joined(text)
    assert '    for t in bound(64, axis="threadIdx.x"):' in lines
    assert "        S_joined[()] = P[b, t % 8]" in lines
    assert "        for turn in range(3, unroll_hint=3):" in lines


def test_points_that_do_not_count_bring_nothing() -> None:
    text = SUM.replace(
        "                S[vi] =",
        "                where(b * 32 + t < 100)\n                S[vi] =",
    )
    assert "        S_joined[()] = select(b * 32 + t < 100, P[b, t], 0.0)" in joined(text)


def test_rows_that_are_not_there_are_left_out_as_a_whole() -> None:
    where = "where(b < 3)\n"
    text = SUM.replace("            S[vi] = 0.0", f"            {where}            S[vi] = 0.0")
    text = text.replace(
        "                S[vi] =", f"                {where}                S[vi] ="
    )
    assert joined(text)[1:3] == ["    if b < 3:", '        for t in bound(32, axis="threadIdx.x"):']


def test_values_that_are_joined_together_come_in_the_order_of_the_lanes() -> None:
    text = """
def f(P: float32[32], Q: int32[32], S: output(float32[1]), T: output(int32[1])):
    for b in bound(1, axis="blockIdx.x"):
        with block("S_init", vi=spatial(1, b), init="S"):
            S[vi] = float("-inf")
            T[vi] = int32(9)
        for t in bound(32, axis="threadIdx.x"):
            with block("S", vi=spatial(1, b), vk=reduce(32, t)):
                S[vi] = let(x, P[vk], let(y, Q[vk], select(S[vi] < x, x, S[vi])))
                T[vi] = let(x, P[vk], let(y, Q[vk], select(S[vi] < x, y, T[vi])))
"""
    lines = [line.strip() for line in joined(text)]
    low = "t & 16 >> turn == 0"
    own, new = "S_joined[()]", "S_joined_other"
    assert "S_joined_other: float32 = exchange(S_joined[()], 16 >> turn)" in lines
    assert "T_joined_other: int32 = exchange(T_joined[()], 16 >> turn)" in lines
    (best,) = [line for line in lines if line.startswith("S_joined_new")]
    first, second = f"select({low}, {own}, {new})", f"select({low}, {new}, {own})"
    assert best == f"S_joined_new: float32 = select({first} < {second}, {second}, {first})"
    assert lines[-2:] == ["S[b] = S_joined[()]", "T[b] = T_joined[()]"]


def test_one_value_is_joined_with_nothing() -> None:
    text = SUM.replace("32, t", "1, t").replace("bound(32", "bound(1")
    text = text.replace("vi=spatial(4, b)):", "vi=spatial(4, b)):")
    with pytest.raises(TargetError) as refusal:
        joined(text)
    assert str(refusal.value) == (
        "TargetError: join_threads: the threads of loop 't' of 'f' join their values, but a block "
        "has 1 threads along threadIdx.x; expected whole warps of 32. [join-warp]\n"
        "  Hint: bind loops of 32 iterations to threadIdx.x, and others to threadIdx.y."
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('init="S"', 'init="T"'),
        (
            '            with block("S"',
            '            with block("Q", vi=spatial(32, t)):\n                Q[vi] = 1.0\n'
            '            with block("S"',
        ),
    ],
    ids=["no initialisation", "another block"],
)
def test_a_block_that_does_not_stand_alone_is_refused(old: str, new: str) -> None:
    text = SUM.replace(old, new).replace("S: output", "Q: output(float32[32]), S: output")
    with pytest.raises(TargetError) as refusal:
        joined(text)
    assert str(refusal.value) == (
        "TargetError: join_threads: block 'S' of 'f' reduces over loop 't' of threads; expected it "
        "alone in the loop, right behind its initialisation. [join-alone]\n"
        "  Hint: leave what puts more there out, or bind another loop than 't'."
    )


def test_a_function_without_such_loops_is_left_alone() -> None:
    func = parse(SUM.replace("reduce(32, t)", "reduce(32, 0)"))
    assert str(JoinThreads()(func)) == str(func)
