"""runtime/call_names.py: arguments by name, for kernels and for engines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.types import TensorType
from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError, Array
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.kernel import Kernel

N = 6
X = np.arange(N, dtype=np.float32)
WEIGHTS = np.full(N, 3, np.float32)


A = te.placeholder((N,), "float32", name="A")
W = te.placeholder((N,), "float32", name="W", constant=True)
C = te.compute((N,), lambda i: A[i] * W[i], name="C")
D = te.compute((N,), lambda i: A[i] + W[i], name="D")


def kernel_of(*outputs: te.Tensor) -> Kernel:
    return tw.build(te.func(A, W, *outputs, name="f"), "python", constants={"W": WEIGHTS})


ONE, TWO = kernel_of(C), kernel_of(C, D)


def new() -> Array:
    return np.empty(N, np.float32)


def test_inputs_and_outputs_may_be_named() -> None:
    c = new()
    assert np.array_equal(ONE(A=X), X * 3)
    assert ONE(A=X, C=c) is c
    assert ONE(X, C=c) is c
    assert ONE(C=c, A=X, threads=1) is c


@pytest.mark.parametrize("form", [tuple, list, lambda pair: dict(zip("CD", pair, strict=True))])
def test_out_is_an_array_or_one_for_each_output(form: Callable[[object], object]) -> None:
    c, d = new(), new()
    assert ONE(X, out=c) is c
    first, second = TWO(A=X, out=form((c, d)))
    assert first is c
    assert second is d
    assert np.array_equal(d, X + 3)


def text(call: Callable[[], object], error: type[Exception] = ArgumentTypeError) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_names_that_are_not_there_are_named() -> None:
    assert text(lambda: TWO(B=X)) == (
        "ArgumentTypeError: f: there is no argument 'B'; expected 'A', 'C', 'D'. [argument-name]"
    )
    assert text(lambda: ONE(X, W=WEIGHTS)) == (
        "ArgumentTypeError: f: there is no argument 'W'; expected 'A', 'C'. [argument-name]\n"
        "  Hint: constants are bound once and not given to a call."
    )
    assert "no argument 'E'" in text(lambda: TWO(X, out={"C": new(), "E": new()}))


def test_what_is_missing_is_named() -> None:
    assert text(lambda: TWO(X, D=new())) == (
        "ArgumentTypeError: f: the output 'C' is missing; got A, D. [argument-missing]\n"
        "  Hint: f(A=..., C=..., D=...)"
    )
    assert text(lambda: ONE(out=new())) == (
        "ArgumentTypeError: f: the input 'A' is missing; got C. [argument-missing]\n"
        "  Hint: f(A=..., C=...)"
    )


def test_an_argument_is_given_once() -> None:
    for call in (
        lambda: ONE(X, A=X),
        lambda: ONE(X, new(), out=new()),
        lambda: ONE(A=X, C=X, out=X),
    ):
        assert text(call).endswith("is given twice; expected each argument once. [argument-twice]")
    assert text(lambda: ONE(X, X, X, out=new())) == (
        "ArgumentTypeError: f: 3 arrays given; expected 2 or fewer: A, C. [argument-many]"
    )


def test_out_has_an_array_for_each_output() -> None:
    assert text(lambda: TWO(X, out=new())) == (
        "ArgumentTypeError: f: out is one array; expected 2: C, D. [argument-out]\n"
        "  Hint: out={'C': ..., 'D': ...}"
    )
    assert "out is 3 arrays; expected 1: C" in text(lambda: ONE(X, out=(new(), new(), new())))


def test_a_named_output_is_checked_as_any_other() -> None:
    assert "argument-overlap" in text(lambda: ONE(A=X, out=X), ArgumentValueError)
    assert "argument-constant" in text(lambda: ONE(X, out=WEIGHTS), ArgumentValueError)
    assert "Hint: np.empty((6,), np.float32)" in text(lambda: ONE(X, out=np.empty(N)))


@pytest.fixture(scope="module")
def engine() -> Engine:
    builder = GraphBuilder("net")
    x, y = (builder.input(name, TensorType("float32", (N,))) for name in "xy")
    nodes = {"sum": builder.add(Add(), x, y), "product": builder.add(Mul(), x, y)}
    return tw.compile(builder.finish(nodes), "python")


def test_an_engine_takes_names_and_out(engine: Engine) -> None:
    total, product = new(), new()
    assert np.array_equal(engine(x=X, y=WEIGHTS)[0], X + WEIGHTS)
    first, second = engine(X, y=WEIGHTS, out=(total, product))
    assert first is total
    assert second is product
    assert engine(X, WEIGHTS, out={"product": product})[1] is product
    assert np.array_equal(product, X * WEIGHTS)
    assert np.array_equal(WEIGHTS, np.full(N, 3))


def test_an_engine_refuses_what_a_run_refuses(engine: Engine) -> None:
    assert "input 'y' is missing" in text(lambda: engine(x=X))
    assert "there is no input 'z'" in text(lambda: engine(X, z=X))
    assert "'x' is given twice" in text(lambda: engine(X, x=X, y=X))
    assert "out is one array; expected 2: sum, product" in text(lambda: engine(X, X, out=new()))
