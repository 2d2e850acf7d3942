"""tir/te/reducer_law.py: operators that depend on the order of their operands are refused."""

from __future__ import annotations

import pytest

from tilewright.tir.dtype import BOOL, FLOAT32, INT32, INT64
from tilewright.tir.errors import IRError
from tilewright.tir.expr import LE, Expr, compare
from tilewright.tir.reduce import Reducer, Values
from tilewright.tir.te import te
from tilewright.tir.te.reducer_law import check_law
from tilewright.tir.te.reductions import ALL, ANY, ARGMAX, ARGMIN, MAX, MIN, PROD, SUM

X = te.placeholder((4,), "float32", name="X")
PLACE = te.placeholder((4,), "int32", name="I")
K = te.reduce_axis(4, name="k")


@pytest.mark.parametrize("reducer", [SUM, PROD, MIN, MAX], ids=lambda r: r.name)
def test_the_reducers_of_the_language_keep_the_law(reducer: Reducer) -> None:
    for dtype in (FLOAT32, INT32):
        check_law(reducer, (dtype,))


@pytest.mark.parametrize("reducer", [ANY, ALL], ids=lambda r: r.name)
def test_so_do_those_of_truth_values(reducer: Reducer) -> None:
    check_law(reducer, (BOOL,))


@pytest.mark.parametrize("reducer", [ARGMAX, ARGMIN], ids=lambda r: r.name)
def test_so_do_those_with_a_place(reducer: Reducer) -> None:
    for dtype in (FLOAT32, INT32):
        check_law(reducer, (dtype, INT64))


def test_a_difference_depends_on_the_order() -> None:
    with pytest.raises(IRError) as refusal:
        te.comm_reducer(lambda a, b: a - b, lambda t: 0, name="minus")(X[K], axis=K)
    assert str(refusal.value) == (
        "IRError: te.comm_reducer: 'minus' is no reducer: (a, b) and (b, a) give 2.5 and -2.5, for "
        "a = 2.5, b = 0; expected an associative and commutative operator, and an identity that "
        "leaves values alone. [te-reducer-law]\n"
        "  Hint: a schedule takes the points in any order and in parts; where two tie, let "
        "something else than their order decide, as te.argmax does by the place."
    )


def test_a_mean_of_two_depends_on_the_grouping() -> None:
    with pytest.raises(IRError, match=r"\(\(a, b\), c\) and \(a, \(b, c\)\) give"):
        te.comm_reducer(lambda a, b: (a + b) / 2.0, lambda t: 0, name="mean")(X[K], axis=K)


def test_a_wrong_identity_is_seen() -> None:
    with pytest.raises(IRError, match=r"\(identity, a\) and a are"):
        te.comm_reducer(te.maximum, lambda t: 0, name="largest")(X[K], axis=K)


def test_a_place_that_ties_leave_to_the_order_is_seen() -> None:
    def first(a: Values, b: Values) -> tuple[Expr, ...]:
        ahead = compare(LE, b[0], a[0])
        return te.select(ahead, a[0], b[0]), te.select(ahead, a[1], b[1])

    careless = te.comm_reducer(first, lambda t, p: (te.const(-1e30, t), -1), name="argmax")
    with pytest.raises(IRError, match=r"\(a, b\) and \(b, a\) give"):
        careless((X[K], PLACE[K]), axis=K)
