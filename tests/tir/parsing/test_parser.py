"""tir/parsing/parser.py: print, parse, print is the identity; a text that is no program shows its
line.
"""

from __future__ import annotations

import random
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import BOOL, FLOAT32, INT64, dtype
from tilewright.tir.expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    And,
    Cast,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
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
from tilewright.tir.parsing.parser import ParseError, parse, parse_expr, parse_stmt
from tilewright.tir.stmt import NOTHING, Alloc, Seq, Store
from tilewright.tir.te import te
from tilewright.tir.text.equal import difference
from tilewright.tir.text.printer import print_expr, print_stmt

EVERYTHING = """
def every(A: float32[4, 6], W: constant(float64[6]), n: int32[()], C: output(float32[4, 6])):
    T = alloc(float32[4, 6], "global")
    for i in parallel(4):
        for j in vectorized(6, tail="mask"):
            with block("T", vi=spatial(4, i), vj=spatial(6, j)):
                T[vi, vj] = select(A[vi, vj] < 0.0 and not vi == 3, -1.5, A[vi, vj] * 2.0)
    barrier()
    S = alloc(float32[4, 6, 2], "global", align={0: (16, 3), 1: (4, 0)})
    R = alloc(float32[4, 6], "thread", origin=C, align={0: (8, 1)})
    for i in range(2, tail="guard"):
        prefetch(A[i * 2, 0], "read", 2)
        prefetch(A[i, 5 - i], "write", 1)
        for j in unrolled(6, tail="partition"):
            with block("C_init", vi=spatial(4, i), init="C"):
                where(j == 0 or i * 2 + 1 <= 3)
                R[vi, 0] = float("-inf")
            with block("C", vi=spatial(4, i * 2), vk=reduce(6, j), padded=True, recomputed=True):
                where(i < 2)
                with init():
                    R[vi, 0] = 0.0
                R[vi, 0] = max_any(R[vi, 0], fma(T[vi, vk], exp(T[vi, vk]), 0.25))
            with block("C_1", v=spatial(4, (j - i) // 3 % 4), family="C"):
                C[v, (-1) + 1] = cast(W[v] / float64(0.1), "float32") - (R[v, 0] - 1.0)
            with block("R", v=spatial(4, i), copy="C"):
                C[v, j] = R[v, j]
    if 1 < 2:
        C[0, 0] = let(x, A[0, 0] + 1.0, min(x, x * x))
    else:
        pass
"""

LOWERED = """
def lowered(x: float32[21], y: output(float32[21])):
    acc = alloc(float32x8[2], "register")
    for i in range(3):
        on: boolx8 = ramp(i * 8, 1, 8) < broadcast(21, 8)
        acc[1] = masked(x[ramp(i * 8, 1, 8)], on, broadcast(0.0, 8))
        bits: int32x8 = reinterpret(acc[1], "int32x8") + broadcast(int32(-3), 8)
        masked(y[ramp(i * 8, 1, 8)], on) = reinterpret(bits, "float32x8")
        y[i] = lanes(acc[1], 3, 1)
        masked(y[0], i == 0) = masked(x[1], i < 2)
"""


@pytest.mark.parametrize("text", [EVERYTHING, LOWERED], ids=["every", "lowered"])
def test_parse_reads_back_what_the_printer_writes(text: str) -> None:
    func = parse(text)
    assert str(func) == text.strip("\n")
    assert difference(func, parse(str(func))) is None


