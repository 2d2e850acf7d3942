"""Tiles that are read across their lines are transposed in registers: the text, what stays as it
is, and values on each instruction set.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.lower.lower import lower_parts
from tilewright.codegen.lower.vector.transpose_tiles import TransposeTiles
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import Stage, verify

from ...c.emulated import need_emulator, run_emulated
from ...conftest import Outputs, random_arrays

KINDS = ("float32", "float64", "int32", "int64", "float16", "bfloat16", "uint16", "int8", "uint8")
NEON = Target.parse("c:neon")


def tile(rows: int, columns: int, kind: str = "float32", value: str = "A[j, i]") -> str:
    return f"""
def f(A: {kind}[{columns}, {rows}], C: output({kind}[{rows}, {columns}])):
    for i in unrolled({rows}):
        for j in vectorized({columns}):
            C[i, j] = {value}
"""


def transposed(text: str, target: str = "c:avx512") -> str:
    func = parse(text)
    after = TransposeTiles(Target.parse(target))(func)
    verify(after, Stage.LOWERED, underway=True)
    return "" if after is func else str(after)


def test_a_square_is_loaded_shuffled_and_stored() -> None:
    lines = transposed(tile(4, 4), "c:neon").splitlines()
    assert lines[1:9] == [
        '    A_tile = alloc(float32[4, 4], "register")',
        "    A_tile[0, ramp(0, 1, 4)] = A[0, ramp(0, 1, 4)]",
        "    A_tile[1, ramp(0, 1, 4)] = A[1, ramp(0, 1, 4)]",
        "    A_tile[2, ramp(0, 1, 4)] = A[2, ramp(0, 1, 4)]",
        "    A_tile[3, ramp(0, 1, 4)] = A[3, ramp(0, 1, 4)]",
        "    a: float32x4 = A_tile[0, ramp(0, 1, 4)]",
        "    b: float32x4 = A_tile[2, ramp(0, 1, 4)]",
        "    A_tile[0, ramp(0, 1, 4)] = shuffle(a, b, 0, 4, 1, 5)",
    ]
    assert lines[-1] == "    C[3, ramp(0, 1, 4)] = A_tile[3, ramp(0, 1, 4)]"


def test_a_part_of_a_square_has_masks_and_zeros() -> None:
    text = transposed(tile(5, 3, value="A[j, i] + 1.0"), "c:avx512")
    assert "A_tile[2, ramp(0, 1, 8)] = masked(A[2, ramp(0, 1, 8)], ramp(0, 1, 8) <" in text
    assert "A_tile[3, ramp(0, 1, 8)] = broadcast(0.0, 8)" in text
    assert "masked(C[4, ramp(0, 1, 8)], ramp(0, 1, 8) < broadcast(3, 8)) =" in text
    assert "C[5" not in text


STAY = {
    "a scalar target": ("c:scalar", tile(4, 4)),
    "more rows than lanes": ("c:avx2", tile(9, 8)),
    "more columns than lanes": ("c:avx2", tile(8, 9)),
    "masks that are lacking": ("c:neon", tile(4, 3)),
    "vectors that are lacking": ("c:neon", tile(4, 4, "float16")),
    "neighbours along the lanes": ("c:avx512", tile(4, 4, value="A[i, j]")),
    "one element for all lanes": ("c:avx512", tile(4, 4, value="A[0, i]")),
    "lines that are not whole": ("c:avx512", tile(4, 4, value="A[j, i * 2 % 4]")),
    "what is chosen": ("c:avx512", tile(4, 4, value="select(i < j, A[j, i], 0.0)")),
    "what is written": ("c:avx512", tile(4, 4, value="C[j, i]")),
    "a serial loop": ("c:avx512", tile(4, 4).replace("unrolled", "range")),
    "no vector": ("c:avx512", tile(4, 4).replace("vectorized", "unrolled")),
}


@pytest.mark.parametrize(("target", "text"), STAY.values(), ids=STAY)
def test_what_is_no_such_tile_stays_as_it_is(target: str, text: str) -> None:
    assert transposed(text, target) == ""


@pytest.mark.parametrize("target", ["c:avx2", "c:avx512", "c:neon"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_tile_means_what_the_loops_mean(kind: str, target: str) -> None:
    for rows, columns in ((2, 2), (4, 4), (3, 4), (4, 7), (8, 8), (11, 16), (16, 16), (16, 5)):
        func = parse(tile(rows, columns, kind))
        given = random_arrays(func)
        expected = interpret(func, *given.values())
        after = interpret(TransposeTiles(Target.parse(target))(func), *given.values())
        np.testing.assert_array_equal(after[0], expected[0])


def whole(kind: str, lanes: int, rows: int, columns: int) -> str:
    """A matrix by squares, with edges, beside one that is read as it lies."""
    return f"""
def f(A: {kind}[{columns}, {rows}], B: {kind}[{rows}, {columns}], \
C: output({kind}[{rows}, {columns}])):
    for x in range({rows // lanes}):
        for y in range({columns // lanes}):
            for i in unrolled({lanes}):
                for j in vectorized({lanes}):
                    C[x * {lanes} + i, y * {lanes} + j] = \
max(A[y * {lanes} + j, x * {lanes} + i], B[x * {lanes} + i, y * {lanes} + j])
        for i in unrolled({lanes}):
            for j in vectorized({columns % lanes}):
                C[x * {lanes} + i, {columns - columns % lanes} + j] = \
A[{columns - columns % lanes} + j, x * {lanes} + i]
    for i in unrolled({rows % lanes}):
        for j in vectorized({columns}):
            C[{rows - rows % lanes} + i, j] = A[j, {rows - rows % lanes} + i]
"""


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_compiled_squares_have_the_interpreters_bits(
    kind: str, lanes: int, check: Callable[..., Outputs]
) -> None:
    check(whole(kind, lanes, 2 * lanes + 3, lanes + 2))


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "uint16", "int8", "uint8"])
@pytest.mark.parametrize("lanes", [8, 16])
def test_compiled_squares_of_narrow_numbers_have_the_interpreters_bits(
    kind: str, lanes: int, check: Callable[..., Outputs]
) -> None:
    check(tile(lanes, lanes, kind))
    check(tile(lanes, lanes - 3, kind))


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64", "int8", "uint8"])
def test_squares_of_neon_have_the_interpreters_bits(kind: str, tmp_path: Path) -> None:
    need_emulator()
    lanes = 2 if kind.endswith("64") else 4
    func = parse(tile(lanes, lanes, kind))
    assert "shuffle" in str(TransposeTiles(NEON)(func))
    given = random_arrays(func)
    expected = interpret(func, *given.values())
    got = run_emulated(lower_parts(func, NEON), NEON, given, tmp_path)
    np.testing.assert_array_equal(got["C"], expected[0])


def test_the_function_is_the_same_object_where_there_is_no_tile() -> None:
    func: PrimFunc = parse(tile(4, 4, value="A[i, j]"))
    assert TransposeTiles(Target.parse("c:avx512"))(func) is func
