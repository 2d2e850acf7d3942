"""tir/instructions/word_bits.py: which expressions are numbers of a word, and that a shift and a
mask make those of all points.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.buffer import Load
from tilewright.tir.expr import Expr, const
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.tensor_intrinsics import VPDPBUSD, VPMADDWD, TensorIntrinsic
from tilewright.tir.instructions.tensor_match import Match, Mismatch, match_intrinsic
from tilewright.tir.instructions.word_bits import WordBits, word_bits
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.array_expr import ArrayEvaluator
from tilewright.tir.stmt import For
from tilewright.tir.text.printer import print_expr
from tilewright.tir.visit import stores, transform, walk

NEST = """
def f(W: int32[4, {lanes}], V: int32[{lanes}, 4], X: {kind}[64], C: output(int32[{lanes}])):
    for i in range({lanes}):
        for p in range({points}):
            C[i] = C[i] + cast(X[p], "int32") * ({number})
"""


def nest(number: str, unit: TensorIntrinsic = VPDPBUSD) -> PrimFunc:
    kind = {4: "int8", 2: "int16"}[unit.points]
    text = NEST.format(lanes=unit.lanes[0], points=unit.points, kind=kind, number=number)
    return parse(text)


def loops(func: PrimFunc) -> list[For]:
    return [node for node in walk(func.body) if isinstance(node, For)]


def bits_of(number: str, width: int = 8) -> WordBits | None:
    func = nest(number)
    (store,) = stores(func.body)
    point = loops(func)[1].var
    found = [word_bits(node, point, width) for node in walk(store) if isinstance(node, Expr)]
    return next(filter(None, found), None)


@pytest.mark.parametrize(
    ("number", "shift", "together"),
    [
        ('(W[1, i] >> cast(p * 8, "int32")) & 15', "0", "W[1, i] & int32(252645135)"),
        (
            '(W[1, i] >> cast(p * 8 + 4, "int32")) & 15',
            "4",
            "W[1, i] >> int32(4) & int32(252645135)",
        ),
        ('(W[1, i] >> cast(2 + 8 * p, "int32")) & 3', "2", "W[1, i] >> int32(2) & int32(50529027)"),
        ('(W[1, i] >> cast(p * 8, "int32")) & 255', "0", "W[1, i]"),
        ('(W[1, i] >> cast(p * 8, "int32")) & 127', "0", "W[1, i] & int32(2139062143)"),
    ],
)
def test_numbers_in_parts_of_a_word_are_found(number: str, shift: str, together: str) -> None:
    found = bits_of(number)
    assert found is not None
    assert print_expr(found.shift) == f"int32({shift})"
    assert print_expr(found.together) == together


@pytest.mark.parametrize(
    "number",
    [
        '(W[1, i] >> cast(p * 4, "int32")) & 15',  # in parts of 4 bits
        '(W[1, i] >> cast(p * 8, "int32")) & 256',  # beyond a part
        '(W[1, i] >> cast(p * 8, "int32")) & 0',
        '(W[p, i] >> cast(p * 8, "int32")) & 15',  # of several words
        '(W[1, i] << cast(p * 8, "int32")) & 15',
        '(W[1, i] >> cast(p * p, "int32")) & 15',
        '(W[1, i] >> cast(p * 8 + p // 2, "int32")) & 15',
        '(W[1, i] >> cast(p * 8, "int32")) | 15',
    ],
)
def test_other_numbers_are_not(number: str) -> None:
    assert bits_of(number) is None


@pytest.mark.parametrize("unit", [VPDPBUSD, VPMADDWD], ids=lambda unit: unit.name)
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_parts_of_the_word_are_the_numbers_of_the_points(
    unit: TensorIntrinsic, bits: int
) -> None:
    width, mask = 32 // unit.points, (1 << bits) - 1
    words = np.random.default_rng(bits).integers(-(1 << 31), 1 << 31, 200).astype(np.int32)
    for shift in range(0, width, bits):
        func = nest(f'(W[1, i] >> cast(p * {width} + {shift}, "int32")) & {mask}', unit)
        match = match_intrinsic(unit, loops(func)[0], {})
        assert isinstance(match, Match)
        (found,) = (operand.bits for operand in match.operands if operand.bits)
        for word in words:
            value = ArrayEvaluator({}, {}).evaluate(_with_word(found.together, word))
            parts = np.array([value], np.int32).view(f"u{width // 8}").tolist()
            assert parts == [(int(word) >> at) & mask for at in range(shift, 32, width)]


def _with_word(expr: Expr, word: np.int32) -> Expr:
    made = transform(expr, lambda n: const(int(word), n.dtype) if isinstance(n, Load) else n)
    assert isinstance(made, Expr)
    return made


def test_a_sum_of_them_is_an_instruction_that_reads_words() -> None:
    match = match_intrinsic(
        VPDPBUSD, loops(nest('(W[1, i] >> cast(p * 8 + 4, "int32")) & 15'))[0], {}
    )
    assert isinstance(match, Match)
    unsigned, signed = match.operands
    assert unsigned.bits is not None
    assert unsigned.lanes_differ
    assert (signed.load.buffer.name, signed.lanes_differ, signed.bits) == ("X", False, None)


def test_words_of_lanes_must_be_neighbours() -> None:
    number = '(V[i, 1] >> cast(p * 8, "int32")) & 15'
    mismatch = match_intrinsic(VPDPBUSD, loops(nest(number))[0], {})
    assert isinstance(mismatch, Mismatch)
    assert mismatch.found == (
        "from one iteration to the next of 'i' and of 'p', V[i, 1] moves 4 and 0 elements"
    )
    assert mismatch.expected == "1 and 0"


def test_a_number_that_no_operand_holds_is_none() -> None:
    number = '(W[1, i] >> cast(p * 16, "int32")) & 65535'  # int16 ends at 32767
    assert isinstance(match_intrinsic(VPMADDWD, loops(nest(number, VPMADDWD))[0], {}), Mismatch)
