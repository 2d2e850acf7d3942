"""The oracle: the whole graph, any value of it, in the precision that is asked for."""

from __future__ import annotations

import tracemalloc
import weakref

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.gathering import Gather
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.reference.reference import computed, evaluate
from tilewright.graph.types import Splat, TensorType


def chain() -> Graph:
    """y = relu(x + 0.1) * relu(x + 0.1), and an integer beside it."""
    b = GraphBuilder("chain")
    x = b.input("x", TensorType("float32", (3,)))
    n = b.input("n", TensorType("int64", (2, 2)))
    shifted = b.add(Add(), x, b.constant("c", Splat(0.1, "float32", ())), output="shifted")
    positive = b.add(Relu(), shifted, output="positive")
    b.add(Mul(), positive, positive, output="y")
    b.add(Reshape((4,)), n, output="flat")
    return b.finish(("y", "flat"))


FEEDS = {"x": np.array([-1.0, 0.0, 2.0], "float32"), "n": np.array([[1, 2], [3, 4]])}


def test_outputs_are_computed_in_float64_unless_told() -> None:
    results = evaluate(chain(), FEEDS)
    assert list(results) == ["y", "flat"]
    assert results["y"].dtype == np.float64
    np.testing.assert_allclose(results["y"], [0.0, 0.01, 4.41], rtol=1e-7)
    assert results["flat"].dtype == np.int64
    assert evaluate(chain(), FEEDS, dtype="float32")["y"].dtype == np.float32
    assert evaluate(chain(), FEEDS, dtype=None)["y"].dtype == np.float32


def test_any_value_may_be_asked_for() -> None:
    results = evaluate(chain(), FEEDS, values=("positive", "x", "c", "shifted"))
    assert list(results) == ["positive", "x", "c", "shifted"]
    np.testing.assert_allclose(results["shifted"], [-0.9, 0.1, 2.1])
    assert results["c"].shape == ()


def test_a_value_comes_when_it_is_computed_and_goes_after_its_last_use() -> None:
    names, seen = ("y", "shifted", "c", "positive"), {}
    for name, array in computed(chain(), FEEDS, names, dtype="float64"):
        seen[name] = weakref.ref(array)
        if name == "y":
            assert seen["shifted"]() is None
            assert seen["positive"]() is None
            assert array is seen["y"]()
    assert list(seen) == ["c", "shifted", "positive", "y"]


def test_what_does_not_fit_is_refused() -> None:
    cases = {
        "evaluate: graph 'chain' has no value 'z'. [evaluate-value]": (FEEDS, ("z",)),
        "evaluate: graph 'chain' takes inputs n, x, got x. [evaluate-inputs]": (
            {"x": FEEDS["x"]},
            None,
        ),
        "evaluate: input 'x' is float32[3], got an array of shape (2,). [evaluate-shape]": (
            {**FEEDS, "x": np.zeros(2)},
            None,
        ),
    }
    for text, (feeds, values) in cases.items():
        with pytest.raises(ModelError) as caught:
            evaluate(chain(), feeds, values=values)
        assert str(caught.value) == f"ModelError: {text}"


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("dtype", "made"), [("float64", "float64"), (None, "float32")])
def test_of_a_table_what_is_taken_is_converted(
    dtype: str | None, made: str, constant: bool
) -> None:
    table = np.random.default_rng(0).standard_normal((5000, 16), np.float32)
    b = GraphBuilder("table")
    rows = b.input("rows", TensorType("int64", (2,)))
    kind = TensorType("float32", table.shape)
    read = b.constant("c", table) if constant else b.input("c", kind)
    b.add(Gather(0), read, rows, output="y")
    graph, feeds = b.finish(("y",)), {"rows": np.array([4999, 3])}
    feeds |= {} if constant else {"c": table}
    tracemalloc.start()
    found = evaluate(graph, feeds, dtype=dtype)["y"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.dtype == made
    np.testing.assert_array_equal(found, table[[4999, 3]])
    assert peak < table.nbytes


def test_what_is_moved_keeps_the_precision_that_it_is_given_in() -> None:
    b = GraphBuilder("turned")
    x = b.input("x", TensorType("float32", (2, 2)))
    b.add(Reshape((4,)), x, output="y")
    graph, given = b.finish(("y", "x")), np.array([[1 + 1e-12, 2], [3, 4]])
    found = evaluate(graph, {"x": given})
    np.testing.assert_array_equal(found["y"], given.reshape(-1))
    np.testing.assert_array_equal(found["x"], given)
    assert evaluate(graph, {"x": given}, dtype=None)["y"].dtype == np.float32
