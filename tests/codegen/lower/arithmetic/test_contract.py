"""codegen/lower/arithmetic/contract.py: which sums of products become one Fma."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.arithmetic.contract import Contract
from tilewright.codegen.lower.lower import contraction
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target


def function(expression: str, kind: str = "float32") -> PrimFunc:
    return parse(
        f"def f(A: {kind}[4], B: {kind}[4], C: {kind}[4], Y: output({kind}[4])):\n"
        "    for i in range(4):\n"
        '        with block("Y", v=spatial(4, i)):\n'
        f"            Y[v] = {expression}\n"
    )


def contracted(expression: str, kind: str = "float32") -> str:
    return str(Contract()(function(expression, kind))).rpartition(" = ")[2]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("A[v] * B[v] + C[v]", "fma(A[v], B[v], C[v])"),
        ("C[v] + A[v] * B[v]", "fma(A[v], B[v], C[v])"),
        ("A[v] * B[v] + B[v] * C[v]", "fma(B[v], C[v], A[v] * B[v])"),
        ("A[v] * (B[v] * C[v] + A[v]) + C[v]", "fma(A[v], fma(B[v], C[v], A[v]), C[v])"),
        ("A[v] * B[v] - C[v]", "A[v] * B[v] - C[v]"),
        ("A[v] + B[v]", "A[v] + B[v]"),
        ("max(A[v] * B[v] + C[v], 0.0)", "max(fma(A[v], B[v], C[v]), 0.0)"),
    ],
)
def test_sums_of_a_product_are_fused(expression: str, expected: str) -> None:
    assert contracted(expression) == expected


def test_integers_are_left_alone() -> None:
    assert contracted("A[v] * B[v] + C[v]", "int32") == "A[v] * B[v] + C[v]"


def test_nothing_to_fuse_gives_the_same_function() -> None:
    func = function("A[v] + B[v]")
    assert Contract()(func) is func


def test_the_product_is_not_rounded_on_its_own() -> None:
    func = function("A[v] * B[v] + C[v]")
    a = np.full(4, 1 + 2**-12, "f4")
    c = np.full(4, -1, "f4")
    (plain,) = interpret(func, a, a, c)
    (fused,) = interpret(Contract()(func), a, a, c)
    assert fused[0] == np.float32(2**-11 + 2**-24)
    assert plain[0] == np.float32(2**-11)


def test_only_targets_with_the_instruction_contract_and_strict_builds_do_not() -> None:
    func = function("A[v] * B[v] + C[v]")
    assert contraction(func, Target.parse("c:scalar")) is func
    assert contraction(func, Target.parse("c:avx2"), strict=True) is func
    assert "fma" in str(contraction(func, Target.parse("c:avx2")))
