"""The text of generated C. That it is right: test_values.py and test_microkernel.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.codegen.c.emit import emit, emit_function
from tilewright.codegen.lower.lower import contraction, lower
from tilewright.tir.errors import InternalError
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

BYTES = """
def bytes(A: int8[16], B: int8[16], D: int8[16], C: output(int8[16])):
    for j in vectorized(16):
        C[j] = select(A[j] < B[j] and B[j] < int8(9), A[j], D[j])
"""
Golden = Callable[[str, str], None]

ROWS = """
def rows(A: float32[5, 40], C: output(float32[5, 40])):
    T = alloc(float32[5, 40], "global")
    for i in parallel(5):
        for j in vectorized(40):
            T[i, j] = max(A[i, j], 0.0) * 0.5
    barrier()
    for i in range(5):
        row = alloc(float32[40], "thread")
        for j in vectorized(40):
            row[j] = select(1 <= i, T[i - 1, j], 0.0)
        for j in range(40):
            if j % 3 == 0:
                C[i, j] = row[39 - j]
            else:
                C[i, j] = floor(T[i, j])
"""
TILE = """
def tile(A: float32[4, 64], B: float32[64, 32], C: output(float32[4, 20])):
    T = alloc(float32[4, 32], "register", origin=C)
    for i in unrolled(4):
        for j in unrolled(2):
            for v in vectorized(16):
                if j * 16 + v < 20:
                    T[i, j * 16 + v] = 0.0
    for k in range(64):
        for i in unrolled(4):
            for j in unrolled(2):
                for v in vectorized(16):
                    if j * 16 + v < 20:
                        T[i, j * 16 + v] = T[i, j * 16 + v] + A[i, k] * B[k, j * 16 + v]
    for i in unrolled(4):
        for j in unrolled(2):
            for v in vectorized(16):
                if j * 16 + v < 20:
                    C[i, j * 16 + v] = T[i, j * 16 + v]
"""

TRANSPOSE = """
def transpose(A: float32[48, 48], C: output(float32[48, 48])):
    for i in range({tiles}):
        for r in unrolled({lanes}):
            for c in vectorized({lanes}):
                C[i * {lanes} + r, c] = A[c, i * {lanes} + r] + 1.0
"""


def c_text(text: str, target: str) -> str:
    known = Target.parse(target)
    func = contraction(parse(text), known)
    return emit(lower(func, known), known, func.name)


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_loops_barrier_and_workspace(isa: str, golden: Golden) -> None:
    golden(f"codegen/rows_{isa}.c", c_text(ROWS, f"c:{isa}"))


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_a_register_tile_with_masked_columns(isa: str, golden: Golden) -> None:
    golden(f"codegen/tile_{isa}.c", c_text(TILE, f"c:{isa}"))


@pytest.mark.parametrize(("isa", "lanes"), [("neon", 4), ("avx2", 8), ("avx512", 16)])
def test_a_transposition_in_registers(isa: str, lanes: int, golden: Golden) -> None:
    text = TRANSPOSE.format(lanes=lanes, tiles=48 // lanes)
    golden(f"codegen/transpose_{isa}.c", c_text(text, f"c:{isa}"))


def test_masks_of_bytes_are_joined_as_those_of_words_are() -> None:
    """AVX-512 has one type of masks for so many lanes, and no operations of its own for bytes."""
    text = c_text(BYTES, "c:avx512")
    assert "(__mmask16)((__mmask16)_mm_cmplt_epi8_mask(" in text
    assert " & (__mmask16)_mm_cmplt_epi8_mask(" in text
    assert "(__mmask16)~(__mmask16)(" in text
    assert "_mm_mask_blend_epi8(" in text


def test_names_of_users_never_reach_the_source() -> None:
    a = te.placeholder((4, 8), "float32", name="x */ evil(); /*")
    b = te.compute((4, 8), lambda i, j: a[i, j] + 1.0, name="int")
    c = te.compute((4, 8), lambda i, j: b[i, j] * 2.0, name="A[0]=1;//")
    target = Target.parse("c:avx2")
    func = te.func(a, c, name='f"\\n#include')
    text = emit(lower(func, target), target, "f")
    assert "evil()" not in text
    assert "//" not in text
    assert "/* f_n_include(input x_evil: float32[4, 8], output A_0_1: float32[4, 8]) */" in text
    assert "float *const v_int = (float *)(workspace + 0);" in text


def test_a_static_entry_is_called_from_the_same_source() -> None:
    target = Target.parse("c:avx2")
    func = lower(parse(ROWS), target)
    assert "\nstatic void rows(void *const *args" in emit_function(
        func, target, "rows", static=True
    )
    assert "\nvoid rows(void *const *args" in emit_function(func, target, "rows")


def test_what_no_table_knows_is_a_defect() -> None:
    func = parse("def f(A: float32[4], C: output(float32[4])):\n    C[0] = exp(A[0])\n")
    with pytest.raises(InternalError) as caught:
        emit(func, Target.parse("c:avx2"), "f")
    assert str(caught.value) == (
        "InternalError: c: no C text for Call of float32; expected a pass before to have "
        "replaced it. "
        "[c-expression]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )
