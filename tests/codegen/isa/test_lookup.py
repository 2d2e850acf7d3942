"""codegen/isa/lookup.py: which expressions are numbers of a table, and that its instructions give
them for each word.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.isa.lookup import Lookup, lookup
from tilewright.runtime.machine.host import host
from tilewright.tir.dtype import FLOAT32, INT32, INT64
from tilewright.tir.expr import BitAnd, Cast, Expr, ShiftRight, Sub, Var, const
from tilewright.tir.lowered import Broadcast
from tilewright.tir.target.target import Target

WORDS, AVX512 = Var("w", INT32.with_lanes(16)), Target.parse("c:avx512")
WHOLE = tuple(map(float, range(16)))


def everywhere(number: float, kind: object = INT32) -> Broadcast:
    return Broadcast(const(number, kind), 16)


def number(mask: int, shift: int = 0, less: float | None = None) -> Expr:
    """float(w >> shift & mask) - less"""
    moved = ShiftRight(WORDS, everywhere(shift)) if shift else WORDS
    level = Cast(BitAnd(moved, everywhere(mask)), FLOAT32.with_lanes(16))
    return level if less is None else Sub(level, everywhere(less, FLOAT32))


def test_numbers_of_four_bits_are_those_of_a_table() -> None:
    assert lookup(number(15)) == Lookup(WORDS, WHOLE, False)
    centred = lookup(number(15, 0, 8.0))
    assert centred is not None
    assert centred.numbers == tuple(n - 8 for n in WHOLE)


def test_of_fewer_bits_the_table_is_the_same_again_and_again() -> None:
    found = lookup(number(3, 0, 2.0))
    assert found is not None
    assert found.numbers == (-2.0, -1.0, 0.0, 1.0) * 4


@pytest.mark.parametrize(("shift", "rest"), [(4, 4), (12, 12)])
def test_bits_below_a_half_are_shifted(shift: int, rest: int) -> None:
    found = lookup(number(15, shift))
    assert found == Lookup(ShiftRight(WORDS, everywhere(rest)), WHOLE, False)


@pytest.mark.parametrize("shift", [16, 20, 28])
def test_of_bits_of_the_upper_half_the_shift_is_that_of_the_lower_one(shift: int) -> None:
    rest = ShiftRight(WORDS, everywhere(shift - 16)) if shift > 16 else WORDS
    assert lookup(number(15, shift)) == Lookup(rest, WHOLE, True)


def test_numbers_that_half_a_float_does_not_hold_are_shifted() -> None:
    found = lookup(number(15, 16, 0.1))
    assert found is not None
    assert not found.high
    assert found.index == ShiftRight(WORDS, everywhere(16))
    assert found.numbers[1] == float(np.float32(1) - np.float32(0.1))


def test_other_expressions_are_none() -> None:
    assert lookup(number(255)) is None
    assert lookup(number(5)) is None
    assert lookup(Cast(WORDS, FLOAT32.with_lanes(16))) is None
    wide = Var("v", INT64.with_lanes(16))
    bits = BitAnd(wide, everywhere(15, INT64))
    assert lookup(Cast(bits, FLOAT32.with_lanes(16))) is None
    scalar = BitAnd(Var("s", INT32), const(15, INT32))
    assert lookup(Cast(scalar, FLOAT32)) is None
    other = BitAnd(WORDS, Var("m", INT32.with_lanes(16)))
    assert lookup(Cast(other, FLOAT32.with_lanes(16))) is None


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("less", [8.0, 0.1])
@pytest.mark.parametrize("mask", [1, 3, 7, 15])
def test_a_kernel_reads_each_level_of_each_word(mask: int, less: float) -> None:
    if "avx512" not in host().isas:
        pytest.skip("this machine has no AVX-512")
    count, shifts = 500, (0, 4, 12, 16, 20, 28)
    w = te.placeholder((count,), "int32", name="W")
    x = te.placeholder((count,), "float32", name="X")

    def element(n: Expr) -> Expr:
        total: Expr = te.const(0.0, "float32")
        for place, shift in enumerate(shifts):
            level = te.cast((w[n] >> te.const(shift, "int32")) & mask, "float32") - less
            total = total + level * x[n] * 2.0**place
        return total

    func = te.func(w, x, te.compute((count,), element, name="Y"), name="levels")
    rng = np.random.default_rng(mask)
    words = rng.integers(-(1 << 31), 1 << 31, count).astype(np.int32)
    factors = rng.standard_normal(count).astype(np.float32)
    kernel = tw.build(func, AVX512)
    found = kernel(words, factors)
    assert (found == tw.build(func, "python")(words, factors)).all()
    assert "permutexvar_ps" in kernel.source
    assert ("permutexvar_epi16" in kernel.source) == (less == 8.0)
