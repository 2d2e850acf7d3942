"""Channels last: transposes only at the rim and where the model itself shuffles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul, Sub, Sum
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.matmul import Gemm
from tilewright.graph.ops.movement import Concat, Reshape, Transpose
from tilewright.graph.ops.normalisation import LRN, BatchNormalization
from tilewright.graph.ops.pooling import AveragePool, GlobalAveragePool, MaxPool
from tilewright.graph.ops.reduction import ReduceMean
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.passes.layout import ChannelsLast
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


class Network(GraphBuilder):
    """A builder with an image and random weights at hand."""

    def __init__(self) -> None:
        super().__init__("g")
        self.generator = np.random.default_rng(0)
        self.x = self.input("x", TensorType("float32", (2, 4, 6, 5)))

    def random(self, *shape: int) -> str:
        array = self.generator.uniform(0.5, 2.0, shape).astype("float32")
        return self.constant(self.fresh("c"), array)

    def conv(self, x: str, outputs: int = 4, output: str = "") -> str:
        weights = self.random(outputs, self.types[x].shape[1], 3, 3)
        return self.add(Conv(pads=(1, 1, 1, 1)), x, weights, self.random(outputs), output=output)


def kinds(graph: Graph, kind: type[Operator]) -> int:
    return sum(isinstance(node.op, kind) for node in graph.nodes)


def test_a_chain_of_spatial_operators_is_transposed_at_its_ends_only(
    apply: Apply, lines: Lines
) -> None:
    b = Network()
    value = b.add(Relu(), b.conv(b.x, output="one"), output="two")
    value = b.add(MaxPool((2, 2), (2, 2)), value, output="three")
    value = b.add(LRN(3), value, output="four")
    value = b.add(AveragePool((2, 2)), value, output="five")
    norm = [b.random(4) for _ in range(4)]
    value = b.add(BatchNormalization(), value, *norm, output="six")
    after = apply(ChannelsLast(), b.finish((b.conv(value, output="y"),)))
    assert lines(after) == [
        "x.permuted = Transpose[permutation=(0, 2, 3, 1)](x)",
        "one.last = Conv[pads=(1, 1, 1, 1), layout='NHWC'](x.permuted, c.permuted, c_1)",
        "two.last = Relu(one.last)",
        "three.last = MaxPool[kernel=(2, 2), strides=(2, 2), layout='NHWC'](two.last)",
        "four.last = LRN[size=3, layout='NHWC'](three.last)",
        "five.last = AveragePool[kernel=(2, 2), layout='NHWC'](four.last)",
        "six.last = BatchNormalization[layout='NHWC'](five.last, c_2, c_3, c_4, c_5)",
        "y.last = Conv[pads=(1, 1, 1, 1), layout='NHWC'](six.last, c_6.permuted, c_7)",
        "y = Transpose[permutation=(0, 3, 1, 2)](y.last)",
    ]
    assert after.types["c.permuted"].shape == (3, 3, 4, 4)


def test_a_convolution_reads_an_image_where_it_lies(apply: Apply, lines: Lines) -> None:
    b = Network()
    image = b.input("image", TensorType("float32", (2, 3, 6, 5)))
    value = b.conv(b.add(Relu(), image, output="light"), output="one")
    after = apply(ChannelsLast(), b.finish((b.conv(value, output="y"),)))
    assert lines(after) == [
        "light = Relu(image)",
        "one.last = Conv[pads=(1, 1, 1, 1), layout='NHWC', data='NCHW'](light, c.permuted, c_1)",
        "y.last = Conv[pads=(1, 1, 1, 1), layout='NHWC'](one.last, c_2.permuted, c_3)",
        "y = Transpose[permutation=(0, 3, 1, 2)](y.last)",
    ]


def test_an_image_that_is_channels_last_stays_so(apply: Apply) -> None:
    b = Network()
    image = b.input("image", TensorType("float32", (2, 6, 5, 3)))
    first = b.conv(b.add(Transpose((0, 3, 1, 2)), image), output="y")
    after = apply(ChannelsLast(), b.finish((first,)))
    (conv,) = (node for node in after.nodes if isinstance(node.op, Conv))
    assert conv.op == Conv(pads=(1, 1, 1, 1), layout="NHWC")
    assert conv.inputs[0] == "image"


def test_an_image_of_one_channel_is_channels_last_as_it_is(apply: Apply) -> None:
    b = Network()
    image = b.input("image", TensorType("float32", (2, 1, 6, 5)))
    after = apply(ChannelsLast(), b.finish((b.conv(b.conv(image), output="y"),)))
    assert kinds(after, Transpose) == 1  # y
    assert all(node.op.data is None for node in after.nodes if isinstance(node.op, Conv))


def test_channels_in_groups_are_moved(apply: Apply) -> None:
    b = Network()
    image = b.input("image", TensorType("float32", (2, 3, 6, 5)))
    y = b.add(Conv(groups=3), image, b.random(6, 1, 3, 3), output="y")
    after = apply(ChannelsLast(), b.finish((y,)))
    assert kinds(after, Transpose) == 2  # image, y


def test_branches_that_meet_in_concat_or_sum_stay_channels_last(apply: Apply) -> None:
    b = Network()
    first, second = b.conv(b.x), b.conv(b.x, 3)
    joined = b.conv(b.add(Concat(1), first, second))
    total = b.add(
        Sum(), joined, first, b.random(4, 1, 1), b.constant("s", Splat(2.0, "float32", (4, 1, 1)))
    )
    scaled = b.add(
        Mul(),
        b.random(1, 1, 6, 1),
        b.add(Add(), total, b.constant("one", Splat(1.0, "float32", ()))),
    )
    y = b.add(GlobalAveragePool(), scaled)
    after = apply(ChannelsLast(), b.finish((b.add(Softmax((1,)), y, output="y"),)))
    assert [node.op for node in after.nodes if isinstance(node.op, Concat)] == [Concat(3)]
    assert [node.op for node in after.nodes if isinstance(node.op, Softmax)] == [Softmax((3,))]
    assert kinds(after, Transpose) == 1  # of the image; that of the 1x1 result is a Reshape
    assert kinds(after, Reshape) == 1


def test_what_joins_the_stream_from_outside_is_permuted_the_smaller_way(apply: Apply) -> None:
    b = Network()
    other = b.input("other", TensorType("float32", (2, 4, 6, 5)))
    y = b.conv(b.add(Add(), b.conv(b.x), b.add(Relu(), other)), output="y")
    after = apply(ChannelsLast(), b.finish((y,)))
    assert kinds(after, Transpose) == 3  # x, other, y


def test_the_larger_operand_stays_as_it_is(apply: Apply) -> None:
    b = Network()
    other = b.add(Relu(), b.input("other", TensorType("float32", (2, 4, 6, 5))))
    gate = b.add(GlobalAveragePool(), b.conv(b.x))
    after = apply(ChannelsLast(), b.finish((b.add(Mul(), other, gate, output="y"),)))
    assert kinds(after, Transpose) == 1  # x


def test_a_channel_shuffle_stays_one_transpose(apply: Apply, lines: Lines) -> None:
    b = Network()
    value = b.add(Reshape((2, 2, 2, 6, 5)), b.conv(b.x), output="split")
    value = b.add(Transpose((0, 2, 1, 3, 4)), value, output="turned")
    value = b.add(Reshape((2, 4, 6, 5)), value, output="joined")
    after = apply(ChannelsLast(), b.finish((b.conv(value, output="y"),)))
    assert lines(after)[2:5] == [
        "split.last = Reshape[shape=(2, 6, 5, 2, 2)](conv.last)",
        "split.last.permuted = Transpose[permutation=(0, 1, 2, 4, 3)](split.last)",
        "joined.last = Reshape[shape=(2, 6, 5, 4)](split.last.permuted)",
    ]
    assert kinds(after, Transpose) == 3


@pytest.mark.parametrize("size", [(6, 5), (1, 1)])
def test_flattening_for_a_matrix_product_gets_the_old_order(
    apply: Apply, size: tuple[int, int]
) -> None:
    b = Network()
    value = b.conv(b.x) if size == (6, 5) else b.add(GlobalAveragePool(), b.conv(b.x))
    features = 4 * size[0] * size[1]
    flat = b.add(Reshape((2, features)), value)
    graph = b.finish((b.add(Gemm(), flat, b.random(features, 3), output="y"),))
    after = apply(ChannelsLast(), graph)
    assert kinds(after, Transpose) == (2 if size == (6, 5) else 1)


def test_transposes_of_the_model_cancel_with_ours(apply: Apply) -> None:
    b = GraphBuilder("g")
    image = b.input("image", TensorType("float32", (1, 6, 5, 3)))
    w = b.constant("w", np.ones((2, 3, 3, 3), "float32"))
    conv = b.add(Conv(), b.add(Transpose((0, 3, 1, 2)), image), w)
    after = apply(ChannelsLast(), b.finish((b.add(Transpose((0, 2, 3, 1)), conv, output="y"),)))
    assert [type(node.op) for node in after.nodes] == [Conv]


def test_weights_that_are_computed_are_transposed_when_run(apply: Apply) -> None:
    b = Network()
    w = b.input("w", TensorType("float32", (3, 4, 2, 2)))
    after = apply(ChannelsLast(), b.finish((b.add(Conv(), b.x, w, output="y"),)))
    assert [node.op for node in after.nodes[:2]] == [
        Transpose((0, 2, 3, 1)),
        Transpose((2, 3, 1, 0)),
    ]


def test_splat_weights_stay_splats_and_one_array_is_permuted_once(apply: Apply) -> None:
    b = Network()
    w = b.constant("w", Splat(0.5, "float32", (4, 4, 1, 1)))
    one, two = b.add(Conv(), b.x, w), b.add(Conv(strides=(2, 2)), b.x, w)
    after = apply(ChannelsLast(), b.finish((one, two)))
    assert after.constants["w.permuted"] == Splat(0.5, "float32", (1, 1, 4, 4))
    assert len(after.constants) == 2


def test_a_graph_without_spatial_operators_stays_itself() -> None:
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (2, 3, 4)))
    graph = b.finish((b.add(Transpose((2, 0, 1)), b.add(Relu(), x), output="y"),))
    assert ChannelsLast()(graph) is graph


@pytest.mark.parametrize(
    ("shape", "moves"), [((5,), 2), ((6, 5), 2), ((4, 1, 1), 2), ((4, 6, 5), 3), ((), 2), ((1,), 2)]
)
def test_operands_of_fewer_axes_follow_the_stream(
    apply: Apply, shape: tuple[int, ...], moves: int
) -> None:
    b = Network()
    low = b.input("low", TensorType("float32", shape))
    after = apply(ChannelsLast(), b.finish((b.conv(b.add(Add(), low, b.conv(b.x)), output="y"),)))
    assert kinds(after, Transpose) == moves


STEPS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12
)


def random_network(steps: list[tuple[int, int, int]]) -> Graph:
    """A network drawn from `steps`: what to do, and which of the values so far to do it with."""
    b = Network()
    values = [b.x]
    for kind, first, second in steps:
        x, z = values[first % len(values)], values[second % len(values)]
        shape = b.types[x].shape
        if len(shape) != 4 or b.types[z].rank != 4:
            kind = 9
        match kind:
            case 0 | 1:
                value = b.conv(x)
            case 2:
                value = b.add(MaxPool((2, 1), pads=(1, 0, 0, 0)), x)
            case 3 if b.types[z].shape[2:] == shape[2:] and b.types[z].shape[0] == shape[0]:
                value = b.add(Concat(1), x, z)
            case 4 if b.types[z] == b.types[x]:
                value = b.add(Add(), x, z)
            case 5:
                value = b.add(Transpose((1, 0, 3, 2)), x)
            case 6:
                value = b.add(Mul(), x, b.random(shape[1], 1, 1))
            case 7 if shape[1] % 2 == 0:
                value = b.add(Reshape((shape[0], 2, shape[1] // 2, *shape[2:])), x)
                value = b.add(Transpose((0, 2, 1, 3, 4)), value)
                value = b.add(Reshape(shape), value)
            case 8 if second % 2:
                value = b.add(Softmax((1, 3)), x)
            case 8:
                value = b.add(ReduceMean((second // 2, 3)), x)
                value = b.add(Sub(), x, b.add(ReduceMean((0,), False), value))
            case _:
                value = b.add(Relu(), x)
        values.append(value)
    return b.finish({"y": values[-1], "z": b.add(Relu(), values[-2])})


@given(STEPS)
def test_any_network_keeps_its_meaning(steps: list[tuple[int, int, int]]) -> None:
    graph = random_network(steps)
    after = ChannelsLast()(graph)
    verify(after)
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 4, 6, 5))}
    expected, got = evaluate(graph, feeds), evaluate(after, feeds)
    for name in graph.outputs:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-9, atol=1e-9)


def test_permuted_weights_take_no_memory_of_their_own() -> None:
    g = Network()
    before = g.finish((g.conv(g.x, output="y"),))
    after = ChannelsLast()(before)
    (conv,) = (node for node in after.nodes if isinstance(node.op, Conv))
    (weights,) = (w for w in before.constants.values() if len(w.shape) == 4)
    seen = after.constants[conv.inputs[1]]
    assert isinstance(weights, np.ndarray)
    assert isinstance(seen, np.ndarray)
    assert seen.shape == (3, 3, 4, 4)
    assert np.shares_memory(seen, weights)
    assert not seen.flags.writeable
