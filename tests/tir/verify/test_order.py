"""tir/verify/verify.py: which blocks have an ordered variable."""

from __future__ import annotations

import pytest

from tilewright.tir.parsing.parser import parse
from tilewright.tir.verify.verify import Stage, VerificationError, verify

RUNNING = """
def f(X: float32[8], C: output(float32[8])):
    for i in range(8):
        with block("C", v=ordered(8, i)):
            C[v] = select(v < 1, X[v], C[v - 1] + X[v])
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "v=ordered(8, i)",
            "v=spatial(8, i)",
            "block 'C' reads 'C[v - 1]', an element of its own; expected an ordered variable. "
            "[verify-own]",
        ),
        (
            "v=ordered(8, i)",
            "v=ordered(8, i), w=ordered(1, 0)",
            "block 'C' has ordered variables v, w; expected at most one, in a block that computes "
            "and does not reduce. [verify-ordered]",
        ),
        (
            "v=ordered(8, i)",
            "v=ordered(8, i), w=reduce(1, 0)",
            "block 'C' has ordered variables v; expected at most one, in a block that computes and "
            "does not reduce. [verify-ordered]",
        ),
    ],
)
def test_a_block_that_reads_what_it_sets_elsewhere_is_ordered(
    old: str, new: str, problem: str
) -> None:
    verify(parse(RUNNING), Stage.TENSOR)
    with pytest.raises(VerificationError) as caught:
        verify(parse(RUNNING.replace(old, new)), Stage.SCHEDULED)
    assert str(caught.value).splitlines()[0] == f"VerificationError: verify: {problem}"
