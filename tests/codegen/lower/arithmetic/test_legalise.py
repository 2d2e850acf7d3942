"""Intrinsics without an instruction, written with others."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.arithmetic.legalise import Legalise
from tilewright.codegen.lower.math import ExpandMath
from tilewright.tir.errors import InternalError
from tilewright.tir.expr import NE, Call, Mul
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import ISAS, Target
from tilewright.tir.te import te
from tilewright.tir.visit import walk

FLOOR = """
def f(X: {0}[{1}], Y: output({0}[{1}])):
    for i in range({1}):
        Y[i] = floor(X[i])
"""
SCALE = """
def f(X: {0}[{1}], N: {0}[{1}], Y: output({0}[{1}])):
    for i in range({1}):
        Y[i] = scale(X[i], N[i])
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_by_rounding(dtype: str) -> None:
    values = np.array(
        [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3.0, -3.0, 1e9, -1e9, 1e30, np.inf, -np.inf, np.nan],
        dtype,
    )
    func = Legalise(ISAS["scalar"])(parse(FLOOR.format(dtype, len(values))))
    assert {n.intrinsic.name for n in walk(func.body) if isinstance(n, Call)} == {"round"}
    np.testing.assert_array_equal(interpret(func, values)[0], np.floor(values))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scale_by_powers_of_two_over_the_whole_range(dtype: str) -> None:
    most = 300 if dtype == "float32" else 2200
    n = np.arange(-most, most + 1).astype(dtype)
    x = np.resize(np.array([1.0, -1.5, 0.75, 1e-30, 1e30, 0.0, np.inf], dtype), n.shape)
    func = Legalise(ISAS["scalar"])(parse(SCALE.format(dtype, len(n))))
    assert "scale" not in {n.intrinsic.name for n in walk(func.body) if isinstance(n, Call)}
    with np.errstate(all="ignore"):
        exact = np.ldexp(x, n.astype(np.int32))
    result = interpret(func, x, n)[0]
    normal = (np.abs(exact) >= np.finfo(dtype).tiny) | (exact == 0)
    np.testing.assert_array_equal(result[normal], exact[normal])
    np.testing.assert_allclose(
        result[~normal], exact[~normal], rtol=0, atol=np.finfo(dtype).smallest_subnormal
    )


BOUNDED = """
def f(X: float32[{0}], N: float32[{0}], Y: output(float32[{0}])):
    for i in range({0}):
        Y[i] = let(n, max_any(min_any(N[i], {1}), {2}), scale(X[i], n))
"""


@pytest.mark.parametrize(
    ("most", "least", "factors"),
    [
        (127.0, -126.0, 1),
        (100.0, 3.0, 1),
        (128.0, -126.0, 2),
        (127.0, -127.0, 2),
        (254.0, -252.0, 2),
        (255.0, -252.0, 4),
        (254.0, -253.0, 4),
    ],
)
def test_a_power_between_two_numbers_takes_fewer_factors(
    most: float, least: float, factors: int
) -> None:
    n = np.arange(-300, 301).astype(np.float32)
    n[::50] = np.nan
    x = np.resize(np.array([1.0, -1.5, 0.75, np.nan], np.float32), n.shape)
    plain = parse(BOUNDED.format(len(n), most, least))
    func = Legalise(ISAS["scalar"])(plain)
    assert sum(isinstance(node, Mul) and node.dtype.is_float for node in walk(func.body)) == factors
    np.testing.assert_array_equal(interpret(func, x, n)[0], interpret(plain, x, n)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scale_by_what_is_no_finite_number(dtype: str) -> None:
    x = np.array([1.0, -1.5, 0.0, 2.0, np.nan], dtype)
    n = np.array([np.nan, np.inf, np.nan, -np.inf, 3.0], dtype)
    expected = np.array([np.nan, -np.inf, np.nan, 0.0, np.nan], dtype)
    plain = parse(SCALE.format(dtype, len(n)))
    for func in (plain, Legalise(ISAS["scalar"])(plain)):
        np.testing.assert_array_equal(interpret(func, x, n)[0], expected)


def test_a_power_that_is_never_nan_is_not_asked_whether_it_is() -> None:
    x = te.placeholder((4,), "float32", name="X")
    for function, asks in ((te.exp, False), (te.exp2, True)):
        y = te.compute((4,), lambda i, f=function: f(x[i]), name="Y")
        expanded = ExpandMath(Target.parse("c:avx512"))(te.func(x, y, name="f"))
        compared = [n for n in walk(Legalise(ISAS["scalar"])(expanded).body) if isinstance(n, NE)]
        assert bool(compared) is asks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max(X[i], 0.5)", "max_any(0.5, X[i])"),
        ("min(0.5, X[i])", "min_any(0.5, X[i])"),
        ("max(X[i], X[i + 1])", "max(X[i], X[i + 1])"),
        ('max(X[i], float("nan"))', 'max(X[i], float("nan"))'),
    ],
)
def test_min_and_max_with_a_number_give_the_other_operand_where_it_is_none_or_as_large(
    text: str, expected: str
) -> None:
    body = "for i in range(4):\n        Y[i] = "
    func = parse(f"def f(X: float32[5], Y: output(float32[4])):\n    {body}{text}\n")
    assert f" = {expected}" in str(Legalise(ISAS["scalar"])(func))


def test_what_the_target_has_stays() -> None:
    func = parse(SCALE.format("float32", 4))
    assert Legalise(Target.parse("c:avx512"))(func) is func


def test_an_elementary_function_is_a_defect() -> None:
    func = parse(
        "def f(X: float32[4], Y: output(float32[4])):\n    for i in range(4):\n        Y[i] = "
        "exp(X[i])\n"
    )
    with pytest.raises(InternalError) as caught:
        Legalise(Target.parse("c:avx2"))(func)
    assert str(caught.value) == (
        "InternalError: legalise: 'exp' of float32 has no instruction and no expansion for c:avx2; "
        "expected an elementary function to be expanded before. [legalise-call]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )
