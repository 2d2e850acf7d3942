"""Scales and shifts per channel go into the convolution before them."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul, Sub
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.ops.normalisation import BatchNormalization
from tilewright.graph.passes.batch_norm_folding import BatchNormFolding
from tilewright.graph.passes.pipeline import GraphPass, optimise
from tilewright.graph.types import Splat, TensorType, array_of

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


class Network(GraphBuilder):
    """A builder with random constants at hand."""

    def __init__(self) -> None:
        super().__init__("g")
        self.generator = np.random.default_rng(0)
        self.x = self.input("x", TensorType("float32", (2, 4, 5, 5)))

    def random(self, name: str, *shape: int) -> str:
        return self.constant(name, self.generator.uniform(0.5, 2.0, shape).astype("float32"))

    def conv(self, x: str, bias: bool = False) -> str:
        inputs = [x, self.random(self.fresh("w"), 4, 2, 3, 3)]
        if bias:
            inputs.append(self.random(self.fresh("b"), 4))
        return self.add(Conv(pads=(1, 1, 1, 1), groups=2), *inputs)

    def norm(self, x: str, output: str = "") -> str:
        names = [self.random(self.fresh(n), 4) for n in ("scale", "shift", "mean", "variance")]
        return self.add(BatchNormalization(1e-3), x, *names, output=output)


@pytest.mark.parametrize("bias", [False, True])
def test_a_batch_norm_goes_into_the_convolution_before_it(
    apply: Apply, lines: Lines, bias: bool
) -> None:
    b = Network()
    graph = b.finish((b.norm(b.conv(b.x, bias), output="y"),))
    after = apply(BatchNormFolding(), graph)
    assert lines(after) == ["y = Conv[pads=(1, 1, 1, 1), groups=2](x, w.folded, w.bias)"]


def test_scales_and_shifts_after_it_go_along(apply: Apply, lines: Lines) -> None:
    b = Network()
    value = b.add(Mul(), b.norm(b.conv(b.x)), b.random("m", 4, 1, 1))
    value = b.add(Add(), b.random("a", 1, 4, 1, 1), value)
    value = b.add(Mul(), value, b.constant("half", Splat(0.5, "float32", ())))
    after = apply(BatchNormFolding(), b.finish((b.add(Relu(), value, output="y"),)))
    assert lines(after)[-1] == "y = Relu(mul_1)"
    assert [type(node.op) for node in after.nodes] == [Conv, Relu]


def test_without_a_convolution_a_chain_becomes_one_scale_and_one_shift(
    apply: Apply, lines: Lines
) -> None:
    b = Network()
    value = b.add(Mul(), b.norm(b.add(Relu(), b.x, output="r")), b.random("m", 4, 1, 1))
    graph = b.finish((b.add(Add(), value, b.random("a", 4, 1, 1), output="y"),))
    assert lines(apply(BatchNormFolding(), graph)) == [
        "r = Relu(x)",
        "y.scaled = Mul(r, y.factor)",
        "y = Add(y.scaled, y.shift)",
    ]


@pytest.mark.parametrize(
    ("steps", "left"),
    [([Mul, Add], [Mul, Add]), ([Mul, Add, Mul], [Mul, Add]), ([Add, Add], [Add])],
)
def test_scales_and_shifts_become_one_of_each_where_that_is_fewer(
    apply: Apply, steps: list[type[Mul | Add]], left: list[type[Mul | Add]]
) -> None:
    b = Network()
    value = b.add(Relu(), b.x)
    for step in steps[:-1]:
        value = b.add(step(), value, b.random(b.fresh("c"), 4, 1, 1))
    value = b.add(steps[-1](), value, b.random("last", 4, 1, 1), output="y")
    after = apply(BatchNormFolding(), b.finish((value,)))
    assert [type(node.op) for node in after.nodes] == [Relu, *left]


@pytest.mark.parametrize("read_by", ["another node", "the caller"])
def test_a_convolution_that_others_read_keeps_its_weights(
    apply: Apply, lines: Lines, read_by: str
) -> None:
    b = Network()
    conv = b.conv(b.x)
    norm = b.norm(conv, output="y")
    other = b.add(Relu(), conv, output="z") if read_by == "another node" else conv
    after = apply(BatchNormFolding(), b.finish((norm, other)))
    assert [type(node.op) for node in after.nodes if node.op != Relu()] == [Conv, Mul, Add]


def test_what_is_not_per_channel_or_not_constant_stays() -> None:
    b = Network()
    conv = b.conv(b.x)
    weights = b.input("weights", TensorType("float32", (4, 2, 1, 1)))
    computed = b.add(Conv(groups=2), b.x, weights)
    parameters = [b.input(name, TensorType("float32", (4,))) for name in "abcd"]
    outputs = (
        b.add(Mul(), conv, b.random("wide", 1, 1, 1, 5), output="y1"),
        b.add(Add(), computed, b.random("add", 4, 1, 1), output="y2"),
        b.add(BatchNormalization(), b.add(Relu(), b.x), *parameters, output="y3"),
    )
    graph = b.finish(outputs)
    assert BatchNormFolding()(graph) is graph


def test_splats_stay_splats_when_every_channel_is_alike(apply: Apply) -> None:
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (1, 3, 4, 4)))
    w = b.constant("w", Splat(0.5, "float32", (8, 3, 1, 1)))
    numbers = [
        b.constant(n, Splat(v, "float32", (8,))) for n, v in zip("sbmv", (2, 1, 3, 4), strict=True)
    ]
    y = b.add(BatchNormalization(0.0), b.add(Conv(), x, w), *numbers, output="y")
    after = apply(BatchNormFolding(), b.finish((y,)))
    assert after.constants["w.folded"] == Splat(0.5, "float32", (8, 3, 1, 1))
    assert after.constants["w.bias"] == Splat(-2.0, "float32", (8,))


def test_what_has_no_value_is_not_warned_of() -> None:
    """The root of a negative variance, and what a float16 cannot hold."""
    b = Network()
    value = b.conv(b.x)
    names = [b.random(n, 4) for n in ("scale", "shift", "mean")]
    names.append(b.constant("variance", np.array([1, -1, 1e-45, 1], np.float32)))
    graph = b.finish((b.add(BatchNormalization(0.0), value, *names, output="y"),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after, (report,) = optimise(graph, (BatchNormFolding(),))
    assert report.verdict == "equal"
    folded = array_of(after.constants["w.folded"])
    assert np.isnan(folded[1]).all()
    assert np.isfinite(folded[[0, 3]]).all()


def test_channels_may_have_moved_on_the_way(apply: Apply, lines: Lines) -> None:
    """As flax spells it: (x - mean) * (scale / root) + bias, of channels that are last."""
    b = Network()
    value = b.add(Transpose((0, 2, 3, 1)), b.conv(b.x, bias=True))
    value = b.add(Sub(), value, b.random("mean", 4))
    value = b.add(Mul(), value, b.random("factor", 1, 1, 1, 4))
    value = b.add(Transpose((0, 3, 1, 2)), value)
    value = b.add(Add(), b.random("shift", 4, 1, 1), value)
    b.add(Relu(), b.add(Transpose((0, 2, 3, 1)), value), output="y")
    assert lines(apply(BatchNormFolding(), b.finish(("y",)))) == [
        "conv.folded = Conv[pads=(1, 1, 1, 1), groups=2](x, w.folded, w.bias)",
        "transpose.folded = Transpose[permutation=(0, 2, 3, 1)](conv.folded)",
        "add = Transpose[permutation=(0, 3, 1, 2)](transpose.folded)",
        "transpose_2 = Transpose[permutation=(0, 2, 3, 1)](add)",
        "y = Relu(transpose_2)",
    ]


@pytest.mark.parametrize("case", ["of rows", "subtracted from", "read twice"])
def test_behind_moved_channels_others_are_left_alone(case: str) -> None:
    b = Network()
    moved = b.add(Transpose((0, 2, 3, 1)), b.conv(b.x))
    numbers = b.random("numbers", *((5, 1) if case == "of rows" else (4,)))
    operands = (numbers, moved) if case == "subtracted from" else (moved, numbers)
    outputs = [b.add(Sub(), *operands)]
    if case == "read twice":
        outputs.append(b.add(Relu(), moved))
    graph = b.finish(tuple(outputs))
    assert BatchNormFolding()(graph) is graph


def test_one_number_for_all_channels_has_no_axes(apply: Apply, lines: Lines) -> None:
    b = Network()
    half, two = (b.constant(name, Splat(n, "float32", ())) for name, n in (("h", 0.5), ("t", 2)))
    value = b.add(Mul(), b.add(Mul(), b.add(Relu(), b.x, output="r"), half), two)
    value = b.add(Mul(), value, b.constant("third", Splat(3.0, "float32", ())), output="y")
    assert lines(apply(BatchNormFolding(), b.finish(("y",)))) == [
        "r = Relu(x)",
        "y = Mul(r, splat(3))",
    ]
