"""What every pass must do: keep the meaning, keep the interface, have nothing left to do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ir.verify import verify
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.reference.reference import evaluate


def apply(one: GraphPass, graph: Graph) -> Graph:
    """The rewritten graph, after it was checked against the old one on random inputs."""
    text = str(graph)
    after = one(graph)
    assert str(graph) == text, "a pass must not change its input"
    verify(after)
    assert (after.inputs, after.outputs) == (graph.inputs, graph.outputs)
    generator = np.random.default_rng(0)
    feeds = {name: generator.standard_normal(graph.types[name].shape) for name in graph.inputs}
    expected, got = evaluate(graph, feeds), evaluate(after, feeds)
    for name in graph.outputs:
        assert after.types[name] == graph.types[name]
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-6)
    assert one(after) is after, "a pass must have nothing left to do"
    return after


@pytest.fixture(name="apply")
def _apply() -> Callable[[GraphPass, Graph], Graph]:
    return apply


@pytest.fixture
def lines() -> Callable[[Graph], list[str]]:
    """The nodes of a graph as text, without their types."""

    def text(graph: Graph) -> list[str]:
        body = str(graph).splitlines()[2:-1]
        return [line.partition("  #")[0].strip() for line in body]

    return text
