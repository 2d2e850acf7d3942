"""PadFolding: which pads convolutions and pools take over."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.pooling import AveragePool, MaxPool, SumPool
from tilewright.graph.ops.slicing import Pad
from tilewright.graph.passes.pad_folding import PadFolding
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]

AROUND = Pad((0, 0, 0, 1), (0, 0, 2, 1))


class Net(GraphBuilder):
    """A builder with an image of two channels and weights for it."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", TensorType("float32", (1, 2, 7, 6)))
        self.w = self.constant("w", np.linspace(-1, 1, 72, dtype=np.float32).reshape(4, 2, 3, 3))

    def around(self, pad: Pad = AROUND) -> str:
        return self.add(pad, self.x)


def test_a_convolution_takes_the_pads_over_beside_its_own(apply: Apply, lines: Lines) -> None:
    net = Net()
    net.add(Conv((2, 2), (1, 0, 0, 1)), net.around(), net.w, output="y")
    after = apply(PadFolding(), net.finish(("y",)))
    assert lines(after) == ["y = Conv[strides=(2, 2), pads=(1, 1, 2, 2)](x, w)"]


@pytest.mark.parametrize(
    ("pool", "value", "folded"),
    [
        (MaxPool((3, 3), pads=(1, 1, 0, 0)), -math.inf, MaxPool((3, 3), pads=(1, 2, 2, 1))),
        (SumPool((3, 3), (2, 1)), 0.0, SumPool((3, 3), (2, 1), (0, 1, 2, 1))),
        (
            AveragePool((3, 3)),
            0.0,
            AveragePool((3, 3), pads=(0, 1, 2, 1), include_pad=True),
        ),
        (
            AveragePool((3, 3), pads=(1, 1, 1, 1), include_pad=True),
            0.0,
            AveragePool((3, 3), pads=(1, 2, 3, 2), include_pad=True),
        ),
    ],
)
def test_so_does_a_pool(apply: Apply, pool: Operator, value: float, folded: Operator) -> None:
    net = Net()
    net.add(pool, net.around(Pad(AROUND.before, AROUND.after, value=value)), output="y")
    after = apply(PadFolding(), net.finish(("y",)))
    assert [node.op for node in after.nodes] == [folded]


def test_all_readers_take_over_what_pads_of_pads_add(apply: Apply) -> None:
    net = Net()
    around = net.add(Pad((0, 0, 1, 1), (0, 0, 1, 1)), net.around())
    first = net.add(Conv(), around, net.w)
    net.add(Add(), first, net.add(Conv(), around, net.w), output="y")
    after = apply(PadFolding(), net.finish(("y",)))
    wanted = Conv(pads=(1, 2, 3, 2))
    assert [node.op for node in after.nodes] == [wanted, wanted, Add()]


def left_alone(kind: str) -> Graph:
    net = Net()
    match kind:
        case "channels are padded":
            net.add(MaxPool((3, 3)), net.around(Pad((0, 1, 0, 0), (0,) * 4)), output="y")
        case "the padding is not zero":
            net.add(Conv(), net.around(Pad(AROUND.before, AROUND.after, value=1.0)), net.w)
        case "the padding is a mirror":
            net.add(Conv(), net.around(Pad(AROUND.before, AROUND.after, "reflect")), net.w)
        case "zeros may be the maximum":
            net.add(MaxPool((3, 3)), net.around(), output="y")
        case "the pool's own padding does not count":
            net.add(AveragePool((3, 3), pads=(1, 1, 1, 1)), net.around(), output="y")
        case "the pool's last window may reach past its padding":
            net.add(SumPool((3, 3), (2, 2), ceil=True), net.around(), output="y")
        case "another operator reads it, too":
            around = net.around()
            return net.finish((net.add(Conv(), around, net.w), net.add(Relu(), around)))
        case "it is an output":
            around = net.around()
            return net.finish((net.add(Conv(), around, net.w), around))
        case "it is the weights":
            kernel = net.input("v", TensorType("float32", (4, 2, 2, 2)))
            net.add(Conv(), net.x, net.add(Pad((0,) * 4, (0, 0, 1, 1)), kernel), output="y")
    return net.finish((net.nodes[-1].outputs[0],))


@pytest.mark.parametrize(
    "kind",
    [
        "channels are padded",
        "the padding is not zero",
        "the padding is a mirror",
        "zeros may be the maximum",
        "the pool's own padding does not count",
        "the pool's last window may reach past its padding",
        "another operator reads it, too",
        "it is an output",
        "it is the weights",
    ],
)
def test_what_is_something_else_is_left_alone(kind: str) -> None:
    graph = left_alone(kind)
    assert PadFolding()(graph) is graph
