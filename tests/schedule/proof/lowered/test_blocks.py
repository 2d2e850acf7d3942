"""schedule/proof/lowered/blocks.py: blocks that are counted where a guard hides their number."""

from __future__ import annotations

import pytest

from tilewright.schedule.proof.lowered import prove
from tilewright.schedule.verdict import Verdict
from tilewright.tir.parsing.parser import parse
from tilewright.tir.verify.verify import Stage, verify

GUARDED = """\
def f(Y: output(float32[20, 3])):
    for b in bound(3, axis="blockIdx.x"):
        for t in bound(8, axis="threadIdx.x"):
            if b * 8 + t < 20:
                Y[b * 8 + t, 0] = 1.0
            if b * 8 + t < 8:
                Y[t + 12, 1] = 2.0
            if b * 8 + t < 16:
                Y[b * 8 + t + 4, 2] = 3.0
"""


def proved(text: str) -> Verdict:
    func = parse(text)
    verify(func, Stage.LOWERED)
    return prove.prove_lowered(func)


def test_a_guard_that_holds_in_one_block_alone_is_counted() -> None:
    assert proved(GUARDED) == Verdict("proved", operations=0)


def test_isl_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "blocks_keep_apart", lambda accesses: False)
    assert proved(GUARDED).status == "proved"


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("b * 8 + t < 8", "b * 8 + t < 9", "two blocks of loop 'b' write Y[12, 1]"),
        ("Y[b * 8 + t + 4, 2]", "Y[b * 4 + t + 4, 2]", "two blocks of loop 'b' write Y["),
        ("Y[t + 12, 1]", "Y[t + 12, 0]", "two blocks of loop 'b' write Y["),
    ],
)
def test_blocks_that_meet_are_refuted(right: str, wrong: str, message: str) -> None:
    verdict = proved(GUARDED.replace(right, wrong))
    assert verdict.status == "refuted"
    assert any(message in failure.message for failure in verdict.failures), str(verdict)


def test_what_is_too_large_to_count_is_for_isl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.schedule.proof.lowered.blocks.MOST_RUNS", 71)
    verdict = proved(GUARDED)
    assert verdict.status == "proved"
    assert verdict.operations > 0
