"""codegen/lower/math/expand.py: what is left is one instruction each."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.arithmetic.legalise import Legalise
from tilewright.codegen.lower.math import ExpandMath
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call, Let
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.lowered import Fma
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.visit import walk

TARGET = Target.parse("c:avx2")
SCALAR = Target.parse("c:scalar")

FUNCTIONS = {
    "exp": te.exp,
    "exp2": te.exp2,
    "log": te.log,
    "tanh": te.tanh,
    "erf": te.erf,
    "gelu": te.gelu,
    "pow": lambda x: te.pow(x, x),
    "pow_constant": lambda x: te.pow(x, 0.7),
    "nested": lambda x: te.exp(te.tanh(x) * 2) + te.log(te.exp(x)),
}
VALUES = np.array([0.0, -0.0, 0.3, -0.7, 1, 2.5, -9.5, 80, -200, np.inf, -np.inf, np.nan])


def function_of(name: str, kind: str = "float32") -> PrimFunc:
    x = te.placeholder((len(VALUES),), kind, name="X")
    y = te.compute((len(VALUES),), lambda i: FUNCTIONS[name](x[i]), name="Y")
    return te.func(x, y, name=name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_call_left_is_one_instruction(name: str) -> None:
    expanded = ExpandMath(TARGET)(function_of(name))
    calls = {n.intrinsic for n in walk(expanded.body) if isinstance(n, Call)}
    assert not [intrinsic.name for intrinsic in calls if intrinsic.elementary]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_interpreter_and_whole_arrays_give_the_same_bits(name: str, kind: str) -> None:
    expanded = ExpandMath(TARGET)(function_of(name, kind))
    x = VALUES.astype(kind)
    (y,) = interpret(expanded, x)
    np.testing.assert_array_equal(evaluate(expanded, [x])["Y"], y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_value_is_that_of_the_function(name: str) -> None:
    func, x = function_of(name), VALUES.astype(np.float32)
    expected = evaluate(func, [x])["Y"]
    tiny = np.finfo(np.float32).smallest_normal
    np.testing.assert_allclose(
        evaluate(ExpandMath(TARGET)(func), [x])["Y"], expected, 2e-6, atol=tiny
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_target_without_fused_multiply_add_gets_none(name: str) -> None:
    expanded, fused = (ExpandMath(target)(function_of(name)) for target in (SCALAR, TARGET))
    counts = [sum(isinstance(n, Fma) for n in walk(func.body)) for func in (expanded, fused)]
    assert counts[0] == 0
    assert counts[1] > 0
    x = VALUES.astype(np.float32)
    np.testing.assert_allclose(
        evaluate(expanded, [x])["Y"], evaluate(fused, [x])["Y"], 3e-6, atol=1.2e-38
    )


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "gelu", "pow"])
def test_bounded_exponents_change_no_bit(name: str, kind: str) -> None:
    """Legalised, too, where the powers of two are one or two factors."""
    edge = 760.0 if kind == "float64" else 110.0
    edge *= 1.5 if name == "exp2" else 1.0
    x = np.concatenate([VALUES, np.linspace(-edge, edge, 20_001), np.linspace(-1, 1, 999)])
    x = x.astype(kind)
    tensor = te.placeholder(x.shape, kind, name="X")
    function = {**FUNCTIONS, "pow": lambda x: te.pow(te.exp2(x), 0.7), "expm1": te.expm1}[name]
    y = te.compute(x.shape, lambda i: function(tensor[i]), name="Y")
    func = te.func(tensor, y, name=name)
    plain, bounded = (ExpandMath(t)(func) for t in (Target.parse("c:avx512"), TARGET))
    assert "let(power, max_any(" in str(bounded)
    assert "let(power, max_any(" not in str(plain)
    legal = Legalise(TARGET)(bounded)
    assert "scale(" not in str(legal)
    expected = evaluate(plain, [x])["Y"]
    for other in (bounded, legal):
        np.testing.assert_array_equal(evaluate(other, [x])["Y"], expected)


def test_an_argument_is_evaluated_once() -> None:
    for name in ("exp", "exp2", "log", "tanh", "erf", "gelu", "pow_constant"):
        expanded = ExpandMath(TARGET)(function_of(name))
        assert len([n for n in walk(expanded.body) if isinstance(n, Load)]) == 1, name


def test_new_variables_are_bound_once() -> None:
    expanded = ExpandMath(TARGET)(function_of("nested"))
    bound = [n.var for n in walk(expanded.body) if isinstance(n, Let)]
    assert len(set(bound)) == len(bound) > 4


def test_a_function_without_calls_is_returned_as_it_is() -> None:
    x = te.placeholder((4,), "float32", name="X")
    y = te.compute((4,), lambda i: te.sqrt(x[i]) * 2, name="Y")
    func = te.func(x, y, name="plain")
    assert ExpandMath(TARGET)(func) is func
    expanded = ExpandMath(TARGET)(function_of("nested"))
    assert ExpandMath(TARGET)(expanded) is expanded


def test_the_expansions_read_like_their_definition(golden) -> None:
    names = ("exp", "exp2", "log", "erf", "gelu")
    texts = [str(ExpandMath(TARGET)(function_of(name))) for name in names]
    golden("math/expansions.txt", "\n\n".join(texts))
