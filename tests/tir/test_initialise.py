"""tir/initialise.py: where a block runs, said without the loops that its kept axes do not run
over.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.buffer import Buffer
from tilewright.tir.conditions import all_of
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.expr import EQ, LT, TRUE, Expr, Var, compare, const, floordiv, index
from tilewright.tir.func import PrimFunc
from tilewright.tir.initialise import begin_empty, init_nest, outer_condition, spatial_loops
from tilewright.tir.stmt import (
    NOTHING,
    Alloc,
    Block,
    For,
    ForKind,
    IterKind,
    IterVar,
    Parameter,
    Stmt,
    Store,
    Tail,
    seq,
)
from tilewright.tir.text.printer import print_expr, print_stmt

from .expressions import value

X, J, K, L, N = (Var(name) for name in "ijkln")
VI, VJ, VK = (Var(f"v{name}") for name in "ijk")
C = Buffer("C", FLOAT32, (10, 10))
LOOPS = [For(var, 4, ForKind.SERIAL, NOTHING) for var in (X, J, K, L)]


def block(predicate: Expr = TRUE) -> Block:
    """C[i, j] reduced over k; l is a loop of somebody else."""
    iters = (
        IterVar(VI, 10, IterKind.SPATIAL),
        IterVar(VJ, 10, IterKind.SPATIAL),
        IterVar(VK, 10, IterKind.REDUCE),
    )
    store = Store(C, (VI, VJ), const(0.0, "float32"))
    return Block("C", iters, (X, J, K), store, store, predicate, family="C")


def test_spatial_loops_are_those_that_kept_axes_run_over() -> None:
    assert [loop.var for loop in spatial_loops(block(), LOOPS)] == [X, J]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (TRUE, "True"),
        (X < 3, "i < 3"),
        (K < 3, "True"),  # a reduction begins with points that run
        (X * 4 + K < 8, "i * 4 < 8"),  # but not every i: a part of the reduction may run over it
        (L * 2 + K // 2 < 2, "True"),  # but not in every iteration of l, here in the first one
        (N * 2 + K // 2 < 2, "n * 2 < 2"),  # n is a loop further out
        (N * 2 + K < L * 3, "n * 2 < 9"),
        (compare(EQ, N, K), "True"),
        (X * 4 + L < 10, "i * 4 < 10"),  # some iteration of l
        (L < X, "0 < i"),
        (X < L, "i < 3"),
        (compare(EQ, L, index(3)), "True"),
        (all_of(compare(EQ, L, index(2)), X + L < 5), "i < 3"),
        (all_of(L < X, J < L), None),  # two that want other values of l
        (compare(EQ, L * 2, X), None),
    ],
    ids=lambda item: "" if item is None or isinstance(item, str) else print_expr(item),
)
def test_loops_of_others_are_taken_where_the_condition_can_hold(
    predicate: Expr, expected: str | None
) -> None:
    found = outer_condition(block(predicate), LOOPS)
    assert (None if found is None else print_expr(found)) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (K < 3, "True"),
        (floordiv(K, index(2)) * 8 + X < 2, "k // 2 * 8 + i < 2"),
        (K + L < 2, "k + l < 2"),
    ],
    ids=lambda item: item if isinstance(item, str) else print_expr(item),
)
def test_loops_that_stay_around_are_asked_as_they_are(predicate: Expr, expected: str) -> None:
    """Below a stage, in the first iteration of the reduction loops outside of it."""
    found = outer_condition(block(predicate), [])
    assert found is not None
    assert print_expr(found) == expected


conditions = st.lists(
    st.tuples(*(st.integers(-3, 3),) * 3, st.integers(-4, 8)).map(
        lambda c: X * c[0] + J * c[1] + L * c[2] < c[3]
    ),
    max_size=2,
).map(lambda parts: all_of(*parts))


@given(conditions)
def test_what_is_said_without_a_loop_holds_exactly_where_some_iteration_runs(
    predicate: Expr,
) -> None:
    found = outer_condition(block(predicate), LOOPS)
    if found is None:
        return
    for i, j in itertools.product(range(4), range(4)):
        runs = any(value(predicate, {X: i, J: j, L: last}) for last in range(4))
        assert bool(value(found, {X: i, J: j})) is runs


def test_the_initialisation_repeats_the_spatial_loops_with_kinds_tails_and_guards() -> None:
    loops = [
        For(X, 4, ForKind.UNROLLED, NOTHING, Tail.PARTITION),
        LOOPS[2],
        For(J, 4, ForKind.VECTORIZED, NOTHING, Tail.MASK),
    ]
    nest = init_nest(block(all_of(X < 3, K < 2)), loops, L < 1)
    assert print_stmt(nest) == (
        'for i in unrolled(4, tail="partition"):\n'
        '    for j in vectorized(4, tail="mask"):\n'
        '        with block("C_init", vi=spatial(10, i), vj=spatial(10, j), init="C"):\n'
        "            where(i < 3 and l < 1)\n"
        "            C[vi, vj] = 0.0"
    )


def empty(points: int) -> PrimFunc:
    """A reduction below its own outer loop, split loops and an allocation."""
    iters = (IterVar(VI, 3, IterKind.SPATIAL), IterVar(VK, points, IterKind.REDUCE))
    store = Store(C, (VI, index(0)), const(0.0, "float32"))
    bound = compare(LT, X * 2 + J, index(3))
    reduction = Block("C", iters, (X * 2 + J, K * 4 + L), store, store, bound, family="C")
    scratch = Buffer("S", FLOAT32, (4,))
    nest: Stmt = seq(Store(scratch, (K,), const(1.0, "float32")), reduction)
    for var, extent in ((J, 2), (L, 4), (X, 2)):
        nest = For(var, extent, ForKind.SERIAL, nest)
    nest = For(K, points, ForKind.SERIAL, Alloc(scratch, nest))
    return PrimFunc("f", (Parameter(C, "output"),), nest)


def test_a_reduction_over_no_points_is_its_initialisation_over_the_loops_of_its_elements() -> None:
    assert print_stmt(begin_empty(empty(0)).body) == (
        'S = alloc(float32[4], "global")\n'
        "for i in range(2):\n"
        "    for j in range(2):\n"
        '        with block("C_init", vi=spatial(3, i * 2 + j), init="C"):\n'
        "            where(i * 2 + j < 3)\n"
        "            C[vi, 0] = 0.0"
    )


def test_a_function_whose_reductions_have_points_stays_the_same_object() -> None:
    func = empty(1)
    assert begin_empty(func) is func
