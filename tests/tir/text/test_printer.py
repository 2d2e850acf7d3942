"""tir/text/printer.py: the text of each node; names are unique where they are seen."""

from __future__ import annotations

import pytest

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64
from tilewright.tir.expr import (
    EQ,
    LT,
    Add,
    And,
    Call,
    Cast,
    Const,
    Expr,
    FloorDiv,
    Let,
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
from tilewright.tir.intrinsics import EXP
from tilewright.tir.lowered import Broadcast, Fma, Lanes, Ramp, Reinterpret, Shuffle, Vector
from tilewright.tir.stmt import (
    NOTHING,
    Alloc,
    Barrier,
    Block,
    For,
    ForKind,
    If,
    IterKind,
    IterVar,
    LetStmt,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
    Tail,
)
from tilewright.tir.text.printer import Names, identifier, print_expr, print_stmt

X, J, V = Var("i"), Var("j"), Var("v")
A = Buffer("A", FLOAT32, (8, 8))
S = Buffer("S", FLOAT32, ())
ELEMENT = Load(A, (X, J))
STORE = Store(S, (), ELEMENT)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Sub(X, Sub(J, X)), "i - (j - i)"),
        (Sub(Sub(X, J), X), "i - j - i"),
        (Mul(Add(X, J), X), "(i + j) * i"),
        (FloorDiv(Mul(X, J), X), "i * j // i"),
        (Mul(X, FloorDiv(J, X)), "i * (j // i)"),
        (And(Or(X < J, J < X), Not(X < J)), "(i < j or j < i) and not i < j"),
        (EQ(LT(X, J), LT(J, X)), "(i < j) == (j < i)"),
        (Const(-3, INT64), "-3"),
        (const(-3, "int4"), "int4(-3)"),
        (const(-1, "int2"), "int2(-1)"),
        (const(1.5, "float4_e2m1fn"), "float4_e2m1fn(1.5)"),
        (const(0.1, "bfloat16"), "bfloat16(0.100098)"),
        (const(-448, "float8_e4m3fn"), "float8_e4m3fn(-448.0)"),
        (const(float("-inf"), "float8_e5m2"), 'float8_e5m2(float("-inf"))'),
        (Cast(const(2.5, "float16"), FLOAT32), 'cast(float16(2.5), "float32")'),
        (Mul(X, Const(-3, INT64)), "i * (-3)"),
        (Const(True, BOOL), "True"),
        (Const(3, INT32), "int32(3)"),
        (const(0.1, "float32"), "0.1"),
        (const(0.1, "float64"), "float64(0.1)"),
        (const(float("inf"), "float32"), 'float("inf")'),
        (Const(float("-inf"), FLOAT64), 'float64(float("-inf"))'),
        (Const(float("nan"), FLOAT32), 'float("nan")'),
        (Min(X, J), "min(i, j)"),
        (Max(X, J), "max(i, j)"),
        (X & J | X ^ 3, "i & j | i ^ 3"),
        ((X | J) & (J ^ X), "(i | j) & (j ^ i)"),
        (X << J >> 2, "i << j >> 2"),
        (X << (J >> 2), "i << (j >> 2)"),
        ((X + J) << 1, "i + j << 1"),
        (X + (J << 1), "i + (j << 1)"),
        ((X & 1) < J, "i & 1 < j"),
        (X & J * 2, "i & j * 2"),
        (~X, "i ^ (-1)"),
        (Select(X < J, X, J), "select(i < j, i, j)"),
        (Cast(X, FLOAT32), 'cast(i, "float32")'),
        (Reinterpret(ELEMENT, INT32), 'reinterpret(A[i, j], "int32")'),
        (Call(EXP, (ELEMENT,)), "exp(A[i, j])"),
        (Let(V, Add(X, J), Mul(V, V)), "let(v, i + j, v * v)"),
        (Ramp(X, 2, 8), "ramp(i, 2, 8)"),
        (Broadcast(X, 8), "broadcast(i, 8)"),
        (Lanes(Ramp(X, 2, 8), 4, 4), "lanes(ramp(i, 2, 8), 4, 4)"),
        (Vector((ELEMENT, const(1.0, "float32"))), "vector(A[i, j], 1.0)"),
        (Shuffle(V, V, (1, 0)), "shuffle(v, v, 1, 0)"),
        (Fma(ELEMENT, ELEMENT, ELEMENT), "fma(A[i, j], A[i, j], A[i, j])"),
        (Load(S, ()), "S[()]"),
        (
            Load(A, (X, Ramp(J, 1, 4)), Broadcast(X < J, 4), Broadcast(const(0, "float32"), 4)),
            "masked(A[i, ramp(j, 1, 4)], broadcast(i < j, 4), broadcast(0.0, 4))",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_the_text_of_an_expression(expr: Expr, text: str) -> None:
    assert print_expr(expr) == text


BLOCK = Block(
    "A",
    (IterVar(V, 8, IterKind.SPATIAL), IterVar(Var("k"), 4, IterKind.REDUCE)),
    (X, J),
    STORE,
    init=Store(S, (), const(0.0, "float32")),
    predicate=X < 7,
    family="C",
    padded=True,
    recomputed=True,
)


@pytest.mark.parametrize(
    ("stmt", "text"),
    [
        (For(X, 4, ForKind.SERIAL, STORE), "for i in range(4):\n    S[()] = A[i, j]"),
        (
            For(X, 4, ForKind.PARALLEL, STORE, Tail.MASK),
            'for i in parallel(4, tail="mask"):\n    S[()] = A[i, j]',
        ),
        (For(X, 4, ForKind.VECTORIZED, NOTHING), "for i in vectorized(4):\n    pass"),
        (For(X, 4, ForKind.UNROLLED, NOTHING), "for i in unrolled(4):\n    pass"),
        (Seq((STORE, Barrier())), "S[()] = A[i, j]\nbarrier()"),
        (If(X < J, STORE), "if i < j:\n    S[()] = A[i, j]"),
        (If(X < J, STORE, Barrier()), "if i < j:\n    S[()] = A[i, j]\nelse:\n    barrier()"),
        (LetStmt(V, X + J, Store(S, (), ELEMENT)), "v: int64 = i + j\nS[()] = A[i, j]"),
        (Alloc(S, STORE), 'S = alloc(float32[()], "global")\nS[()] = A[i, j]'),
        (Prefetch(A, (X, J), True, 2), 'prefetch(A[i, j], "write", 2)'),
        (Store(S, (), ELEMENT, X < J), "masked(S[()], i < j) = A[i, j]"),
        (
            BLOCK,
            'with block("A", v=spatial(8, i), k=reduce(4, j), family="C", padded=True, '
            "recomputed=True):\n"
            "    where(i < 7)\n"
            "    with init():\n"
            "        S[()] = 0.0\n"
            "    S[()] = A[i, j]",
        ),
        (
            Block("A_in", (), (), STORE, role=Role.COPY, family="A"),
            'with block("A_in", copy="A"):\n    S[()] = A[i, j]',
        ),
    ],
    ids=lambda item: "" if isinstance(item, str) else type(item).__name__,
)
def test_the_text_of_a_statement(stmt: Stmt, text: str) -> None:
    assert print_stmt(stmt) == text


def test_names_are_unique_where_they_are_seen_and_free_again_after_their_scope() -> None:
    outer, inner, later = Var("i"), Var("i"), Var("i")
    nest = Seq(
        (
            For(
                outer,
                2,
                ForKind.SERIAL,
                For(inner, 3, ForKind.SERIAL, Store(A, (outer, inner), ELEMENT)),
            ),
            For(later, 4, ForKind.SERIAL, Store(A, (later, later), Load(S, ()))),
        )
    )
    assert print_stmt(nest) == (
        "for i in range(2):\n"
        "    for i_1 in range(3):\n"
        "        A[i, i_1] = A[i_2, j]\n"
        "for i in range(4):\n"
        "    A[i, i] = S[()]"
    )


def test_a_name_bound_in_the_middle_of_a_sequence_ends_where_its_statement_does() -> None:
    one, two = (Buffer("T", FLOAT32, (1,), "register") for _ in range(2))
    nest = Seq((Alloc(one, NOTHING), Alloc(two, NOTHING)))
    assert print_stmt(nest).splitlines() == [
        'T = alloc(float32[1], "register")',
        "pass",
        "del T",
        'T = alloc(float32[1], "register")',
        "pass",
    ]


def test_a_staged_buffer_names_its_origin() -> None:
    staged = Buffer("A_reg", FLOAT32, (8, 8), "register", origin=A)
    assert print_stmt(Alloc(staged, NOTHING)).splitlines()[0] == (
        'A_reg = alloc(float32[8, 8], "register", origin=A)'
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [("x", "x"), ("layer/conv:0", "layer_conv_0"), ("0", "_0"), ("for", "_for"), ("", "_")],
)
def test_any_name_becomes_an_identifier(name: str, expected: str) -> None:
    assert identifier(name) == expected
    assert Names()[Var(name)] == expected
