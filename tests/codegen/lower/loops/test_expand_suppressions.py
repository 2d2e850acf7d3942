"""codegen/lower/loops/expand_suppressions.py: the loops of a suppression: text, values on each
instruction set and any number of threads, and what the proof says of faults that are planted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.lower.loops import expand_suppressions
from tilewright.codegen.lower.loops.expand_suppressions import BLOCK, ExpandSuppressions
from tilewright.codegen.lower.lower import lower, lower_to_nest
from tilewright.codegen.lower.threads.place_barriers import SHARED_BOXES, shares_out
from tilewright.driver.check.check import CheckError
from tilewright.driver.check.unproved import ProofError
from tilewright.schedule.proof.lowered.prove import prove_lowered
from tilewright.schedule.verdict import Verdict
from tilewright.tir.expr import Expr
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import Extern
from tilewright.tir.suppression import SUPPRESS, SuppressionFunction
from tilewright.tir.target.target import Target

from ....isas import HERE
from ....tir.test_suppression import boxes, func_of, one_by_one

AVX2 = Target.parse("c:avx2")
MANY = SHARED_BOXES // 2 + 5
FORMS = [(1, 3, 2), (1, 3 * BLOCK + 9, 20), (3, BLOCK, BLOCK), (2, MANY, 33)]


def test_the_loops_are_those_of_blocks_and_of_what_is_kept(
    golden: Callable[[str, str], None],
) -> None:
    head = ", ".join(f"{name}: float32[1, 3]" for name in ("x0", "y0", "x1", "y1", "a"))
    text = f"""
def f({head}, n: int32[1], s: float32[()], K: output(int32[1, 2]), N: output(int32[1])):
    extern("{SUPPRESS}", "{SuppressionFunction().digest}", (x0, y0, x1, y1, a, n, s), (K, N))
"""
    golden("codegen/suppression.txt", str(ExpandSuppressions(AVX2)(parse(text))))


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", ["python", *HERE])
@pytest.mark.parametrize(("rows", "size", "most"), FORMS)
def test_compiled_it_keeps_the_same_boxes(rows: int, size: int, most: int, target: str) -> None:
    kernel = tw.build(func_of(rows, size, most), target)
    assert target == "python" or str(kernel.proof).startswith("proved")
    for seed in range(3):
        arrays = boxes(rows, size, seed)
        for found, expected in zip(kernel(*arrays), one_by_one(arrays, most), strict=True):
            np.testing.assert_array_equal(found, expected)


def proof_of(rows: int, size: int, most: int) -> Verdict:
    return prove_lowered(lower(lower_to_nest(func_of(rows, size, most)), AVX2))


@pytest.mark.parametrize(
    "guard",
    [
        lambda self, place, size: te.cast(place, "int64"),
        lambda self, place, size: te.maximum(te.minimum(te.cast(place, "int64"), size), 0),
        lambda self, place, size: te.maximum(te.minimum(te.cast(place, "int64"), size - 1), -1),
    ],
    ids=["none", "one too many", "from -1 on"],
)
def test_a_guard_that_is_wrong_has_no_proof(
    monkeypatch: pytest.MonkeyPatch, guard: Callable[..., Expr]
) -> None:
    assert proof_of(1, 70, 9).status == "proved"
    monkeypatch.setattr(expand_suppressions._Suppression, "_inside", guard)
    verdict = proof_of(1, 70, 9)
    assert verdict.status == "unknown"
    assert "P4 of 'suppression', lowered" in str(verdict)
    with pytest.raises(ProofError):
        tw.build(func_of(1, 70, 9), AVX2, verify="off")


def test_rows_that_write_the_same_have_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proof_of(2, MANY, 9).status == "proved"
    row_of = expand_suppressions._Suppression._row
    monkeypatch.setattr(
        expand_suppressions._Suppression, "_row", lambda self, row: row_of(self, row // 2)
    )
    verdict = proof_of(2, MANY, 9)
    assert verdict.status != "proved"
    assert "P5 of 'suppression', lowered" in str(verdict)


@pytest.mark.needs_cc
def test_an_overlap_that_is_wrong_is_found_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    overlaps = expand_suppressions._Suppression._overlaps

    def turned(self: object, own: list[Expr], its: tuple[Expr, ...]) -> Expr:
        return overlaps(self, [own[2], own[1], own[0], *own[3:]], its)  # type: ignore[arg-type]

    monkeypatch.setattr(expand_suppressions._Suppression, "_overlaps", turned)
    with pytest.raises(CheckError) as error:
        tw.build(func_of(2, 70, 70), "c:scalar")
    assert "[check-differs]" in str(error.value)


def test_only_many_boxes_in_several_rows_are_shared_out() -> None:
    for shape, expected in (((2, MANY, 3), True), ((2, 70, 3), False), ((1, 2 * MANY, 3), False)):
        (call,) = (block.body for block in func_of(*shape).blocks)
        assert isinstance(call, Extern)
        assert shares_out(call) is expected