def test_what_te_makes_is_read_back() -> None:
    a = te.placeholder((5, 7), "float32", name="A")
    b = te.placeholder((7, 3), "float32", name="B", constant=True)
    k = te.reduce_axis(7)
    c = te.compute((5, 3), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((5, 3), lambda i, j: te.tanh(te.maximum(c[i, j], -0.0)), name="D")
    func = te.func(a, b, d, name="layer")
    assert difference(func, parse(str(func))) is None


ROW, COLUMN = Var("i"), Var("j")
X, F = Buffer("X", INT64, (9, 9)), Buffer("F", FLOAT32, (9,))
NAMES = {"i": ROW, "j": COLUMN, "X": X, "F": F}
ARITHMETIC = (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)


def integer(rng: random.Random, depth: int) -> Expr:
    """A random integer expression."""
    if depth == 0 or rng.random() < 0.1:
        number = Const(rng.choice([0, 1, -1, 7, 2**63 - 1, -(2**63)]), INT64)
        return rng.choice([number, ROW, COLUMN])
    a, b = integer(rng, depth - 1), integer(rng, depth - 1)
    v = Var("v")
    return rng.choice(
        [
            rng.choice(ARITHMETIC)(a, b),
            rng.choice(ARITHMETIC)(a, b),
            Load(X, (a, b)),
            Select(condition(rng, depth - 1), a, b),
            Cast(floating(rng, depth - 1), INT64),
            Let(v, a, Add(v, b)),
        ]
    )


def condition(rng: random.Random, depth: int) -> Expr:
    """A random truth value."""
    if depth <= 0 or rng.random() < 0.3:
        kind = rng.choice([EQ, NE, LT, LE])
        return kind(integer(rng, max(0, depth)), integer(rng, max(0, depth)))
    a, b = condition(rng, depth - 1), condition(rng, depth - 1)
    return rng.choice([And(a, b), Or(a, b), Not(a)])


def floating(rng: random.Random, depth: int) -> Expr:
    """A random float expression."""
    if depth <= 0:
        values = [0.0, -0.0, 0.1, -1.5, 3e38, 1e-45, float("inf"), float("-inf"), float("nan")]
        return rng.choice([const(rng.choice(values), FLOAT32), Load(F, (integer(rng, 0),))])
    a, b = floating(rng, depth - 1), floating(rng, depth - 1)
    return rng.choice([Add, Sub, Mul, Div, Min])(a, b)


@given(st.integers(0, 2**32))
def test_every_expression_is_read_back(seed: int) -> None:
    expr = integer(random.Random(seed), 5)
    text = print_expr(expr)
    again = parse_expr(text, NAMES)
    assert difference(expr, again) is None
    assert print_expr(again) == text


STORED = """
def stored(A: bfloat16[4], B: constant(uint4[4]), C: output(float8_e4m3fn[4]), D: output(int4[4])):
    for i in range(4):
        with block("C", v=spatial(4, i)):
            C[v] = select(cast(B[v], "int32") < int32(3), cast(cast(A[v], "float32") * 0.1, \
"float8_e4m3fn"), float8_e4m3fn(-1.5))
    for i in range(4):
        with block("D", v=spatial(4, i)):
            D[v] = cast(cast(C[v], "float32"), "int4")
"""


def test_storage_types_are_read_back() -> None:
    text = STORED.replace("\\\n", "").strip("\n")
    func = parse(text)
    assert str(func) == text
    assert [str(p.dtype) for p in func.parameters] == [
        *("bfloat16", "uint4", "float8_e4m3fn", "int4"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"),
        *("float8_e5m2fnuz", "float4_e2m1fn"),
    ],
)
@pytest.mark.parametrize("value", [0, -0.0, 0.1, -448, 1e-3, float("nan")])
def test_numbers_of_storage_types_keep_their_bits(name: str, value: float) -> None:
    number = const(value, name)
    assert parse_expr(print_expr(number), {}) == number


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "int64", "float32", "float64"])
@pytest.mark.parametrize("value", [0, 1, -1, 0.1, -0.0, float("inf"), float("nan"), 2**63 - 1])
def test_numbers_keep_their_type_and_their_bits(name: str, value: float) -> None:
    kind = dtype(name)
    if not kind.is_float and not float(value).is_integer():
        return
    number = const(value, kind)
    assert parse_expr(print_expr(number), {}) == number


