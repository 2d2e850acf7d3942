"""runtime/engine/occupied.py: no call writes into an array that a constant was bound to."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.types import TensorType
from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.occupied import Occupied
from tilewright.runtime.kernel import Kernel
from tilewright.tir.te import te

pytestmark = pytest.mark.needs_cc

SHAPE = (6, 8)
A = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)


def sum_with(b: np.ndarray) -> Kernel:
    """A + B, B bound."""
    x = te.placeholder(SHAPE, "float32", name="A")
    y = te.placeholder(SHAPE, "float32", name="B", constant=True)
    c = te.compute(SHAPE, lambda i, j: x[i, j] + y[i, j], name="C")
    return tw.build(te.func(x, y, c, name="sum"), constants={"B": b})


def test_a_constant_that_is_given_to_a_call_is_not_taken_for_its_output() -> None:
    b = np.ones(SHAPE, np.float32)
    kernel = sum_with(b)
    with pytest.raises(ArgumentValueError) as caught:
        kernel(A, b)
    assert str(caught.value) == (
        "ArgumentValueError: sum: 'C' is written and shares memory with the array that the "
        "constant 'B' was bound to. [argument-constant]\n"
        "  Hint: constants are bound once and not given to a call.\n"
        "  Hint: C: an array of its own."
    )
    assert np.array_equal(b, np.ones(SHAPE))
    assert np.array_equal(kernel(A), A + 1)
    with pytest.raises(ArgumentTypeError, match="3 arrays given"):
        kernel(A, b, np.empty(SHAPE, np.float32))
    with pytest.raises(ArgumentTypeError, match="0 arrays given"):
        kernel()


def test_a_part_of_the_memory_is_enough_and_memory_beside_it_is_free() -> None:
    both = np.ones((14, 8), np.float32)
    kernel = sum_with(both[:6])
    with pytest.raises(ArgumentValueError, match="argument-constant"):
        kernel(A, both[3:9])
    assert kernel(A, both[6:12]) is not None
    assert np.array_equal(both[6:12], A + 1)


def test_memory_that_is_gone_is_free() -> None:
    b = np.ones(SHAPE, np.float32)
    occupied = Occupied([{"B": b}])
    place = np.frombuffer(memoryview(b), np.float32)
    with pytest.raises(ArgumentValueError):
        occupied.check("sum", ["C"], [place])
    kept = Occupied([{"B": np.array(A)}])  # an array that nobody holds any more
    kept.check("sum", ["C"], [place])
    Occupied([{"B": np.empty((0, 3))}]).check("sum", ["C"], [place, *()])


def network(w: np.ndarray) -> Graph:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", SHAPE))
    c = builder.constant("w", w)
    return builder.finish({"y": builder.add(Add(), x, c), "same": c, "through": x})


@pytest.fixture(params=["c", "python"])
def engine(request: pytest.FixtureRequest) -> tuple[Engine, np.ndarray]:
    w = np.ones(SHAPE, np.float32)
    return tw.compile(network(w), request.param, cache=False), w


def test_an_engine_does_not_write_into_the_weights_that_it_was_compiled_of(
    engine: tuple[Engine, np.ndarray],
) -> None:
    made, w = engine
    with pytest.raises(ArgumentValueError) as caught:
        made.run({"x": A}, out={"y": w})
    assert caught.value.message == (
        "net: 'y' is written and shares memory with the array that the constant 'same' was bound "
        "to."
    )
    with pytest.raises(ArgumentValueError, match="argument-constant"):
        made.context(1).bind({"x": A}, {"same": w})
    with pytest.raises(ArgumentValueError, match="shares memory with 'x'"):
        made.run({"x": A}, out={"through": A})
    assert np.array_equal(w, np.ones(SHAPE))
    assert made.verify({"x": A})


def test_outputs_that_are_inputs_or_constants_are_copies(engine: tuple[Engine, np.ndarray]) -> None:
    made, w = engine
    first = made.run({"x": A})
    for name in ("same", "through"):
        first[name][...] = 9
    again = made.run({"x": A}, out={"y": first["same"]})
    assert np.array_equal(again["same"], w)
    assert np.array_equal(again["through"], A)
    assert np.array_equal(first["same"], A + 1)
