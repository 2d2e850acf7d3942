"""tir/te/functions.py: each function of numbers by NumPy's, within what it states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.tir.errors import IRError
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
SMALL = np.concatenate([np.linspace(-6, 6, 991), np.geomspace(1e-6, 1, 9), [0.0]])
POSITIVE = np.geomspace(1e-30, 1e30, 1001)

# name -> NumPy's function in float64, the samples, and the ulp of float32 that are stated
STATED: dict[str, tuple[Callable[[Array], Array], Array, float]] = {
    "sin": (np.sin, SMALL * 1000, 3),
    "cos": (np.cos, SMALL * 1000, 3),
    "tan": (np.tan, SMALL * 100, 7),
    "atan": (np.arctan, np.concatenate([SMALL, SMALL * 1000, POSITIVE]), 3),
    "asin": (np.arcsin, SMALL / 6, 6),
    "acos": (np.arccos, SMALL / 6, 5),
    "asinh": (np.arcsinh, np.concatenate([SMALL, SMALL * 1000, POSITIVE]), 5),
    "acosh": (np.arccosh, np.concatenate([POSITIVE + 1, np.geomspace(1e-7, 1, 999) + 1]), 5),
    "atanh": (np.arctanh, SMALL / 6.001, 5),
    "expm1": (np.expm1, SMALL, 5),
    "log1p": (np.log1p, np.abs(SMALL), 2),
    "log2": (np.log2, POSITIVE, 4),
    "log10": (np.log10, POSITIVE, 4),
    "sinh": (np.sinh, SMALL, 7),
    "cosh": (np.cosh, SMALL, 4),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), SMALL * 10, 4),
    "relu": (lambda x: np.maximum(x, 0), SMALL, 0),
    "sign": (np.sign, SMALL, 0),
    "square": (np.square, SMALL, 0.5),
    "reciprocal": (np.reciprocal, POSITIVE, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, 1.5),
    "ceil": (np.ceil, SMALL, 0),
    "floor": (np.floor, SMALL, 0),
    "trunc": (np.trunc, SMALL, 0),
}


@pytest.mark.sampled(4)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", STATED)
def test_a_kernel_gives_what_is_stated(name: str) -> None:
    exact, samples, ulps = STATED[name]
    data = samples.astype(np.float32)
    x = te.placeholder((len(data),), "float32", name="X")
    y = te.compute((len(data),), lambda i: getattr(te, name)(x[i]), name="Y")
    wanted = exact(data.astype(np.float64))
    found = tw.build(te.func(x, y, name="f"))(data)
    error = np.abs(found - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert error.max() <= ulps + 1e-6


@pytest.mark.parametrize("kind", ["float32", "int32", "uint8"])
def test_relu_sign_and_square_take_integers(kind: str) -> None:
    values = np.array([0, 3, 7] if kind == "uint8" else [-5, 0, 3], kind)
    x = te.placeholder((3,), kind, name="X")
    outputs = [
        te.compute((3,), lambda i, f=f: f(x[i]), name=f.__name__)
        for f in (te.relu, te.sign, te.square)
    ]
    kernel = tw.build(te.func(x, *outputs, name="f"), "python")
    for found, wanted in zip(
        kernel(values), (np.maximum(values, 0), np.sign(values), values * values), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_exceptional_values_are_those_of_numpy() -> None:
    values = np.array([np.nan, np.inf, -np.inf, -200, 200], np.float32)
    x = te.placeholder((5,), "float32", name="X")
    names = ("relu", "sign", "sigmoid", "trunc", "ceil")
    outputs = [te.compute((5,), lambda i, n=n: getattr(te, n)(x[i]), name=n) for n in names]
    with np.errstate(over="ignore"):
        found = tw.build(te.func(x, *outputs, name="f"), "python")(values)
        sigmoid = 1 / (1 + np.exp(-values.astype(np.float64)))
    expected = (np.maximum(values, 0), np.sign(values), sigmoid, np.trunc(values), np.ceil(values))
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-38)


@pytest.mark.parametrize("name", ["sin", "log1p", "sigmoid", "rsqrt", "trunc", "reciprocal"])
def test_functions_of_floats_refuse_integers(name: str) -> None:
    x = te.placeholder((3,), "int32", name="X")
    with pytest.raises(IRError):
        getattr(te, name)(x[0])


@pytest.mark.parametrize(("source", "to"), [("float32", "int32"), ("uint64", "float64")])
def test_bits_are_read_as_another_type(source: str, to: str) -> None:
    x = te.placeholder((9,), source, name="X")
    func = te.func(x, te.compute((9,), lambda i: te.reinterpret(x[i], to), name="Y"), name="f")
    given = np.linspace(-2, 7, 9).astype(source if source[0] == "f" else to).view(source)
    (found,) = interpret(func, given)
    np.testing.assert_array_equal(found, given.view(to))
    np.testing.assert_array_equal(evaluate(func, [given])["Y"], given.view(to))


@pytest.mark.parametrize(("source", "to"), [("float16", "int16"), ("float32", "int64")])
def test_bits_of_other_widths_are_refused(source: str, to: str) -> None:
    x = te.placeholder((9,), source, name="X")
    with pytest.raises(IRError) as refused:
        te.reinterpret(x[0], to)
    assert str(refused.value) == (
        f"IRTypeError: te.reinterpret: the value is {source}, wanted is {to}; expected two types "
        "of 32 bits, or of 64. [te-reinterpret]"
    )