def test_constructors_of_the_parser_do_not_simplify() -> None:
    assert parse_expr("0 + 1 * i", {"i": ROW}) == Add(const(0, INT64), Mul(const(1, INT64), ROW))


def test_a_scope_ends_at_del() -> None:
    text = textwrap.dedent(
        """
        t = alloc(float32[2], "global")
        t[0] = 1.0
        del t
        F[0] = 2.0
        """
    )
    stmt = parse_stmt(text, NAMES)
    assert isinstance(stmt, Seq)
    first, second = stmt.body
    assert isinstance(first, Alloc)
    assert isinstance(first.body, Store)
    assert isinstance(second, Store)


def test_a_former_name_of_a_scope_is_read_as_that_of_today() -> None:
    text = """
def f(Y: output(float32[4])):
    T = alloc(float32[4], "team")
    Y[0] = T[0]
"""
    assert str(parse(text)) == text.strip("\n").replace('"team"', '"shared"')


def test_a_tensor_whose_storage_was_folded_away_is_known_by_name() -> None:
    text = """
        def f(C: output(float32[4])):
            r = alloc(float32[2], "register", origin=T)
            s = alloc(float32[2], "register", origin=T)
            C[0] = 1.0
    """
    func = parse(text)
    first, second = func.allocations
    assert first.origin is second.origin
    assert first.origin is not None
    assert first.origin.name == "T"
    assert str(func) == textwrap.dedent(text).strip()
    assert difference(func, parse(text)) is None
    assert difference(func, parse(text.replace("origin=T", "origin=C", 1))) is not None


def test_an_empty_suite_is_pass() -> None:
    assert parse_stmt("pass", {}) == NOTHING
    assert print_stmt(NOTHING) == "pass"


def test_inner_names_hide_outer_ones_and_come_back() -> None:
    stmt = parse_stmt(
        """
        for i in range(2):
            X[i, i] = 1
        X[i, j] = 2
        """,
        NAMES,
    )
    assert isinstance(stmt, Seq)
    last = stmt.body[1]
    assert isinstance(last, Store)
    assert last.indices == (ROW, COLUMN)


def test_bool_constants_and_bool_buffers_are_read() -> None:
    flags = Buffer("flags", BOOL, (3,))
    stmt = parse_stmt("flags[0] = flags[1] or True", {"flags": flags})
    assert isinstance(stmt, Store)
    assert stmt.value.dtype == BOOL


def program(line: str) -> str:
    head = "def f(A: float32[4], B: output(float32[4])):"
    return f"{head}\n    for i in range(4):\n        {line}"


def shown(line: str) -> str:
    return f"  in line 3:\n      {line}"


