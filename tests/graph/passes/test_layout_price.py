"""Which spatial operators keep their channels first at the rim of a network."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.ops.pooling import AveragePool, MaxPool
from tilewright.graph.passes.layout import ChannelsLast
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]


class Rim(GraphBuilder):
    """A builder of operators on an image of some channels."""

    def __init__(self, *sizes: int, dtype: str = "float32") -> None:
        super().__init__("g")
        self.x = self.input("x", TensorType(dtype, (1, *sizes)))

    def conv(self, x: str, outputs: int, *kernel: int, groups: int = 1, stride: int = 1) -> str:
        shape = (outputs, self.types[x].shape[1] // groups, *kernel)
        values = np.linspace(-1, 1, math.prod(shape), dtype=self.types[x].dtype).reshape(shape)
        w, n = self.constant(self.fresh("w"), values), len(kernel)
        pads = tuple(taps // 2 for taps in kernel) * 2
        return self.add(Conv((stride,) * n, pads, (1,) * n, groups), x, w)


def layouts(graph: Graph) -> list[str]:
    """Of the operators that have one; "to" of a Transpose."""
    found = (
        getattr(node.op, "layout", "to" * isinstance(node.op, Transpose)) for node in graph.nodes
    )
    return [layout for layout in found if layout]


@pytest.mark.parametrize("pool", [MaxPool((2, 2), (2, 2)), AveragePool((3, 3), pads=(1, 1, 1, 1))])
def test_a_pool_alone_keeps_its_channels_first(apply: Apply, pool: Operator) -> None:
    b = Rim(8, 32, 32)
    graph = b.finish((b.add(pool, b.add(Relu(), b.x)),))
    assert apply(ChannelsLast(), graph) is graph


@pytest.mark.parametrize(
    ("sizes", "outputs", "kernel", "groups", "stride", "expected"),
    [
        ((32, 24, 32), 32, (3, 3), 32, 1, ["NCHW"]),  # depthwise
        ((32, 24, 32), 64, (3, 3), 32, 1, ["NCHW"]),  # two of each
        ((32, 24, 32), 32, (9, 9), 32, 1, ["to", "NHWC", "to"]),  # the sums outweigh the moves
        ((32, 24, 64), 32, (3, 3), 32, 2, ["NCHW"]),  # lanes are gathered
        ((32, 24, 64), 32, (5, 5), 32, 2, ["to", "NHWC", "to"]),  # too many are
        ((32, 24, 7), 32, (5, 5), 32, 1, ["to", "NHWC", "to"]),  # rows of half a vector
        ((64, 24, 32), 3, (3, 3), 1, 1, ["NCHW"]),  # three lanes of sixteen
        ((64, 24, 32), 64, (1, 1), 1, 1, ["to", "NHWC", "to"]),  # a product
        ((64, 24, 32), 64, (3, 3), 16, 1, ["to", "NHWC", "to"]),
        ((1, 400), 64, (15,), 1, 1, ["NCHW"]),
        ((1, 24, 32), 1, (3, 3), 1, 1, ["NCHW"]),
    ],
)
def test_a_convolution_alone(
    apply: Apply,
    sizes: tuple[int, ...],
    outputs: int,
    kernel: tuple[int, ...],
    groups: int,
    stride: int,
    expected: list[str],
) -> None:
    b = Rim(*sizes)
    y = b.conv(b.x, outputs, *kernel, groups=groups, stride=stride)
    assert layouts(apply(ChannelsLast(), b.finish((y,)))) == expected


def test_what_a_network_reads_on_goes_last(apply: Apply) -> None:
    """The result of the first is larger than its data."""
    b = Rim(1, 24, 32)
    y = b.conv(b.add(Relu(), b.conv(b.x, 16, 3, 3)), 32, 3, 3)
    assert layouts(apply(ChannelsLast(), b.finish((y,)))) == ["NHWC", "NHWC", "to"]


def test_a_pool_before_a_network_moves_what_it_leaves(apply: Apply) -> None:
    b = Rim(64, 32, 32)
    y = b.conv(b.add(MaxPool((2, 2), (2, 2)), b.x), 64, 3, 3)
    assert layouts(apply(ChannelsLast(), b.finish((y,)))) == ["NCHW", "to", "NHWC", "to"]


def test_data_that_is_moved_anyway_is_moved_once(apply: Apply) -> None:
    b = Rim(64, 32, 32)
    outputs = (b.conv(b.x, 64, 3, 3), b.add(MaxPool((2, 2), (2, 2)), b.x))
    found = layouts(apply(ChannelsLast(), b.finish(outputs)))
    assert found == ["to", "NHWC", "NHWC", "to", "to"]


def test_within_a_network_nothing_is_moved_back(apply: Apply) -> None:
    b = Rim(64, 32, 32)
    y = b.conv(b.add(MaxPool((2, 2), (2, 2)), b.conv(b.x, 64, 3, 3)), 3, 3, 3)
    assert layouts(apply(ChannelsLast(), b.finish((y,)))) == ["to", "NHWC", "NHWC", "NHWC", "to"]


def test_weights_of_each_run_and_narrow_floats_go_last(apply: Apply) -> None:
    b = Rim(8, 32, 32)
    w = b.input("w", TensorType("float32", (8, 1, 3, 3)))
    y = b.add(Conv((1, 1), (1, 1, 1, 1), groups=8), b.x, w)
    assert "NHWC" in layouts(apply(ChannelsLast(), b.finish((y,))))
    b = Rim(8, 32, 32, dtype="float16")
    assert "NHWC" in layouts(ChannelsLast()(b.finish((b.conv(b.x, 8, 3, 3, groups=8),))))
