"""Threefry: the vectors that its authors publish, and the same bits from everybody."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.math.expand import expand_call
from tilewright.tir.dtype import INT32
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Call, Var
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.intrinsics import THREEFRY
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.array_expr import evaluate_expr
from tilewright.tir.te import te

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
ONES = (0xFFFFFFFF,) * 4
# counter and key, and the words of 20 rounds: kat_vectors of Random123
VECTORS = [
    ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
    (ONES, (0x1CB996FC, 0xBB002BE7)),
    (PI, (0xC4923A9C, 0x483DF7A0)),
]


def words(*values: int) -> list[np.ndarray]:
    return [np.array(value, np.uint32).astype(np.int32) for value in values]


@pytest.mark.parametrize(("given", "expected"), VECTORS)
def test_the_published_vectors_come_out(given: tuple[int, ...], expected: tuple[int, ...]) -> None:
    for one, word in zip(THREEFRY, words(*expected), strict=True):
        assert one.meaning(*words(*given)) == word
        variables = [Var(name, INT32) for name in "abcd"]
        expanded = expand_call(Call(one, tuple(variables)))
        values = dict(zip(variables, words(*given), strict=True))
        assert evaluate_expr(expanded, values) == word


NEST = """\
def f(X: int64[64], Y: output(int32[64])):
    for i in range(4):
        for v in {loop}(16):
            with block("Y", vi=spatial(64, i * 16 + v)):
                Y[vi] = threefry_{word}(cast(X[vi], "int32"), cast(X[vi] >> 32, "int32"), {key})
"""


@pytest.mark.needs_cc
@pytest.mark.sampled(3)
@pytest.mark.parametrize("loop", ["range", "vectorized"])
@pytest.mark.parametrize("word", [0, 1])
def test_compiled_code_has_the_bits_of_the_definition(word, loop, check) -> None:
    func = parse(NEST.format(word=word, loop=loop, key="int32(7), int32(-3)"))
    values = np.random.default_rng(0).integers(-(1 << 63), 1 << 63, 64, np.int64, endpoint=False)
    check(func, {"X": values})


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
def test_an_index_is_a_counter_of_64_bits(kind: str) -> None:
    ends = np.iinfo(kind)
    x = np.array([0, 1, ends.max, ends.min], kind)
    given = te.placeholder((4,), kind, name="X")
    made = te.compute((4,), lambda i: te.threefry(given[i], (PI[3] << 32) | PI[2], 1), name="Y")
    (found,) = interpret(te.func(given, made, name="f"), x)
    counters = [int(number) % (1 << ends.bits) for number in x.tolist()]
    expected = [
        THREEFRY[1].meaning(*words(counter % (1 << 32), counter >> 32, PI[2], PI[3]))
        for counter in counters
    ]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("kind", "key", "word"), [("float32", 0, 0), ("int16", 0, 0), ("int32", -1, 0), ("int32", 0, 2)]
)
def test_others_are_refused(kind: str, key: int, word: int) -> None:
    x = te.placeholder((4,), kind, name="X")
    with pytest.raises(IRError) as refused:
        te.compute((4,), lambda i: te.threefry(x[i], key, word), name="Y")
    assert str(refused.value) == (
        f"IRError: te.threefry: the index is {kind}, the key {key}, the word {word}; expected an "
        "integer of 32 or 64 bits, 0 to 2**64 - 1, and 0 or 1. [te-threefry]"
    )
