from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.base import Operator, ReferenceWork
from tilewright.graph.ops.functions import Cast, Exp, Floor
from tilewright.graph.ops.logic import Less, Where
from tilewright.graph.ops.ranking import ArgMax
from tilewright.graph.reference import oracle
from tilewright.graph.reference.oracle import ModelOracle, model_oracle
from tilewright.graph.types import TensorType


def of(op: Operator, *kinds: str) -> Graph:
    builder = GraphBuilder("g")
    names = [builder.input(f"x{n}", TensorType(kind, (3, 4))) for n, kind in enumerate(kinds)]
    return builder.finish((builder.add(op, *names, output="y"),))


@pytest.mark.parametrize(
    ("graph", "decides"),
    [
        (of(Add(), "float32", "float32"), False),
        (of(Exp(), "float32"), False),
        (of(Cast("float64"), "float32"), False),
        (of(Where(), "bool", "float32", "float32"), False),
        (of(Less(), "int64", "int64"), False),
        (of(Less(), "float32", "float32"), True),
        (of(ArgMax(1), "float32"), True),
        (of(Cast("int32"), "float32"), True),
        (of(Floor(), "float32"), True),
    ],
)
def test_a_model_decides_where_it_makes_whole_numbers_of_floats(
    graph: Graph, decides: bool
) -> None:
    assert ModelOracle(graph).decides is decides


def test_it_computes_in_float64_or_in_the_types_of_the_model() -> None:
    graph = of(Exp(), "float32")
    x = {"x0": np.full((3, 4), 100, np.float32)}
    reference = model_oracle(graph)
    assert isinstance(reference, ModelOracle)
    assert np.isfinite(reference(x)["y"]).all()
    assert np.isinf(reference.in_own_types(x)["y"]).all()


def test_a_model_that_is_too_large_to_evaluate_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "check_limits", lambda: ReferenceWork(10, 1 << 30))
    assert model_oracle(of(Exp(), "float32")) == (
        "not run: the reference takes up to 288 bytes; at most 80 are allowed"
    )
