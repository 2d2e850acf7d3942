"""ProductTurning: which products are multiplied the other way round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.passes.product_turning import ProductTurning
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def test_scores_of_jax_are_products_of_queries_and_keys(apply: Apply, lines: Lines) -> None:
    """jnp.einsum("bqhd,bkhd->bhqk", q, k) multiplies k and q."""
    net = GraphBuilder("net")
    q = net.input("q", TensorType("float32", (2, 5, 3, 4)))
    k = net.input("k", TensorType("float32", (2, 6, 3, 4)))
    rows = net.add(Transpose((0, 2, 1, 3)), k)
    columns = net.add(Transpose((0, 2, 3, 1)), q)
    net.add(Transpose((0, 1, 3, 2)), net.add(MatMul(), rows, columns), output="y")
    assert lines(apply(ProductTurning(), net.finish(("y",)))) == [
        "transpose_2 = Transpose[permutation=(0, 2, 3, 1)](k)",
        "transpose_3 = Transpose[permutation=(0, 2, 1, 3)](q)",
        "y = MatMul(transpose_3, transpose_2)",
    ]


def test_a_transpose_that_is_left_stands_behind(apply: Apply, lines: Lines) -> None:
    """jnp.einsum("bhqk,bkhd->bqhd", w, v) multiplies v and w."""
    net = GraphBuilder("net")
    w = net.input("w", TensorType("float32", (2, 3, 5, 6)))
    v = net.input("v", TensorType("float32", (2, 6, 3, 4)))
    rows = net.add(Transpose((0, 2, 3, 1)), v)
    columns = net.add(Transpose((0, 1, 3, 2)), w)
    net.add(Transpose((0, 3, 1, 2)), net.add(MatMul(), rows, columns), output="y")
    assert lines(apply(ProductTurning(), net.finish(("y",)))) == [
        "transpose_2 = Transpose[permutation=(0, 2, 1, 3)](v)",
        "y.turned = MatMul(w, transpose_2)",
        "y = Transpose[permutation=(0, 2, 1, 3)](y.turned)",
    ]


def test_a_constant_is_turned_here_and_now(apply: Apply, lines: Lines) -> None:
    net = GraphBuilder("net")
    x = net.input("x", TensorType("float32", (5, 3)))
    w = net.constant("w", np.arange(12, dtype=np.float32).reshape(4, 3))
    columns = net.add(Transpose((1, 0)), x)
    net.add(Transpose((1, 0)), net.add(MatMul(), w, columns), output="y")
    after = apply(ProductTurning(), net.finish(("y",)))
    assert lines(after) == ["y = MatMul(x, w.turned)"]


@pytest.mark.parametrize("case", ["plain", "rows stay", "read twice", "an output", "broadcast"])
def test_products_that_gain_nothing_are_left_alone(case: str) -> None:
    net = GraphBuilder("net")
    x = net.input("x", TensorType("float32", (2, 3, 4, 5)))
    shape = (5, 6) if case == "broadcast" else (2, 3, 5, 6)
    y = net.input("y", TensorType("float32", shape))
    if case == "plain":
        product = net.add(MatMul(), x, y)
    else:
        turned = net.input("t", TensorType("float32", (2, 3, 5, 4)))
        left = net.add(Transpose((0, 1, 3, 2)), turned)
        right = net.input("r", TensorType("float32", (2, 3, 6, 5)))
        turned_too = case == "rows stay"
        other = net.add(Transpose((0, 1, 3, 2)), right) if turned_too else y
        product = net.add(MatMul(), left, other)
    order = (1, 0, 2, 3) if case == "rows stay" else (0, 1, 3, 2)
    outputs = [net.add(Transpose(order), product)]
    if case == "read twice":
        outputs.append(net.add(Transpose((3, 2, 1, 0)), product))
    if case == "an output":
        outputs.append(product)
    graph = net.finish(tuple(outputs))
    assert ProductTurning()(graph) is graph
