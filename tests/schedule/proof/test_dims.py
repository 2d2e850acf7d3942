"""schedule/proof for sizes that a call decides: nests that are right for some sizes only are
refuted, with such a size among the values of the run.
"""

from __future__ import annotations

import pytest

from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse

DEFINITION = """
def f(n: dim(2, 9), A: float32[n, 3], B: output(float32[n, 3])):
    for i in range(9):
        for j in range(3):
            with block("B", vi=spatial(n, i), vj=spatial(3, j)):
                B[vi, vj] = A[vi, vj]
"""
NEST = """
def f(n: dim(2, 9), A: float32[n, 3], B: output(float32[n, 3])):
    for i in parallel(3):
        if i * 4 < n:
            if i * 4 + 3 < n:
                for ii in range(4):
                    for j in range(3):
                        with block("B", vi=spatial(9, i * 4 + ii), vj=spatial(3, j)):
                            B[vi, vj] = A[vi, vj]
            else:
                for ii in range(4):
                    if i * 4 + ii < n:
                        for j in range(3):
                            with block("B", vi=spatial(9, i * 4 + ii), vj=spatial(3, j)):
                                B[vi, vj] = A[vi, vj]
"""


def canonical() -> PrimFunc:
    return canonical_form(parse(DEFINITION))


@pytest.mark.parametrize("shortcuts", [True, False])
def test_a_nest_is_proved_for_all_sizes_at_once(shortcuts: bool) -> None:
    assert prove(parse(NEST), canonical(), shortcuts=shortcuts).status == "proved"
    assert prove(canonical(), canonical(), shortcuts=shortcuts).status == "proved"


WRONG = {
    ("if i * 4 + 3 < n:", "if i * 4 + 2 < n:"): ("P4", "'A' has shape [n, 3]"),
    ("if i * 4 + ii < n:", "if i * 4 + ii < n + 1:"): ("P4", "'B' has shape [n, 3]"),
    ("if i * 4 + ii < n:", "if i * 4 + ii + 1 < n:"): ("P1", "never runs"),
    ("if i * 4 < n:", "if i * 4 + 1 < n:"): ("P1", "never runs"),
    ("if i * 4 < n:", "if i * 4 < 8:"): ("P1", "never runs"),
    ("for i in parallel(3):", "for i in parallel(2):"): ("P1", "never runs"),
    ("B[vi, vj] = A[vi, vj]", "B[vi, vj] = A[n - 1 - vi, vj]"): ("P2", "needs A["),
    ("B[vi, vj] = A[vi, vj]", "B[n // 2, vj] = A[vi, vj]"): ("P5", "iterations of parallel loop"),
}


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("change", WRONG)
def test_a_nest_that_some_size_breaks_is_refuted(change: tuple[str, str], shortcuts: bool) -> None:
    old, new = change
    assert old in NEST
    verdict = prove(parse(NEST.replace(old, new)), canonical(), shortcuts=shortcuts)
    name, message = WRONG[change]
    assert verdict.status == "refuted"
    found = [f for f in verdict.failures if f.property == name and message in f.message]
    assert found, str(verdict)
    for failure in found:
        for run in failure.iterations:
            assert 2 <= run.values["n"] <= 9


def test_the_run_that_refutes_names_the_size() -> None:
    wrong = NEST.replace("if i * 4 + 3 < n:", "if i * 4 + 2 < n:")
    failure = next(f for f in prove(parse(wrong), canonical()).failures if f.property == "P4")
    values = failure.iterations[0].values
    assert list(values) == ["n", "i", "ii", "j"]
    assert values["i"] * 4 + values["ii"] == values["n"]


def test_what_a_tensor_between_lacks_is_not_read() -> None:
    text = """
def g(n: dim(1, 9), A: float32[n], B: output(float32[n])):
    T = alloc(float32[n], "global")
    for i in range(9):
        with block("T", vi=spatial(n, i)):
            T[vi] = A[vi]
    for i in range(9):
        with block("B", vi=spatial(n, i)):
            B[vi] = T[READ]
"""
    right = canonical_form(parse(text.replace("READ", "n - 1 - vi")))
    assert prove(right, right).status == "proved"
    wrong = canonical_form(parse(text.replace("READ", "8 - vi")))
    verdict = prove(wrong, wrong)
    assert {f.property for f in verdict.failures} == {"P2", "P4"}


def test_sizes_of_other_bounds_are_no_sizes_of_the_nest() -> None:
    other = canonical_form(parse(DEFINITION.replace("dim(2, 9)", "dim(1, 9)")))
    verdict = prove(parse(NEST), other)
    assert verdict.status == "unknown"
    assert verdict.reasons == (
        "the nest and its canonical form have different sizes that a call decides",
    )
