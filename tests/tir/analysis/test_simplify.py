"""tir/analysis/simplify.py: the same object if unchanged, idempotent, equal in value; each rule by
example.
"""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.tir.analysis.linear import Total
from tilewright.tir.analysis.simplify import narrowed, provable, simplify, simplify_stmt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import BOOL, FLOAT32, INT32, INT64, dtype
from tilewright.tir.expr import (
    EQ,
    FALSE,
    LE,
    LT,
    NE,
    TRUE,
    Add,
    And,
    Compare,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
    const,
)
from tilewright.tir.lowered import Broadcast, Ramp
from tilewright.tir.stmt import (
    NOTHING,
    Alloc,
    Block,
    For,
    ForKind,
    If,
    IterKind,
    IterVar,
    LetStmt,
    Seq,
    Stmt,
    Store,
)
from tilewright.tir.text.printer import print_expr, print_stmt

from ..expressions import VARIABLES, booleans, boxes, integers, points, quasi_affine, value

X, Y, Z = VARIABLES
A = Buffer("A", FLOAT32, (64,))
RANGES = {X: (0, 9), Y: (0, 3), Z: (0, 1)}


@given(st.one_of(integers, booleans), boxes(), st.data())
def test_the_simplified_expression_has_the_same_value(
    expr: Expr, ranges: dict[Var, tuple[int, int]], data: st.DataObject
) -> None:
    at = data.draw(points(ranges))
    assert value(simplify(expr, ranges), at) == value(expr, at)


@given(st.one_of(integers, booleans), boxes())
def test_simplify_is_idempotent_and_returns_the_same_object_if_nothing_applies(
    expr: Expr, ranges: dict[Var, tuple[int, int]]
) -> None:
    once = simplify(expr, ranges)
    assert simplify(once, ranges) is once


@given(booleans, boxes(), st.data())
def test_narrowed_ranges_contain_every_point_where_the_condition_holds(
    condition: Expr, ranges: dict[Var, tuple[int, int]], data: st.DataObject
) -> None:
    at = data.draw(points(ranges))
    if value(condition, at):
        for var, (low, high) in narrowed(ranges, condition).items():
            number = at[var] if not isinstance(var, Total) else total_of(var, at)
            assert low is None or low <= number
            assert high is None or number <= high


def total_of(item: Total, at: dict[Var, int]) -> int:
    return sum(c * value(atom, at) for atom, c in item.terms)


@given(integers, booleans, boxes(), st.data())
def test_what_a_condition_tells_is_used_only_where_it_holds(
    expr: Expr, condition: Expr, ranges: dict[Var, tuple[int, int]], data: st.DataObject
) -> None:
    at = data.draw(points(ranges))
    if value(condition, at):
        assert value(simplify(expr, narrowed(ranges, condition)), at) == value(expr, at)


def isl_of(expr: Expr, domain: isl.Set) -> isl.PwAff:
    """An expression as isl's piecewise quasi-affine form on a set of points (x, y, z)."""
    match expr:
        case Var():
            return isl.PwAff(f"{{ [x, y, z] -> [{expr.name}] }}").intersect_domain(domain)
        case Const():
            return isl.PwAff(f"{{ [x, y, z] -> [{expr.value}] }}").intersect_domain(domain)
        case Select(condition, a, b):
            return isl_of(condition, domain).cond(isl_of(a, domain), isl_of(b, domain))
        case FloorDiv(a, Const() as b):
            return isl_of(a, domain).scale_down_val(isl.Val(int(b.value))).floor()
        case FloorMod(a, Const() as b):
            return isl_of(a, domain).mod_val(isl.Val(int(b.value)))
    a, b = (isl_of(operand, domain) for operand in expr.children())  # type: ignore[arg-type]
    combine = {
        Add: a.add,
        Sub: a.sub,
        Mul: a.mul,
        Min: a.min,
        Max: a.max,
        EQ: lambda other: a.eq_set(other).indicator_function(),
        NE: lambda other: a.ne_set(other).indicator_function(),
        LT: lambda other: a.lt_set(other).indicator_function(),
        LE: lambda other: a.le_set(other).indicator_function(),
    }
    return combine[type(expr)](b)


