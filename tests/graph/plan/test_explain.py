"""What explain says, whole, for a small network."""

from __future__ import annotations

import re

import numpy as np

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Sum
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Concat, Reshape, Transpose
from tilewright.graph.ops.slicing import Slice
from tilewright.graph.passes.pipeline import PIPELINE
from tilewright.graph.plan.explain import explain
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.types import TensorType
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

TARGET = Target.parse("c:avx512")


def network() -> Graph:
    """Two convolutions, their sum, and the same as a vector."""
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 8, 8, 4)))
    w = builder.constant("w", np.ones((5, 5, 4, 8), np.float32))
    conv = Conv(pads=(2, 2, 2, 2), layout="NHWC")
    a, b = builder.add(conv, x, w, output="a"), builder.add(conv, builder.add(Relu(), x), w)
    y = builder.add(Sum(), a, b, output="y")
    builder.add(Reshape((512,)), y, output="flat")
    return builder.finish((y, "flat"))


def plain(lines: tuple[str, ...]) -> list[str]:
    """The lines with times and percentages replaced."""
    return [re.sub(r"\d+\.\d us", "# us", line) for line in lines]


def test_every_fact_has_a_line() -> None:
    assert plain(explain(plan_model(network(), TARGET, passes=()))) == [
        "functions: 3 compared with the NumPy references of their operators, in float64",
        "5 nodes: 3 launches of 3 functions, 2 nodes in 1 fused groups, 1 views, 1 copies",
        "fused: Conv+Sum: conv, y",
        "priced: conv, y: took Conv+Sum: estimated # us; not Conv | Sum: estimated # us",
        "not fused: node 'conv' (Conv) behind node 'relu' (Relu): Conv reads each element more "
        "than "
        "once or elsewhere for its float32[1, 8, 8, 8], and what stands before an anchor is not "
        "computed inside it; to fuse: move Relu behind what computes 'x'",
        "not fused: node 'y' (Sum) behind node 'a' (Conv): it runs in the kernel of node 'conv' "
        "(Conv), and a kernel has one anchor; to fuse: combine the inputs of node 'conv' (Conv) "
        "and "
        "of node 'a' (Conv) in one operator",
        "view: node 'flat' (Reshape) is 'y' under another shape",
        "copy: 2.0 KiB to output 'flat'",
        "weights 3.1 KiB (shared) + 3.0 KiB per context",
        "  2 tensors packed by size, first fit; lower bound 3072 bytes, arena 3072 bytes (+0.0%)",
    ]


class Slow:
    """A source for which whatever ends in a sum is slow, unless it is alone."""

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        return 1.0 if func.name == "conv_sum" else 1e-6


def test_a_fusion_that_does_not_pay_has_a_line() -> None:
    lines = plain(explain(plan_model(network(), TARGET, Slow(), passes=())))
    assert (
        "priced: conv, y: took Conv | Sum: estimated # us, measured # us; not Conv+Sum: estimated "
        "# us, measured # us"
    ) in lines
    assert (
        "not fused: Conv+Sum (conv, y): in one kernel # us, apart # us; to fuse: tune the function "
        "of the whole group"
    ) in lines


def moving(*outputs: str) -> Graph:
    """Moves in front of a product, of an output and of nobody."""
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (4, 6)))
    w = builder.constant("w", np.ones((4, 4), np.float32))
    turned = builder.add(Transpose((1, 0)), x, output="turned")
    builder.add(MatMul(), turned, w, output="y")
    builder.add(Relu(), builder.add(Reshape((24,)), turned), output="r")
    both = builder.add(Concat(0), x, x, output="both")
    builder.add(Reshape((48,)), both, output="flat")
    builder.add(Slice((0, 0), (4, 3), (1, 1)), x, output="left")
    builder.add(Relu(), builder.add(Slice((0, 3), (4, 3), (1, 1)), x), output="positive")
    return builder.finish(outputs)


def test_what_only_moves_has_a_price_and_a_reason() -> None:
    lines = plain(explain(plan_model(moving("y", "flat", "positive"), TARGET, passes=())))
    assert [line for line in lines if line.startswith("moves: ")] == [
        "moves: node 'turned' (Transpose): 96 B, estimated # us; because node 'y' (MatMul) and 1 "
        "more nodes read it whole, in this order",
        "moves: node 'both' (Concat): 192 B, estimated # us; because 'flat' is an output of the "
        "model",
        "moves: node 'left' (Slice): 48 B, estimated # us; because no pass removed it, though "
        "nobody reads it",
    ]


def test_each_pass_has_a_line() -> None:
    lines = explain(plan_model(network(), TARGET))
    assert lines[0] == "pass IdentityRemoval: unchanged"
    idle = 17  # regions, levels and transposed convolutions, of which there are none
    assert sum(line.startswith("pass ") for line in lines) == len(PIPELINE) - idle
