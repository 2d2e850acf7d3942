"""Sizes as SymPy writes them: what they mean, and that nothing else is understood."""

from __future__ import annotations

import pytest

from tilewright.graph.importers.aten.expressions import size_from, symbol_of
from tilewright.graph.importers.size_texts import LONGEST, UnknownSize
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import size_of

N = size_of(Dim("n", low=1, high=64, typical=8))
S = "Symbol('s0', positive=True, integer=True)"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Integer(7)", 7),
        (S, N),
        (f"Mul(Integer(128), {S})", 128 * N),
        (f"Add({S}, Integer(-1))", N - 1),
        (f"Pow({S}, Integer(2))", N * N),
        (f"FloorDiv(Add({S}, Integer(1)), Integer(2))", (N + 1) // 2),
        (f"Mod({S}, Integer(4))", N % 4),
        (f"Max(Integer(1), {S})", N),
        (f"Min(Integer(64), {S})", N),
        ("S.One", 1),
        ("S.NegativeOne", -1),
    ],
)
def test_expressions(text: str, size: object) -> None:
    assert size_from(text, {"s0": N}) == size


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "Integer(__import__('os'))",
        "Symbol('s0').__class__",
        "Mul(*[Integer(2)])",
        "Pow(Integer(10), Integer(1000000))",
        "Symbol('a b')",
        "FloorDiv(Integer(1))",
        "lambda: 0",
        "Symbol('s9')",
        "1.5",
        "(",
        "Add(" * 100 + "Integer(1)" + ")" * 100,
        "Integer(1)" * LONGEST,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UnknownSize):
        size_from(text, {"s0": N})


def test_symbols() -> None:
    assert symbol_of(S) == "s0"
    assert symbol_of(f"Mul(Integer(2), {S})") == ""