SELECTED = "A[i] if i else A[0]"
REFUSED = {
    "B[i] = Aa[i]": ("no buffer 'Aa' is in scope; expected one of 'A', 'B'. [parse-name]"),
    "B[i] = A[j]": "no variable 'j' is in scope; expected one of 'i'. [parse-name]",
    "B[i] = A": "no variable 'A' is in scope; expected one of 'i'. [parse-name]",
    f"B[i] = {SELECTED}": f"'{SELECTED}' is no expression of the language. [parse-expression]",
    "B[i] = A[i] < A[0] < A[1]": (
        "'A[i] < A[0] < A[1]' is no expression of the language. [parse-expression]"
    ),
    "B[i] = sine(A[i])": "'sine(A[i])' is no expression of the language. [parse-expression]",
    "B[i] = select(A[i], 1.0)": "'select' takes 3 arguments, got 2. [parse-arguments]",
    "B[i] = float31(1.0)": (
        "no type 'float31'; expected one of 'float32', 'float16', 'bfloat16', 'bool', 'int8', "
        "'int16', 'int32', 'int64', 'int4', 'int2', 'uint8', 'uint16', 'uint32', 'uint64', "
        "'uint4', 'uint2', 'float64', 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3fnuz', "
        "'float8_e5m2fnuz', 'float4_e2m1fn'. [parse-type]"
    ),
    "B[i] = cast(A[i], float64)": "expected a text in \"\", got 'float64'. [parse-string]",
    "B[i] = broadcast(A[i], i)": "expected an integer, got 'i'. [parse-integer]",
    "B[i] = masked(i, True)": "expected an element, got 'i'. [parse-element]",
    "while True: pass": "'while True:' is no statement of the language. [parse-statement]",
    "t = 3": (
        "'t' is bound to '3'; expected alloc(type[shape], \"scope\"), with origin=tensor and "
        "align={axis: (factor, offset)} where there are such. [parse-alloc]"
    ),
    't = alloc(int8[4, 4], "global", align={0: 16})': (
        "'t' is bound to 'alloc(int8[4, 4], 'global', align={0: 16})'; expected "
        'alloc(type[shape], "scope"), with origin=tensor and align={axis: (factor, offset)} where '
        "there are such. [parse-alloc]"
    ),
    't = alloc(int8[4, 4], "global", align=16)': (
        "'t' is bound to 'alloc(int8[4, 4], 'global', align=16)'; expected "
        'alloc(type[shape], "scope"), with origin=tensor and align={axis: (factor, offset)} where '
        "there are such. [parse-alloc]"
    ),
    't = alloc(4, "global")': (
        "expected a type and shape such as float32[64, 48]. [parse-array-type]"
    ),
    'warp_sum("mma_m16n8k16_f16", (B[i],), rows(A[i]), all(A[i]))': (
        "'all(A[i])' stands for a factor; expected one of elements, rows, columns, of elements of "
        "a buffer. [parse-fragment]"
    ),
    "for j in range(2, 4): pass": (
        "a loop runs over 'range(2, 4)'; expected range(n), parallel(n), vectorized(n), "
        "unrolled(n), bound(n), blockized(n), tensorized(n), with tail= one of guard, "
        "partition, mask. [parse-loop]"
    ),
    "with open(i): pass": (
        "'with open(i)' stands here; "
        'expected with block("name", v=spatial(extent, value), ...). [parse-block]'
    ),
    'with block("B", v=scan(4, i)): pass': (
        "block 'B' has v=scan(4, i); expected v=spatial(extent, value), v=reduce(extent, value), "
        'family, init or copy="name", padded=True or recomputed=True. [parse-iteration]'
    ),
    "B[i] = ": "the text is not Python: invalid syntax. [parse-syntax]",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_that_cannot_be_read_is_shown(line: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(program(line))
    assert str(caught.value) == f"ParseError: parser: {REFUSED[line]}\n{shown(line.strip())}"


@pytest.mark.parametrize("text", ["x = 1", "", "def f(): pass\ndef g(): pass"])
def test_a_text_must_hold_one_function(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    first = text.splitlines()[0] if text else ""
    assert (
        str(caught.value).rstrip()
        == (
            "ParseError: parser: expected one function, 'def name(...):'. [parse-function]\n"
            f"  in line 1:\n      {first}"
        ).rstrip()
    )


def test_a_text_that_should_be_one_expression_is_refused_otherwise() -> None:
    with pytest.raises(ParseError) as caught:
        parse_expr("i = 1", NAMES)
    assert str(caught.value) == (
        "ParseError: parser: expected one expression. [parse-single]\n  in line 1:\n      i = 1"
    )


def test_a_text_that_nests_too_deeply_is_refused() -> None:
    with pytest.raises(ParseError, match=r"the text is not Python: .* \[parse-syntax\]"):
        parse_expr("(" * 1000 + "1" + ")" * 1000, {})


def test_nothing_of_a_text_is_ever_run() -> None:
    with pytest.raises(ParseError, match="no expression"):
        parse_expr("__import__('os').abort()", {})