@settings(max_examples=60)
@given(quasi_affine, boxes())
def test_isl_finds_no_point_of_the_box_where_the_two_differ(
    expr: Expr, ranges: dict[Var, tuple[int, int]]
) -> None:
    limits = " and ".join(f"{low} <= {v.name} <= {high}" for v, (low, high) in ranges.items())
    domain = isl.Set(f"{{ [x, y, z] : {limits} }}")
    one, two = isl_of(expr, domain), isl_of(simplify(expr, ranges), domain)
    assert one.ne_set(two).intersect(domain).is_empty()


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Add(X, Mul(Const(2, INT64), X)), "x * 3"),
        (Sub(Add(X, Y), X), "y"),
        (Add(Sub(X, Const(3, INT64)), Const(3, INT64)), "x"),
        ((X * 4 + Y) // 4, "x"),
        ((X * 4 + Y) % 4, "y"),
        ((X * 4 + Y + 8) // 4, "x + 2"),
        (FloorDiv(X, Const(10, INT64)), "0"),
        (FloorMod(X, Const(10, INT64)), "x"),
        (FloorDiv(FloorDiv(X * 7, Const(2, INT64)), Const(3, INT64)), "x * 7 // 6"),
        ((X * 4 + Y * 2 + Z) // 8, "(x * 2 + y) // 4"),
        ((X * 12 + Y * 5) // 4, "x * 3 + y * 5 // 4"),
        ((Y * 5 + 8) // 4, "y * 5 // 4 + 2"),
        ((X * 6 + 7) % 3, "1"),
        (X // 3 * 3 + X % 3, "x"),
        (Min(X, Y + 9), "x"),
        (Max(X + 4, Y), "x + 4"),
        (LT(X, Const(10, INT64)), "True"),
        (LT(X, Y), "x - y < 0"),
        (LE(Const(10, INT64), X), "False"),
        (LT(Const(4, INT64), X * -1 + 9), "x < 5"),
        (EQ(X, X), "True"),
        (Or(LT(X, Y), FALSE), "x - y < 0"),
        (Or(LT(X, Y), LT(X, Y)), "x - y < 0"),
        (Or(FALSE, LT(X, Y)), "x - y < 0"),
        (And(LT(X, Y), TRUE), "x - y < 0"),
        (And(LT(X, Y), LT(X, Y)), "x - y < 0"),
        (NE(X, Y - 20), "True"),
        (EQ(X + 1, Y), "x - y == (-1)"),
        (And(TRUE, LT(X, Y)), "x - y < 0"),
        (And(LT(X, Y), FALSE), "False"),
        (Or(LT(X, Y), TRUE), "True"),
        (Or(FALSE, FALSE), "False"),
        (Not(Not(LT(X, Y))), "x - y < 0"),
        (Not(FALSE), "True"),
        (Select(LT(X, Const(20, INT64)), X, Y), "x"),
        (Select(LT(X, Const(0, INT64)), X, Y + 0), "y"),
        (Ramp(X, 1, 4) + Broadcast(Y, 4), "ramp(x + y, 1, 4)"),
        (Broadcast(X, 4) + Broadcast(Y, 4), "broadcast(x + y, 4)"),
        (Add(Broadcast(X, 4), Ramp(Y, 2, 4)), "ramp(x + y, 2, 4)"),
    ],
    ids=lambda item: item if isinstance(item, str) else print_expr(item),
)
def test_each_rule(expr: Expr, expected: str) -> None:
    assert print_expr(simplify(expr, RANGES)) == expected


def test_a_variable_of_one_value_is_that_value() -> None:
    assert simplify(X + Y, {X: (3, 3), Y: (0, 4)}) == Y + 3


def test_floats_stay_as_they_are_written() -> None:
    value_of = Load(A, (X,))
    expr = Sub(Add(value_of, value_of), value_of)
    assert simplify(expr, RANGES) is expr


@pytest.mark.parametrize("kind", ["uint8", "int32", "uint64"])
def test_arithmetic_that_may_wrap_around_is_left_alone(kind: str) -> None:
    """0 - 1 < 0 is false for unsigned numbers, 0 < 1 is not."""
    v = Var("v", dtype(kind))
    one, zero = const(1, kind), const(0, kind)
    for expr in (LT(Sub(v, one), zero), Min(Sub(v, one), v), (v * 4 + 4) // const(4, kind)):
        assert simplify(expr) is expr


def test_data_of_type_int64_may_wrap_around_too() -> None:
    data = Load(Buffer("D", INT64, (8,)), (X,))
    expr = LT(Sub(data, const(1, INT64)), const(0, INT64))
    assert simplify(expr, RANGES) is expr


def test_provable_says_what_the_ranges_decide() -> None:
    assert provable(X < 10, RANGES)
    assert not provable(X < 9, RANGES)
    assert not provable(X < 10, {})


# -- statements ------------------------------------------------------------------------------------


def store(index: Expr) -> Store:
    return Store(A, (index,), const(1.0, "float32"))


def block(binding: Expr, predicate: Expr = TRUE, *, padded: bool = False) -> Block:
    v = Var("v")
    iters = (IterVar(v, 10, IterKind.SPATIAL),)
    inside = store(Select(v < 10, v, Const(0, INT64)))
    return Block("A", iters, (binding,), inside, predicate=predicate, family="A", padded=padded)


def loop(var: Var, extent: int, body: Stmt, kind: ForKind = ForKind.SERIAL) -> For:
    return For(var, extent, kind, body)


@pytest.mark.parametrize(
    ("stmt", "expected"),
    [
        (loop(X, 1, store(X + 2)), "A[2] = 1.0"),
        (loop(X, 0, store(X)), "pass"),
        (loop(X, 1, store(X), ForKind.PARALLEL), "for x in parallel(1):\n    A[0] = 1.0"),
        (loop(X, 4, If(X < 4, store(X))), "for x in range(4):\n    A[x] = 1.0"),
        (loop(X, 4, If(X < 0, store(X), store(X + 1))), "for x in range(4):\n    A[x + 1] = 1.0"),
        (If(X < 3, NOTHING, store(X)), "if not x < 3:\n    A[x] = 1.0"),
        (loop(X, 4, If(X < 3, If(X < 2, store(X), NOTHING))), None),
        (Seq((loop(X, 0, store(X)), store(Y))), "A[y] = 1.0"),
        (Alloc(A, loop(X, 0, store(X))), "pass"),
        (LetStmt(Y, X + 0 * X, store(Y)), "y: int64 = x\nA[y] = 1.0"),
        (
            loop(X, 8, block(X + 0, X < 9)),
            'for x in range(8):\n    with block("A", v=spatial(10, x)):\n        A[v] = 1.0',
        ),
        (loop(X, 8, block(X, X < 0)), "pass"),
    ],
    ids=lambda item: "" if item is None or isinstance(item, str) else type(item).__name__,
)
def test_statements_lose_what_is_decided(stmt: Stmt, expected: str | None) -> None:
    once = simplify_stmt(stmt)
    if expected is not None:
        assert print_stmt(once) == expected
    assert simplify_stmt(once) is once


def test_a_branch_is_simplified_under_its_condition() -> None:
    stmt = loop(X, 8, If(X < 4, store(Min(X, Const(3, INT64))), store(Max(X, Const(4, INT64)))))
    text = "for x in range(8):\n    if x < 4:\n        A[x] = 1.0\n    else:\n        A[x] = 1.0"
    assert print_stmt(simplify_stmt(stmt)) == text


def test_a_padded_block_may_leave_its_domain_so_its_select_stays() -> None:
    plain = simplify_stmt(loop(X, 12, block(X, X < 10)))
    padded = simplify_stmt(loop(X, 12, block(X, padded=True)))
    assert "select" not in print_stmt(plain)
    assert "select(v < 10, v, 0)" in print_stmt(padded)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ForKind.SERIAL, "for x in range(8):\n    if x < 1:\n        A[0] = 1.0"),
        (ForKind.VECTORIZED, "for x in vectorized(8):\n    if x < 1:\n        A[x] = 1.0"),
    ],
)
def test_a_condition_that_leaves_one_lane_does_not_name_it(kind: ForKind, expected: str) -> None:
    same = loop(X, 8, If(EQ(X, Const(0, INT64)), store(X)), kind)
    assert print_stmt(simplify_stmt(same)) == expected.replace("<", "==").replace("1:", "0:")
    assert print_stmt(simplify_stmt(loop(X, 8, If(X < 1, store(X)), kind))) == expected
    assert ("A[v]" in print_stmt(simplify_stmt(loop(X, 8, block(X, X < 1), kind)))) == (
        kind is ForKind.VECTORIZED
    )


def test_a_store_whose_lanes_are_all_off_disappears() -> None:
    ramp = Ramp(X, 1, 4)
    ones = Broadcast(const(1.0, "float32"), 4)
    on, off = (Broadcast(Const(flag, BOOL), 4) for flag in (True, False))
    assert simplify_stmt(Store(A, (ramp,), ones, off)) == NOTHING
    kept = simplify_stmt(Store(A, (ramp,), ones, on, block="A"))
    assert kept == Store(A, (ramp,), ones)
    assert isinstance(kept, Store)
    assert kept.block == "A"


def test_comparisons_of_vectors_and_floats_are_left_alone() -> None:
    vectors: Compare = LT(Ramp(X, 1, 4), Broadcast(Y, 4))
    floats = LT(Load(A, (X,)), const(0.0, "float32"))
    narrow = LT(Var("n", INT32), const(3, "int32"))
    for expr in (vectors, floats, narrow):
        assert simplify(expr, RANGES) is expr


def test_arithmetic_on_data_is_left_as_written() -> None:
    data = Buffer("A", INT32, (4,))[0]
    four = const(4, INT32)
    for expr in (Sub(Add(data, four), four), Add(data, data), FloorMod(data, const(1, INT32))):
        assert simplify(expr) is expr
    doubled = Not(Not(LT(data, four)))
    assert simplify(doubled) is doubled


def test_a_load_that_stands_in_two_places_stays_one_object() -> None:
    i, a, c = Var("i"), Buffer("A", FLOAT32, (8,)), Buffer("C", FLOAT32, (8,))
    shared = Load(a, (i + 1 - 1,))
    loop = For(i, 8, ForKind.SERIAL, Store(c, (i,), shared * shared))
    made = simplify_stmt(loop)
    assert isinstance(made, For)
    assert isinstance(made.body, Store)
    assert made.body.value == a[i] * a[i]
    assert made.body.value.children()[0] is made.body.value.children()[1]
