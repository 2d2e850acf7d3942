"""tir/text/equal.py: equality up to names, and the first difference."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32, INT64
from tilewright.tir.expr import Add, Const, Let, Mul, Var, const
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For, ForKind, Store
from tilewright.tir.te import te
from tilewright.tir.text.equal import difference, equal
from tilewright.tir.visit import fresh_copy

TEXT = """
def scale(A: float32[5], B: output(float32[5])):
    T = alloc(float32[5], "global")
    for i in range(5):
        with block("T", vi=spatial(5, i)):
            T[vi] = A[vi] * 2.0
    for i in range(5):
        with block("B", vi=spatial(5, i)):
            B[vi] = T[vi] + 1.0
"""


def test_two_readings_of_one_text_are_equal_and_not_identical() -> None:
    a, b = parse(TEXT), parse(TEXT)
    assert a != b
    assert equal(a, b)


def test_alignment_matters() -> None:
    dense = parse(TEXT.replace("float32[5]", "float32[5, 1]").replace("[vi]", "[vi, 0]"))
    one, other = (
        parse(str(dense).replace('"global")', f'"global", align={{0: ({factor}, 0)}})'))
        for factor in (4, 8)
    )
    assert difference(one, parse(str(one))) is None
    assert not any(equal(a, b) for a, b in ((dense, one), (one, other)))


def test_names_do_not_matter() -> None:
    renamed = TEXT
    for old, new in (("scale", "g"), ("A", "X"), ("B", "Y"), ("T", "tmp"), ("vi", "w"), ("i", "n")):
        renamed = re.sub(rf"\b{old}\b", new, renamed)
    assert renamed != TEXT
    assert equal(parse(TEXT), parse(renamed))


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("* 2.0", "* 3.0", "2.0  <>  3.0"),
        ("+ 1.0", "- 1.0", "T[vi] + 1.0  <>  T[vi] - 1.0"),
        ("T[vi] + 1.0", "A[vi] + 1.0", "buffer T: float32[5]  <>  buffer A: float32[5]"),
        ("A: float32[5]", "A: constant(float32[5])", None),
        ('"global"', '"thread"', "buffer T: float32[5]  <>  buffer T: float32[5]"),
        ('alloc(float32[5], "global")', 'alloc(float32[5], "global", origin=A)', None),
        ('block("B"', 'block("T"', None),
        ('block("B", vi=spatial(5, i))', 'block("B", vi=spatial(5, i), padded=True)', None),
        ("for i in range(5)", "for i in parallel(5)", None),
        ("T[vi] = A[vi] * 2.0", "T[vi] = A[0] * 2.0", "variable vi: int64  <>  0"),
    ],
)
def test_what_a_program_does_matters(old: str, new: str, shown: str | None) -> None:
    found = difference(parse(TEXT), parse(TEXT.replace(old, new, 1)))
    assert found is not None
    assert shown in (None, found)
    assert "  <>  " in found


def test_free_variables_and_buffers_match_only_themselves() -> None:
    x, y = Var("x"), Var("y")
    one = const(1, INT64)
    assert equal(Add(x, one), Add(x, one))
    assert not equal(Add(x, one), Add(y, one))
    a, b = (Buffer("a", FLOAT32, (2,)) for _ in range(2))
    assert not equal(Load(a, (x,)), Load(b, (x,)))


def test_a_bound_variable_never_matches_a_free_one() -> None:
    out, i, j = Buffer("out", INT64, (4, 4)), Var("i"), Var("j")
    a = For(i, 4, ForKind.SERIAL, For(j, 4, ForKind.SERIAL, Store(out, (i, j), i)))
    assert equal(a, fresh_copy(a))
    b = For(j, 4, ForKind.SERIAL, Store(out, (i, j), i))
    c = For(i, 4, ForKind.SERIAL, Store(out, (i, i), i))
    assert not equal(b, c)
    assert not equal(c, b)


def test_variables_match_one_to_one() -> None:
    x, y, z = Var("x"), Var("y"), Var("z")
    one = const(1, INT64)
    swapped = Let(x, one, Let(y, one, Mul(x, y)))
    assert equal(swapped, Let(y, one, Let(z, one, Mul(y, z))))
    assert not equal(swapped, Let(y, one, Let(z, one, Mul(z, y))))
    assert not equal(swapped, Let(y, one, Let(z, one, Mul(y, y))))


def test_types_of_bound_variables_matter() -> None:
    x, y = Var("x", FLOAT32), Var("x", INT64)
    assert not equal(Let(x, x, x), Let(y, y, y))


def test_numbers_are_compared_by_their_bits() -> None:
    nan = Const(float("nan"), FLOAT32)
    assert equal(nan, Const(float("nan"), FLOAT32))
    assert not equal(Const(0.0, FLOAT32), Const(-0.0, FLOAT32))
    assert not equal(Const(1, INT64), Const(True, te.const(True, "bool").type))


def test_sequences_of_different_length_differ() -> None:
    longer = TEXT + "    barrier()\n"
    assert difference(parse(TEXT), parse(longer)) is not None
    assert difference(parse(longer), parse(TEXT)) is not None


def test_equal_programs_have_equal_values() -> None:
    a, b = parse(TEXT), parse(TEXT.replace("vi", "w"))
    x = np.arange(5, dtype="f4")
    assert equal(a, b)
    assert np.array_equal(interpret(a, x)[0], interpret(b, x)[0])
