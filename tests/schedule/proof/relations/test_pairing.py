"""schedule/proof/relations/pairing.py: what corresponds in two expressions, one of which was
simplified.
"""

from __future__ import annotations

import pytest

from tilewright.schedule.proof.forms.families import read_families
from tilewright.schedule.proof.forms.statements import read_nest
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.proof.relations.pairing import pair
from tilewright.schedule.proof.relations.sets import Sets
from tilewright.tir.parsing.parser import parse


def test_a_select_that_is_decided_and_folded_away_is_no_other_arithmetic() -> None:
    """Where the only point is outside, the select is gone and its operator folded."""
    form = parse("""
def f(X: int32[4], Y: output(int32[1])):
    for i in range(1):
        with block("Y", vi=spatial(1, i)):
            Y[vi] = select(1 <= vi, X[vi], int32(4)) // int32(5)
""")
    folded = parse("""
def f(X: int32[4], Y: output(int32[1])):
    with block("Y", vi=spatial(1, 0)):
        Y[0] = int32(0)
""")
    assert prove(folded, form).status == "proved"
    other = parse(str(folded).replace("int32(0)", "int32(1)"))
    assert prove(other, form).status != "proved"


def test_what_a_folded_select_leaves_may_stand_in_another_order() -> None:
    """A constant that is chosen moves behind the index beside it."""
    form = parse("""
def f(X: int64[4], Y: output(int64[3])):
    for i in range(3):
        with block("Y", vi=spatial(3, i)):
            Y[vi] = select(vi < 2, X[vi], 5) + vi
""")
    folded = parse("""
def f(X: int64[4], Y: output(int64[3])):
    for i in range(2):
        with block("Y", vi=spatial(3, i)):
            Y[vi] = X[vi] + vi
    for i in range(1):
        with block("Y", vi=spatial(3, i + 2)):
            Y[vi] = vi + 5
""")
    assert prove(folded, form).status == "proved"
    for wrong in ("vi + 4", "vi + vi", "5"):
        other = parse(str(folded).replace("vi + 5", wrong))
        assert prove(other, form).status == "refuted", wrong


def test_a_condition_that_is_folded_away_may_stand_behind_loads_at_other_data() -> None:
    """Without 1 <= vi the two loads of X stand one level higher: the first is not the second."""
    form = parse("""
def f(X: bool[6], B: uint8[4], Y: output(float32[3])):
    for i in range(3):
        with block("Y", vi=spatial(3, i)):
            Y[vi] = select(X[vi] and X[min(cast(B[vi], "int64"), 5)] and 1 <= vi, 1.0, 2.0)
""")
    folded = parse("""
def f(X: bool[6], B: uint8[4], Y: output(float32[3])):
    for i in range(1):
        with block("Y", vi=spatial(3, i)):
            Y[vi] = 2.0
    for i in range(2):
        with block("Y", vi=spatial(3, i + 1)):
            Y[vi] = select(X[vi] and X[min(cast(B[vi], "int64"), 5)], 1.0, 2.0)
""")
    verdict = prove(folded, form)
    assert (verdict.status, verdict.assumptions) == ("proved", ())
    for right, wrong in (("X[vi] ", "X[vi + 1] "), ("B[vi]", "B[vi + 1]"), ("i + 1", "i")):
        other = parse(str(folded).replace(right, wrong))
        assert prove(other, form).status == "refuted", wrong


def test_conditions_of_indices_among_data_are_compared_by_where_they_hold() -> None:
    """vk < vi and vk - vi + 1 <= 0 are one condition; vk <= vi is another."""
    form = parse("""
def rank(X: int32[4], Y: output(int32[4])):
    for i in range(4):
        for k in range(4):
            with block("Y", vi=spatial(4, i), vk=reduce(4, k)):
                with init():
                    Y[vi] = int32(0)
                Y[vi] = Y[vi] + cast(X[vi] < X[vk] or X[vk] == X[vi] and vk < vi, "int32")
""")
    for version in ("vk - vi + 1 <= 0", "not vi <= vk"):
        assert prove(parse(str(form).replace("vk < vi", version)), form).status == "proved"
    wrong = parse(str(form).replace("vk < vi", "vk <= vi"))
    (failure,) = prove(wrong, form).failures
    assert str(failure) == (
        "P2: in block 'Y' vk <= vi is computed, where the canonical form has vk < vi; Y(i=3, k=3)"
    )


LETS = """
def f(X: float32[8], Y: output(float32[4])):
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = let(a, X[vi], let(b, X[vi + 4], select(vi % 2 == 0, min(a, b), max(a, b))))
"""


def test_what_a_let_names_is_read_once_whatever_becomes_of_it() -> None:
    """Two loads, not one for each place where its value is used."""
    form = parse(LETS)
    nest = parse(LETS.replace("range(4)", "parallel(4)"))
    families = read_families(form)
    statements = read_nest(nest)
    sets = Sets(1_000_000)
    pairs = pair(statements, families, lambda s, where: sets.empty(sets.domain(s, where)))
    assert sorted(read.element[0].constant for read in pairs.reads) == [0, 4]
    assert all(read.access.where == ((),) for read in pairs.reads)


def test_a_let_is_its_value_where_the_other_side_names_nothing() -> None:
    form = parse(LETS)
    plain = "select(vi % 2 == 0, min(X[vi], X[vi + 4]), max(X[vi], X[vi + 4]))"
    line = next(line for line in LETS.splitlines() if "let(" in line)
    nest = parse(LETS.replace(line, f"            Y[vi] = {plain}"))
    assert prove(nest, form).status == prove(form, nest).status == "proved"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("X[vi + 4]", "X[vi + 3]"),
        ("let(a, X[vi],", "let(a, X[vi + 1],"),
        ("min(a, b), max", "min(a, a), max"),
        ("max(a, b)", "max(b, b)"),
    ],
)
def test_another_value_under_a_name_is_found(right: str, wrong: str) -> None:
    verdict = prove(parse(LETS.replace(right, wrong)), parse(LETS))
    assert verdict.status != "proved"
