"""RowProductRecognition: which products read the rows of their second matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.passes.row_product_recognition import RowProductRecognition
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def scores(rows: int, order: tuple[int, ...], shape: tuple[int, ...]) -> Graph:
    """Rows by a transposed stack of matrices."""
    net = GraphBuilder("net")
    b = net.input("b", TensorType("float32", shape))
    columns = net.add(Transpose(order), b)
    stack, inner = net.types[columns].shape[:-2], net.types[columns].shape[-2]
    a = net.input("a", TensorType("float32", (*stack, rows, inner)))
    net.add(MatMul(), a, columns, output="y")
    return net.finish(("y",))


def test_few_rows_meet_rows(apply: Apply, lines: Lines) -> None:
    after = apply(RowProductRecognition(), scores(1, (0, 2, 1), (2, 7, 5)))
    assert lines(after) == ["y = RowProducts(a, b)"]


def test_rows_that_lie_apart_are_moved_whole(apply: Apply, lines: Lines) -> None:
    after = apply(RowProductRecognition(), scores(3, (0, 2, 3, 1), (2, 7, 3, 5)))
    assert lines(after) == [
        "transpose_1 = Transpose[permutation=(0, 2, 1, 3)](b)",
        "y = RowProducts(a, transpose_1)",
    ]


@pytest.mark.parametrize(
    ("rows", "order", "shape"), [(4, (0, 2, 1), (2, 7, 5)), (1, (2, 0, 1), (2, 7, 5))], ids=str
)
def test_many_rows_and_other_columns_stay(
    rows: int, order: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    graph = scores(rows, order, shape)
    assert RowProductRecognition()(graph) is graph


def test_what_others_read_is_transposed_all_the_same() -> None:
    net = GraphBuilder("net")
    b = net.input("b", TensorType("float32", (7, 5)))
    a = net.input("a", TensorType("float32", (1, 5)))
    columns = net.add(Transpose((1, 0)), b, output="t")
    net.add(MatMul(), a, columns, output="y")
    graph = net.finish(("y", "t"))
    assert RowProductRecognition()(graph) is graph


@pytest.mark.needs_cc
def test_a_model_multiplies_by_rows_and_the_engine_is_right() -> None:
    engine = tw.compile(scores(2, (0, 2, 1), (3, 33, 40)))
    rng = np.random.default_rng(0)
    b, a = (rng.standard_normal(s).astype(np.float32) for s in ((3, 33, 40), (3, 2, 40)))
    expected = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    np.testing.assert_allclose(engine(b, a), expected, rtol=1e-4, atol=1e-4)
    assert "transpose" not in str(engine.source)
