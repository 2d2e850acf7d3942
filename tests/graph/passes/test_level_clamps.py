"""LevelClamps: levels that are floats again at once are clamped, and no bytes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add, Sub
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.saturation import Within
from tilewright.graph.passes.level_clamps import LevelClamps
from tilewright.graph.passes.level_quotients import LevelQuotients
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType

from .quantised import Quantised


def between_floats(
    zero: float = 3.0, less: float = 3.0, kind: str = "uint8", read: str = "", wide: bool = False
) -> Graph:
    """float(saturate(round(x / 0.03) + zero)) - less, times a scale; read: what the caller has."""
    net = Quantised()
    x = net.input("x", TensorType("float32", (7, 600)))
    levels = net.levels(x, net.number(0.03), net.number(zero), kind, output="levels")
    floats = net.add(Cast("float64" if wide else "float32"), levels, output="floats")
    scale = "float64" if wide else "float32"
    less_ = net.add(Sub(), floats, net.number(less, scale), output="less")
    net.add(Add(), less_, net.number(0.5, scale), output="y")
    return net.finish(("y", read) if read else ("y",))


def data() -> np.ndarray:
    """What is beyond either end, between them, at ties, and no number."""
    x = np.linspace(-12, 12, 4200, dtype=np.float32).reshape(7, 600)
    x[0, :8] = [np.nan, np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0, 0.045]
    return x


@pytest.mark.parametrize("zero", [0.0, 3.0, 128.0, 255.0])
@pytest.mark.parametrize("divided", [True, False])
def test_the_floats_have_the_same_bits(zero: float, divided: bool) -> None:
    graph = between_floats(zero, zero)
    before = graph if divided else LevelQuotients()(graph)
    after = LevelClamps()(before)
    kinds = [type(node.op) for node in after.nodes]
    assert kinds.count(Within) == 1
    assert not {Cast, Sub} & set(kinds)
    assert LevelClamps()(after) is after
    x = {"x": data()}
    with np.errstate(all="ignore"):
        found, wanted = evaluate(after, x)["y"], evaluate(graph, x)["y"]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "graph",
    [
        between_floats(zero=256.0, less=256.0),
        between_floats(zero=-1.0, less=-1.0),
        between_floats(zero=2.5, less=2.5),
        between_floats(less=4.0),
        between_floats(kind="int8"),
        between_floats(wide=True),
        between_floats(read="levels"),
        between_floats(read="floats"),
    ],
    ids=["large", "negative", "broken", "another", "signed", "wide", "bytes", "shown"],
)
def test_other_floats_are_made_of_bytes(graph: Graph) -> None:
    assert LevelClamps()(graph) is graph


@pytest.mark.needs_cc
def test_a_kernel_clamps_between_ends_that_are_operands() -> None:
    """Other zeros are other ends, not another kernel."""
    engine = tw.compile(between_floats(), cache=False)
    assert "epi8" not in str(engine.source)
    x = data()
    with np.errstate(all="ignore"):
        wanted = evaluate(between_floats(), {"x": x})["y"]
    np.testing.assert_array_equal(engine(x), wanted)
    body = str(engine.source).split("_body(")[1]
    assert not [number for number in ("255", "252", "3.0f") if number in body]
