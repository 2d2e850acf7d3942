"""LevelQuotients: levels are rounded to without a division, and are the same."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add, Div
from tilewright.graph.ops.functions import Cast, Round
from tilewright.graph.ops.quotients import RoundQuotient
from tilewright.graph.passes.level_quotients import LevelQuotients, has_exact_reciprocal
from tilewright.graph.passes.pipeline import run_by
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Splat, TensorType, owned
from tilewright.runtime.machine.host import host_target
from tilewright.tir.target.target import Target


def levels(
    step: object = 0.1,
    zero: float | None = 3.0,
    kind: str = "uint8",
    shape: tuple[int, ...] = (4, 600),
    shown: bool = False,
) -> Graph:
    """saturate(round(x / step) + zero); shown: what is rounded is a result, too."""
    b = GraphBuilder("levels")
    x = b.input("x", TensorType("float32", shape))
    number = Splat(step, "float32", ()) if isinstance(step, float) else owned(np.asarray(step))
    value = rounded = b.add(Round(), b.add(Div(), x, b.constant("step", number)), output="rounded")
    if zero is not None:
        value = b.add(Add(), value, b.constant("zero", Splat(zero, "float32", ())))
    y = b.add(Cast(kind), value, output="y")
    return b.finish((y, rounded) if shown else (y,))


def data(step: float, shape: tuple[int, ...] = (4, 600)) -> np.ndarray:
    """Ends of levels and their neighbours, and what is no number."""
    ends = ((np.arange(-300, 300) + 0.5) * np.float64(step)).astype(np.float32)
    around = ends.view(np.int32) + np.array([[-1], [0], [1], [0]], np.int32)
    x = around.view(np.float32).copy()
    x[3] = np.resize([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40, -0.0], 600)
    return x.reshape(shape)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("zero", [None, 3.0, -255.0, 255.0])
@pytest.mark.parametrize("step", [0.1, 0.0173, 7.5])
def test_levels_are_the_same(step: float, zero: float | None, kind: str) -> None:
    graph = levels(step, zero, kind)
    after = LevelQuotients()(graph)
    assert [type(node.op) for node in after.nodes].count(RoundQuotient) == 1
    assert not any(isinstance(node.op, Div) for node in after.nodes)
    assert LevelQuotients()(after) is after
    x = {"x": data(step)}
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(after, x)["y"], evaluate(graph, x)["y"])


@pytest.mark.parametrize(
    "graph",
    [
        levels(zero=256.0),
        levels(zero=float("nan")),
        levels(kind="int32"),
        levels(step=2.0**61),
        levels(step=2.0**-61),
        levels(step=-0.1),
        levels(step=np.full(600, 0.1, np.float32)),
        levels(shown=True),
    ],
    ids=["zero", "nan", "wide", "large", "small", "negative", "channels", "shown"],
)
def test_other_quotients_are_divided(graph: Graph) -> None:
    assert LevelQuotients()(graph) is graph


def test_steps_whose_levels_would_differ_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a second float of 0 there are such."""
    steps = np.random.default_rng(1).uniform(0.01, 0.1, 200).astype(np.float32)
    assert all(map(has_exact_reciprocal, steps))
    plain = np.multiply

    def without(x: object, low: object) -> np.ndarray:
        return plain(x, 0 * low)

    monkeypatch.setattr(np, "multiply", without)
    assert not all(map(has_exact_reciprocal, steps))


def test_targets_that_do_not_fuse_divide() -> None:
    kinds = {
        name: [type(one) for one in run_by((LevelQuotients(),), Target.parse(name), strict=True)]
        for name in ("c:avx2", "c:avx512", "c:neon", "c:scalar", "cuda:sm_80")
    }
    assert [name for name, found in kinds.items() if found] == ["c:avx2", "c:avx512", "c:neon"]


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_a_kernel_has_no_division_and_the_same_bits(kind: str) -> None:
    graph = levels(0.0173, 3.0, kind)
    engine = tw.compile(graph, cache=False)
    x, ends = data(0.0173), np.iinfo(kind)
    with np.errstate(all="ignore"):
        rounded = np.nan_to_num(np.rint(x / np.float32(0.0173)) + np.float32(3))
    np.testing.assert_array_equal(engine(x), np.clip(rounded, ends.min, ends.max).astype(kind))
    if host_target().isa != "scalar":
        assert not any(word in engine.source for word in ("div_ps", "vdivq"))
