"""driver/fuzz/examine.py: which failures are one defect."""

from __future__ import annotations

from tilewright.driver.fuzz.case import Case
from tilewright.driver.fuzz.examine import examine

LOOKED_UP = """
def f(X: float32[4], A: uint8[2], Y: output(float32[2])):
    for i in range(2):
        with block("Y", vi=spatial(2, i)):
            Y[vi] = X[min(cast(A[vi], "int64"), 4)]
"""


def test_a_proof_that_fails_is_named_by_the_properties_that_it_lacks() -> None:
    """A smaller case that leaves a tensor is not like one whose loads are paired wrongly."""
    failure = examine(Case.of(LOOKED_UP, [])).failure
    assert failure is not None
    assert (failure.stage, failure.kind) == ("proof", "unknown P4")
    assert examine(Case.of(LOOKED_UP.replace("4)]", "3)]"), [])).failure is None
