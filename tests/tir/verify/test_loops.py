"""tir/verify/loops.py: the axes of loops, and where loops of a grid and barriers stand."""

from __future__ import annotations

import pytest

from tilewright.tir.parsing.parser import parse
from tilewright.tir.verify.verify import Stage, VerificationError, verify


def problem(*loops: str, body: str = "X[0] = 0.0") -> str:
    lines = [f"{'    ' * (n + 1)}for {'ijk'[n]} in {loop}:" for n, loop in enumerate(loops)]
    text = "\n".join(
        ["def f(X: output(float32[4])):", *lines, f"{'    ' * (len(loops) + 1)}{body}"]
    )
    with pytest.raises(VerificationError) as caught:
        verify(parse(text + "\n"), Stage.LOWERED)
    return str(caught.value).split("\n")[0].removeprefix("VerificationError: verify: ")


BLOCKS, THREADS = 'bound(2, axis="blockIdx.x")', 'bound(2, axis="threadIdx.x")'


def test_the_axes_of_loops() -> None:
    assert problem("bound(2)") == (
        "loop 'i' is bound and has axis ''; expected one of a grid on a bound loop, and none "
        "elsewhere. [verify-axis]"
    )
    assert problem('range(2, axis="blockIdx.x")').endswith("[verify-axis]")
    assert problem(THREADS, THREADS) == (
        "loop 'j' stands inside another loop of 'threadIdx.x'. [verify-axis-twice]"
    )


def test_loops_of_blocks_stand_outermost() -> None:
    assert problem("range(2)", BLOCKS) == (
        "loop 'j' of blocks stands inside loop 'i'; expected loops of blocks alone around it. "
        "[verify-blocks]"
    )


def test_barriers_stand_where_all_threads_come() -> None:
    assert problem(BLOCKS, THREADS, body="barrier()") == (
        "a barrier stands inside loop 'j' of threads; expected it where all threads come. "
        "[verify-barrier]"
    )
    text = f"def f(X: output(float32[4])):\n    for i in {BLOCKS}:\n        barrier()\n"
    verify(parse(text), Stage.LOWERED)
