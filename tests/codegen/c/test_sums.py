"""Sums of signed integers in local variables: which these are, their C text, and their values."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.c.emit import emit_function
from tilewright.codegen.c.sums import unsigned_sums
from tilewright.codegen.lower.lower import lower
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

from ...isas import HERE

VARIABLES = """
def f(X: int32[9], Y: output(int32[4])):
    total = alloc(int32[2], "register")
    product = alloc(int64[()], "register")
    chosen = alloc(int8[()], "register")
    largest = alloc(int32[()], "register")
    copied = alloc(int32[()], "register")
    counted = alloc(uint32[()], "register")
    real = alloc(float32[()], "register")
    lanes = alloc(int32x4[()], "register")
    loaded = alloc(int32[4], "register")
    memory = alloc(int32[2], "thread")
    for k in range(9):
        total[1] = total[1] + X[k]
        product[()] = int64(3) * product[()]
        chosen[()] = select(X[k] < int32(3), chosen[()] - int8(1), chosen[()])
        largest[()] = max(largest[()], X[k] + int32(1))
        copied[()] = total[0]
        counted[()] = counted[()] + uint32(1)
        real[()] = real[()] + 1.0
        lanes[()] = lanes[()] + lanes[()]
        loaded[0] = loaded[0] + X[k]
        memory[0] = memory[0] + X[k]
    Y[ramp(0, 1, 4)] = loaded[ramp(0, 1, 4)]
"""

COLUMNS = """
def f(X: int32[6, 2], Z: int8[6], Y: output(int32[2]), C: output(int8[1])):
    for p in range(1):
        S = alloc(int32[2], "register")
        for j in unrolled(2):
            S[j] = int32(-1)
        for k in range(6):
            for j in unrolled(2):
                S[j] = S[j] * int32(3) + X[k, j]
        for j in unrolled(2):
            Y[j] = max(S[j], int32(5)) * S[j]
    for p in range(1):
        T = alloc(int8[1], "register")
        T[0] = int8(0)
        for k in range(6):
            T[0] = T[0] - Z[k]
        C[0] = T[0]
"""

PAIRS = """
def f(X: int16[6, 2], Y: output(int16[2]), Z: output(int16[2])):
    for p in range(1):
        S = alloc(int16[2], "register")
        Q = alloc(int16[2], "register")
        for j in unrolled(2):
            S[j] = int16(0)
            Q[j] = int16(1)
        for k in range(6):
            for j in unrolled(2):
                Q[j] = let(x, X[k, j] * int16(9000), Q[j] + x * S[j])
                S[j] = S[j] + X[k, j] * int16(9000)
        for j in unrolled(2):
            Y[j] = S[j] * S[j]
            Z[j] = Q[j] // int16(3)
"""

READERS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "product": lambda s, b: s * b,
    "rest": lambda s, _: s % te.const(16, s.dtype),
    "sum": lambda s, b: s + b,
    "opposite": lambda s, _: te.const(0, s.dtype) - s,
}


def test_sums_are_what_signed_local_variables_make_of_themselves() -> None:
    found = {buffer.name for buffer in unsigned_sums(parse(VARIABLES))}
    assert found == {"total", "product", "chosen"}


def test_a_sum_is_unsigned_until_it_is_read() -> None:
    target = Target.parse("c:scalar")
    text = emit_function(lower(parse(COLUMNS), target), target, "f")
    lines = [line.strip() for line in text.splitlines()]
    assert [line for line in lines if re.search(r"\b[ST]\b(?! \*/)", line)] == [
        "uint32_t S[2];",
        "S[j] = -1;",
        "S[j] = S[j] * 3u + (uint32_t)X[k * 2 + j];",
        "const int32_t loaded = (int32_t)S[j];",
        "Y[j] = (int32_t)((uint32_t)(loaded > 5 ? loaded : 5) * S[j]);",
        "uint8_t T[1];",
        "T[0] = 0;",
        "T[0] = (uint8_t)((uint32_t)T[0] - (uint32_t)Z[k]);",
        "C[0] = (int8_t)T[0];",
    ]


def test_a_long_sum_gets_an_unsigned_name() -> None:
    target = Target.parse("c:scalar")
    longer = COLUMNS.replace("T[0] - Z[k]", "T[0] - Z[k] * Z[5 - k] * Z[k] * Z[5 - k]")
    text = emit_function(lower(parse(longer), target), target, "f")
    assert re.search(r"const uint8_t difference = \(uint8_t\)\(.*;\n +T\[0\] = difference;", text)


def test_a_name_within_a_sum_stands_before_it() -> None:
    target = Target.parse("c:scalar")
    text = emit_function(lower(parse(PAIRS), target), target, "f")
    assert re.search(
        r"const int16_t x = .*;\n +Q\[j\] = \(uint16_t\)\(\(uint32_t\)Q\[j\] \+ ", text
    )


@pytest.mark.needs_cc
def test_sums_in_variables_have_the_interpreters_bits(check: Callable[..., object]) -> None:
    check(COLUMNS)
    check(PAIRS)


@pytest.mark.sampled(4)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("target", "unrolled"), [("c:scalar", False), *((target, True) for target in HERE)]
)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_sums_of_neighbours_that_are_read_as_unsigned_are_whole(
    dtype: str, target: str, unrolled: bool
) -> None:
    """gcc 12.2 took the sum of every second element for the sum."""
    rows, columns = 4, 2
    x = te.placeholder((rows, columns), dtype, name="X")
    b = te.placeholder((columns,), dtype, name="B")
    data = np.array([[1, -2], [3, 1], [-1, 2], [2, 3]], dtype), np.array([3, -2], dtype)
    for name, reader in READERS.items():
        k = te.reduce_axis(rows, name="k")
        s = te.compute((columns,), lambda j, k=k: te.sum(x[k, j], axis=k, dtype=dtype), name="S")
        y = te.compute((columns,), lambda j, s=s, reader=reader: reader(s[j], b[j]), name="Y")
        sch = Schedule(te.func(x, b, y, name=name))
        column, row = sch.loops("S")
        block, column = sch.split(column, (None, columns), tail="partition")
        sch.reorder(block, row, column)
        if unrolled:
            sch.unroll(column)
        sch.stage("S", "S", block, "register")
        (reading,) = sch.reverse_compute_at("Y", block, at="last")
        if unrolled:
            sch.unroll(reading)
        (expected,) = interpret(sch.original, *data)
        assert np.array_equal(tw.build(sch, target)(*data), expected), name
