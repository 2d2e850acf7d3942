"""MaxPoolSplitting: maxima along one axis after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.passes.max_pool_splitting import MaxPoolSplitting, pool_steps
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def net(pool: MaxPool, *sizes: int, dtype: str = "float32") -> Graph:
    """A pool alone."""
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType(dtype, (2, *sizes)))
    builder.add(pool, x, output="y")
    return builder.finish(("y",))


def test_a_large_window_is_a_column_and_a_row(apply: Apply, lines: Lines) -> None:
    after = apply(MaxPoolSplitting(), net(MaxPool((5, 4), (1, 1), (2, 1, 2, 2)), 3, 9, 8))
    assert lines(after) == [
        "y.columns = MaxPool[kernel=(5, 1), pads=(2, 0, 2, 0)](x)",
        "y = MaxPool[kernel=(1, 4), pads=(0, 1, 0, 2)](y.columns)",
    ]


@pytest.mark.parametrize(
    ("pool", "sizes", "parts"),
    [
        (MaxPool((3, 3), (2, 2), (1, 1, 1, 1)), (3, 8, 9), 2),
        (MaxPool((3, 3), (2, 2), (1, 1, 1, 1), ceil=True), (3, 8, 9), 2),
        (MaxPool((5, 5), (1, 1), (2, 2, 2, 2), layout="NHWC"), (8, 7, 3), 2),
        (MaxPool((5, 4), (2, 1), (2, 3, 0, 1), (1, 2)), (3, 11, 10), 2),
        (MaxPool((4, 4, 4), (1, 1, 1), (0, 1, 2, 1, 2, 0), (1, 1, 1)), (2, 7, 6, 5), 3),
    ],
)
def test_the_maxima_are_the_same(
    apply: Apply, pool: MaxPool, sizes: tuple[int, ...], parts: int
) -> None:
    before = net(pool, *sizes)
    after = apply(MaxPoolSplitting(), before)
    assert len(after.nodes) == parts
    x = np.random.default_rng(3).standard_normal((2, *sizes), np.float32)
    x[0, 1, 1, 2] = -np.inf
    x[1, 0, :, :] = -np.inf  # windows of nothing else, and of padding
    first, second = (evaluate(graph, {"x": x})["y"] for graph in (before, after))
    assert np.array_equal(first, second)


def test_bytes_are_padded_with_their_least(apply: Apply) -> None:
    before = net(MaxPool((5, 5), (1, 1), (2, 2, 2, 2)), 1, 6, 6, dtype="int8")
    after = MaxPoolSplitting()(before)
    assert len(after.nodes) == 2
    x = np.full((2, 1, 6, 6), -128, np.int8)
    assert (evaluate(after, {"x": x})["y"] == -128).all()


@pytest.mark.parametrize(
    "pool",
    [
        MaxPool((2, 2), (2, 2)),
        MaxPool((3, 3), (1, 1)),
        MaxPool((3, 3), (2, 2), layout="NHWC"),
        MaxPool((9, 1), (1, 1)),
    ],
)
def test_small_windows_stay_whole(pool: MaxPool) -> None:
    graph = net(pool, 4, 20, 20)
    assert MaxPoolSplitting()(graph) is graph


def test_what_a_maximum_takes() -> None:
    assert pool_steps(MaxPool((13, 13), (1, 1))) == 13 + 4 + 13
    assert pool_steps(MaxPool((3, 3), (1, 1))) == 9
    assert pool_steps(MaxPool((3, 3), (2, 2))) == 2 * (3 + 4) + 3 * 4
    assert pool_steps(MaxPool((3, 3), (2, 2), layout="NHWC")) == 9
