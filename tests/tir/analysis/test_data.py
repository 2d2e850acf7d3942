"""The interval of an index that is data contains each of its values, wrapped ones too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.analysis.bounds import known_interval
from tilewright.tir.analysis.data import data_interval, loose_indices
from tilewright.tir.buffer import Buffer, Load, array
from tilewright.tir.dtype import BOOL, INT64, dtype
from tilewright.tir.expr import Cast, Expr, Var, index
from tilewright.tir.reference.array_expr import evaluate_expr
from tilewright.tir.te import te

AT = Var("i")
ROWS = te.dim("rows", 1, 10)
BYTES = Buffer("B", dtype("int8"), (256,))
WORDS = Buffer("W", INT64, (4,))
FLAGS = Buffer("F", BOOL, (4,))
BYTE = Load(BYTES, (AT,))
WORD = Load(WORDS, (AT,))
FLAG = Load(FLAGS, (AT,))


def known(expr: Expr) -> tuple[int, int]:
    return known_interval(expr, {AT: (0, 3)})


def of(expr: Expr) -> tuple[int, int]:
    return data_interval(expr, known)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (te.clamp_index(WORD, 10), (0, 9)),
        (te.maximum(te.minimum(WORD, 9), 2), (2, 9)),
        (te.minimum(te.maximum(WORD, 0), 9), (0, 9)),
        (te.clamp_index(WORD + 5, 10), (0, 9)),  # the sum may wrap around; the clamp holds
        (te.clamp_index(WORD, 10) * 3 + AT, (0, 30)),
        (te.clamp_index(WORD, 10) - AT, (-3, 9)),
        (WORD % 7, (0, 6)),
        (te.clamp_index(WORD, 10) // 4, (0, 2)),
        (BYTE, (-128, 127)),
        (te.cast(BYTE, "int64") + 128, (0, 255)),
        (BYTE + 1, (-128, 127)),  # in int8 it wraps around
        (te.minimum(te.maximum(BYTE, 100), 120) + 20, (-128, 127)),
        (te.cast(BYTE, "uint8"), (0, 255)),
        (Cast(FLAG, INT64), (0, 1)),
        (te.select(FLAG, te.clamp_index(WORD, 4), index(7)), (0, 7)),
        (AT * 2, (0, 6)),
    ],
)
def test_the_interval_is_what_the_form_allows(expr: Expr, expected: tuple[int, int]) -> None:
    assert of(expr) == expected


def test_a_value_that_nothing_bounds_may_be_all_that_its_type_holds() -> None:
    assert of(WORD) == of(WORD + 1) == (-(1 << 63), (1 << 63) - 1)


@given(
    st.lists(st.tuples(st.sampled_from("+-*<>%/"), st.integers(-100, 100)), min_size=1, max_size=4)
)
def test_no_byte_leaves_the_interval_of_what_is_computed_from_it(
    steps: list[tuple[str, int]],
) -> None:
    expr: Expr = BYTE
    for sign, number in steps:
        match sign:
            case "+":
                expr = expr + number
            case "-":
                expr = expr - number
            case "*":
                expr = expr * number
            case "<":
                expr = te.minimum(expr, number)
            case ">":
                expr = te.maximum(expr, number)
            case _:
                divisor = abs(number) + 1
                expr = expr % divisor if sign == "%" else expr // divisor
    values = np.arange(-128, 128, dtype=np.int8)
    got = evaluate_expr(expr, {AT: np.arange(256)}, {BYTES: values})
    low, high = data_interval(expr, lambda plain: known_interval(plain, {AT: (0, 255)}))
    assert low <= got.min()
    assert got.max() <= high


def test_dimensions_that_data_may_leave_are_found() -> None:
    table = Buffer("T", dtype("float32"), (10, 10, 10))
    load = Load(table, (te.clamp_index(WORD, 11), te.clamp_index(WORD, 10), AT * 100))
    assert list(loose_indices(load, known)) == [0]  # the last one is no data: the proof looks at it


@pytest.mark.parametrize(
    ("at", "inside"),
    [
        (te.clamp_index(WORD, ROWS), True),
        (te.maximum(te.minimum(WORD, ROWS - 1), 0), True),
        (te.minimum(te.maximum(WORD, 0), ROWS - 2 + 1), True),
        (te.select(FLAG, te.clamp_index(WORD, ROWS), index(0)), True),
        (te.minimum(te.clamp_index(WORD, ROWS), AT), True),
        (te.clamp_index(WORD, 10), False),  # the bound of the rows, of which a call may have fewer
        (te.maximum(te.minimum(WORD, te.cast(ROWS, "int64")), 0), False),
        (te.minimum(WORD, ROWS - 1), False),
        (te.maximum(te.minimum(WORD, ROWS - 1), 1), False),
        (te.select(FLAG, te.clamp_index(WORD, ROWS), te.clamp_index(WORD, 10)), False),
        (te.clamp_index(WORD, ROWS) + 1, False),
    ],
)
def test_of_a_size_that_a_call_decides_an_index_ends_below_it(at: Expr, inside: bool) -> None:
    table = array("T", dtype("float32"), (ROWS,))
    assert list(loose_indices(Load(table, (at,)), known)) == ([] if inside else [0])
