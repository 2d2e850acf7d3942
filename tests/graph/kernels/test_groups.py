"""Groups: where one may be cut in two."""

from __future__ import annotations

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.kernels.groups import FusionGroup
from tilewright.graph.ops.activation import Relu, Sigmoid
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.types import Splat, TensorType


def swish_group() -> FusionGroup:
    """conv(x) + r, times its sigmoid, then relu: one group."""
    net = GraphBuilder("net")
    x = net.input("x", TensorType("float32", (1, 4, 4, 8)))
    w = net.constant("w", Splat(0.5, "float32", (1, 1, 8, 8)))
    a = net.add(Add(), net.add(Conv(layout="NHWC"), x, w), x)
    y = net.add(Relu(), net.add(Mul(), a, net.add(Sigmoid(), a)), output="y")
    (group,) = fuse(net.finish((y,))).groups
    return group


def test_a_group_reads_what_it_does_not_compute_and_stores_the_last() -> None:
    group = swish_group()
    assert (group.title, group.inputs, group.outputs) == (
        "Conv+Add+Sigmoid+Mul+Relu",
        ("x", "w"),
        ("y",),
    )


def test_a_cut_leaves_one_value_for_the_rest_to_read() -> None:
    group = swish_group()
    assert group.cuts() == (5, 4, 2, 1)  # not behind Sigmoid: Mul reads the sum, too
