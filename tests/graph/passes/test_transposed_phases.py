"""TransposedPhases: transposed convolutions without the zeros between their pixels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.slicing import Spread
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.passes.transposed_phases import TransposedPhases
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import Size, size_of

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def net(
    kernel: tuple[int, ...],
    steps: tuple[int, ...],
    pads: tuple[int, ...],
    *,
    dilations: tuple[int, ...] | None = None,
    groups: int = 1,
    channels: tuple[int, int] = (4, 6),
    bias: bool = True,
    sizes: tuple[int | Size, ...] = (5, 4, 3),
) -> Graph:
    """A convolution of pixels that stand apart."""
    rng, n = np.random.default_rng(1), len(kernel)
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (2, channels[0], *sizes[:n])))
    shape = (channels[1], channels[0] // groups, *kernel)
    w = builder.constant("w", rng.standard_normal(shape, np.float32))
    b = [builder.constant("b", rng.standard_normal(channels[1], np.float32))] if bias else []
    spread = builder.add(Spread((1, 1, *steps)), x)
    op = Conv((1,) * n, pads, dilations or (1,) * n, groups)
    builder.add(op, spread, w, *b, output="y")
    return builder.finish(("y",))


def test_phases_are_channels_of_one_convolution(apply: Apply, lines: Lines) -> None:
    after = apply(TransposedPhases(), net((4, 4), (2, 2), (2, 2, 2, 2)))
    assert lines(after) == [
        "conv = Conv[pads=(1, 1, 1, 1)](x, w.phases, b.phases)",
        "reshape = Reshape[shape=(2, 1, 2, 2, 6, 6, 5)](conv)",
        "transpose = Transpose[permutation=(0, 1, 4, 5, 2, 6, 3)](reshape)",
        "reshape_1 = Reshape[shape=(2, 6, 12, 10)](transpose)",
        "y = Slice[starts=(0, 0, 1, 1), sizes=(2, 6, 10, 8), steps=(1, 1, 1, 1)](reshape_1)",
    ]
    assert after.types["w.phases"].shape == (24, 4, 2, 2)


def test_phases_with_fewer_weights_are_convolutions_of_their_own(apply: Apply) -> None:
    after = apply(TransposedPhases(), net((3, 3), (2, 2), (1, 1, 2, 2)))
    weights = [after.types[node.inputs[1]].shape for node in after.nodes if node.op.title == "Conv"]
    assert weights == [(6, 4, 2, 2), (6, 4, 2, 1), (6, 4, 1, 2), (6, 4, 1, 1)]


@pytest.mark.parametrize(
    ("kernel", "steps", "pads"),
    [
        ((2,), (2,), (1, 1)),
        ((7,), (3,), (4, 5)),
        ((16,), (8,), (11, 11)),
        ((9,), (4,), (8, 8)),
        ((2, 2), (2, 2), (1, 1, 1, 1)),
        ((5, 4), (2, 3), (2, 3, 5, 1)),
        ((3, 3), (2, 1), (1, 1, 3, 0)),
        ((2, 3, 4), (2, 3, 2), (1, 2, 1, 1, 0, 4)),
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_each_result_has_its_own_terms(
    apply: Apply,
    kernel: tuple[int, ...],
    steps: tuple[int, ...],
    pads: tuple[int, ...],
    groups: int,
) -> None:
    before = net(kernel, steps, pads, groups=groups, bias=groups == 1)
    after = apply(TransposedPhases(), before)
    assert not any(node.op.title == "Spread" for node in after.nodes)


def test_an_axis_without_steps_keeps_its_dilation(apply: Apply, lines: Lines) -> None:
    before = net((2, 3), (2, 1), (1, 2, 1, 2), dilations=(1, 2))
    after = apply(TransposedPhases(), before)
    assert "Conv[pads=(0, 2, 0, 2), dilations=(1, 2)]" in lines(after)[0]


@pytest.mark.parametrize(("kernel", "pads"), [((4, 4), (2, 2, 2, 2)), ((3, 3), (1, 1, 1, 1))])
def test_sizes_may_be_open(apply: Apply, kernel: tuple[int, ...], pads: tuple[int, ...]) -> None:
    height = size_of(Dim("h", low=1, high=9))
    before = net(kernel, (2, 2), pads, sizes=(height, 4))
    after = TransposedPhases()(before)
    assert after is not before
    for rows in (1, 2, 5):
        x = {"x": np.random.default_rng(rows).standard_normal((2, 4, rows, 4))}
        np.testing.assert_allclose(evaluate(after, x)["y"], evaluate(before, x)["y"], rtol=1e-9)


def test_an_infinity_reaches_what_reads_it_alone() -> None:
    """A weight of 0 in its stead would make a NaN of it."""
    before = net((3, 3), (2, 2), (1, 1, 1, 1))
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 4))
    x[0, 1, 2, 2] = np.inf
    after = TransposedPhases()(before)
    with np.errstate(invalid="ignore"):
        finite, now = (np.isfinite(evaluate(graph, {"x": x})["y"]) for graph in (before, after))
    assert np.array_equal(finite, now)
    assert 0 < (~now).sum() < 60


@pytest.mark.parametrize(
    "left",
    [
        net((2, 2), (3, 1), (1, 1, 1, 1)),  # phases without weights
        net((2, 2), (2, 2), (1, 1, 1, 1), dilations=(2, 2)),
        net((2, 2), (2, 2), (1, 1, 1, 1), groups=4, channels=(4, 4)),  # depthwise
        net((3, 3), (2, 2), (0, 0, 0, 0)),  # a phase would begin within the pixels
    ],
)
def test_others_stay(left: Graph) -> None:
    assert TransposedPhases()(left) is left


def test_zeros_that_another_reads_stay() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 2, 3, 3)))
    w = builder.constant("w", np.ones((2, 2, 2, 2), np.float32))
    spread = builder.add(Spread((1, 1, 2, 2)), x, output="z")
    builder.add(Relu(), spread, output="r")
    builder.add(Conv((1, 1), (1, 1, 1, 1)), spread, w, output="y")
    graph = builder.finish(("y", "r"))
    assert TransposedPhases()(graph) is graph


def test_weights_of_each_run_stay() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 2, 3, 3)))
    w = builder.input("w", TensorType("float32", (2, 2, 2, 2)))
    spread = builder.add(Spread((1, 1, 2, 2)), x)
    builder.add(Conv((1, 1), (1, 1, 1, 1)), spread, w, output="y")
    graph = builder.finish(("y",))
    assert TransposedPhases()(graph) is graph
