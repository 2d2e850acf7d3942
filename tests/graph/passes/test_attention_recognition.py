"""AttentionRecognition: the forms that it finds, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Div, Mul
from tilewright.graph.ops.logic import Equal, IsNaN, Where
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Concat, Reshape, Transpose
from tilewright.graph.ops.reduction import ReduceMax
from tilewright.graph.ops.slicing import Slice
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.passes.attention_recognition import AttentionRecognition
from tilewright.graph.passes.dead_code import DeadCode
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
STEPS, HEADS, DEPTH = 5, 2, 4
WIDTH = HEADS * DEPTH


class Spelling(GraphBuilder):
    """A builder that spells attention as exporters do."""

    def __init__(self) -> None:
        super().__init__("net")
        self.half = self.constant("half", Splat(0.5, "float32", ()))
        self.zero = self.constant("zero", Splat(0.0, "float32", ()))
        self.lowest = self.constant("lowest", Splat(-np.inf, "float32", ()))
        mask = np.triu(np.full((STEPS, STEPS), -1e4, np.float32), 1)
        self.mask = self.constant("mask", mask)

    def wide(self, name: str, *, count: int = 1) -> str:
        return self.input(name, TensorType("float32", (1, STEPS, count * WIDTH)))

    def heads(self, value: str) -> str:
        parts = self.add(Reshape((1, STEPS, HEADS, DEPTH)), value)
        return self.add(Transpose((0, 2, 1, 3)), parts)

    def turned(self, keys: str) -> str:
        """As torch turns the keys: in three axes."""
        flat = self.add(Reshape((HEADS, STEPS, DEPTH)), keys)
        turned = self.add(Transpose((0, 2, 1)), flat)
        return self.add(Reshape((1, HEADS, DEPTH, STEPS)), turned)

    def weights(self, scores: str, *, guarded: bool = False, hidden: str = "") -> str:
        """hidden: by which mask whole rows may be."""
        softmax = self.add(Softmax((3,)), scores)
        if guarded:
            return self.add(Where(), self.add(IsNaN(), softmax), self.zero, softmax)
        if hidden:
            axis = self.types[hidden].rank - 1
            most = self.add(ReduceMax((axis,)), hidden)
            return self.add(Where(), self.add(Equal(), most, self.lowest), self.zero, softmax)
        return softmax

    def joined(self, weights: str, values: str) -> str:
        mixed = self.add(Transpose((0, 2, 1, 3)), self.add(MatMul(), weights, values))
        return self.add(Reshape((1, STEPS, WIDTH)), mixed, output="y")


def found(apply: Apply, lines: Lines, graph: Graph) -> list[str]:
    return lines(DeadCode()(apply(AttentionRecognition(), graph)))


@pytest.mark.parametrize("guarded", [False, True])
def test_scaled_queries_and_keys_with_a_mask_are_one_node(
    apply: Apply, lines: Lines, guarded: bool
) -> None:
    net = Spelling()
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    scaled = (net.add(Mul(), x, net.half) for x in (q, net.turned(k)))
    scores = net.add(Add(), net.mask, net.add(MatMul(), *scaled))
    net.joined(net.weights(scores, guarded=guarded), v)
    settings = "heads=2, scale=0.25" + (", guarded=True" if guarded else "")
    assert found(apply, lines, net.finish(("y",))) == [
        "reshape_5 = Reshape[shape=(1, 5, 2, 4)](q)",
        "reshape_6 = Reshape[shape=(1, 5, 2, 4)](k)",
        "reshape_7 = Reshape[shape=(1, 5, 2, 4)](v)",
        f"transpose_4 = Attention[{settings}](reshape_5, reshape_6, reshape_7, mask)",
        "y = Reshape[shape=(1, 5, 8)](transpose_4)",
    ]


def test_rows_that_the_mask_hides_may_become_zero(apply: Apply, lines: Lines) -> None:
    """As the function that ONNX gives for its Attention says it."""
    net = Spelling()
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    mask = net.input("m", TensorType("float32", (STEPS, STEPS)))
    scores = net.add(Add(), net.add(MatMul(), q, net.add(Transpose((0, 1, 3, 2)), k)), mask)
    net.joined(net.weights(scores, hidden=mask), v)
    text = found(apply, lines, net.finish(("y",)))
    assert text[-2] == (
        "transpose_4 = Attention[heads=2, scale=1.0, masked=True]"
        "(reshape_3, reshape_4, reshape_5, m)"
    )


def test_a_scale_may_stand_behind_the_product_and_divide(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    turned = net.add(Transpose((0, 1, 3, 2)), k)
    net.joined(net.weights(net.add(Div(), net.add(MatMul(), q, turned), net.half)), v)
    text = found(apply, lines, net.finish(("y",)))
    assert [line for line in text if "Attention" in line] == [
        "transpose_4 = Attention[heads=2, scale=2.0](reshape_3, reshape_4, reshape_5)"
    ]


def test_slices_of_one_product_are_read_in_place(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    x = net.wide("x", count=3)
    sizes, steps = (1, STEPS, WIDTH), (1, 1, 1)
    q, k, v = (net.heads(net.add(Slice((0, 0, n * WIDTH), sizes, steps), x)) for n in range(3))
    net.joined(net.weights(net.add(MatMul(), q, net.turned(k))), v)
    text = found(apply, lines, net.finish(("y",)))
    assert "key=Heads(first=2, outer=False), value=Heads(first=4, outer=False)" in text[-2]
    assert not any("Slice" in line or "Transpose" in line for line in text)


def test_keys_behind_a_past_are_read_where_they_were_joined(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    shape = (1, HEADS, 3, DEPTH)
    past = [net.input(name, TensorType("float32", shape)) for name in ("pk", "pv")]
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    k, v = (net.add(Concat(2), before, now) for before, now in zip(past, (k, v), strict=True))
    scores = net.add(MatMul(), q, net.add(Transpose((0, 1, 3, 2)), k))
    net.joined(net.weights(scores), v)
    text = found(apply, lines, net.finish(("y", "concat", "concat_1")))
    assert "key=Heads(first=0, outer=True), value=Heads(first=0, outer=True)" in text[-2]
    assert text[-2].endswith("concat, concat_1)")


def test_a_result_that_is_not_turned_keeps_its_heads_in_front(apply: Apply, lines: Lines) -> None:
    net = Spelling()
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    weights = net.weights(net.add(MatMul(), q, net.add(Transpose((0, 1, 3, 2)), k)))
    net.add(MatMul(), weights, v, output="y")
    text = found(apply, lines, net.finish(("y",)))
    assert text[-1] == (
        "y = Attention[heads=2, scale=1.0, outer=True](reshape_3, reshape_4, reshape_5)"
    )


def left_alone(kind: str) -> Graph:
    net = Spelling()
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    product = net.add(MatMul(), q, net.add(Transpose((0, 1, 3, 2)), k))
    match kind:
        case "others read the weights":
            weights = net.weights(product)
            net.add(Relu(), weights, output="z")
            net.joined(weights, v)
            return net.finish(("y", "z"))
        case "the scores are an output":
            net.joined(net.weights(product), v)
            return net.finish(("y", product))
        case "the mask is scaled":
            net.joined(net.weights(net.add(Mul(), net.add(Add(), product, net.mask), net.half)), v)
        case "the softmax runs down the columns":
            net.joined(net.add(Softmax((2,)), product), v)
        case "what is no number becomes one":
            weights = net.weights(product)
            net.joined(net.add(Where(), net.add(IsNaN(), weights), net.half, weights), v)
        case "rows that another mask hides become zero":
            other = net.input("m", TensorType("float32", (STEPS, STEPS)))
            scores = net.add(Add(), product, net.mask)
            net.joined(net.weights(scores, hidden=other), v)
        case "what is hidden becomes one":
            scores, most = net.add(Add(), product, net.mask), net.add(ReduceMax((1,)), net.mask)
            weights = net.weights(scores)
            hidden = net.add(Equal(), most, net.lowest)
            net.joined(net.add(Where(), hidden, net.half, weights), v)
        case "one head of queries serves all":
            one = net.input("one", TensorType("float32", (1, 1, STEPS, DEPTH)))
            net.joined(net.weights(net.add(MatMul(), one, net.add(Transpose((0, 1, 3, 2)), k))), v)
        case "the scores are their own mask":
            net.joined(net.weights(net.add(Add(), product, product)), v)
        case "the weights weigh themselves":
            weights = net.weights(product)
            net.add(MatMul(), weights, weights, output="y")
        case "the scores are the values":
            net.add(MatMul(), net.weights(product), product, output="y")
        case "the keys are given turned":
            given = net.input("t", TensorType("float32", (1, HEADS, DEPTH, STEPS)))
            net.joined(net.weights(net.add(MatMul(), q, given)), v)
    return net.finish(("y",))


@pytest.mark.parametrize(
    "kind",
    [
        "others read the weights",
        "the scores are an output",
        "the mask is scaled",
        "the softmax runs down the columns",
        "what is no number becomes one",
        "rows that another mask hides become zero",
        "what is hidden becomes one",
        "one head of queries serves all",
        "the scores are their own mask",
        "the weights weigh themselves",
        "the scores are the values",
        "the keys are given turned",
    ],
)
def test_what_is_something_else_is_left_alone(kind: str) -> None:
    graph = left_alone(kind)
    assert AttentionRecognition()(graph) is graph


@pytest.mark.parametrize("scaled", [False, True])
def test_one_that_reads_what_another_leaves_out_stays(apply: Apply, scaled: bool) -> None:
    net = Spelling()
    q, k, v, k2, v2 = (net.heads(net.wide(name)) for name in ("q", "k", "v", "k2", "v2"))

    def mixed(queries: str, keys: str, values: str) -> str:
        product = net.add(MatMul(), queries, net.add(Transpose((0, 1, 3, 2)), keys))
        return net.add(MatMul(), net.weights(product), values)

    first = net.add(Transpose((0, 2, 1, 3)), mixed(q, k, v))
    between = net.add(Mul(), first, net.half) if scaled else first
    net.add(Relu(), mixed(net.add(Transpose((0, 2, 1, 3)), between), k2, v2), output="y")
    after = apply(AttentionRecognition(), net.finish(("y",)))
    assert 1 <= sum(node.op.title == "Attention" for node in after.nodes) <= 2


@pytest.mark.parametrize("number", [-1e30, float(np.finfo(np.float32).min), -np.inf])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_a_number_far_below_all_scores_is_a_mask(
    apply: Apply, lines: Lines, number: float, hidden: bool, biased: bool
) -> None:
    net = Spelling()
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    scores = net.add(MatMul(), q, net.add(Transpose((0, 1, 3, 2)), k))
    scores = net.add(Add(), scores, net.mask) if biased else scores
    seen = net.constant("seen", np.tri(STEPS, dtype=bool) ^ hidden)
    far = net.constant("far", Splat(number, "float32", ()))
    net.joined(net.weights(net.add(Where(), seen, *_ordered(scores, far, hidden))), v)
    text = found(apply, lines, net.finish(("y",)))
    told = "splat(-inf)" if number == -np.inf else f"splat({number:.6g})"
    added = "mask" if biased else "splat(0)"
    chosen = ", ".join(_ordered(added, told, hidden))
    assert text[-3] == f"where_1 = Where(seen, {chosen})"
    assert text[-2].endswith(", where_1)")


def _ordered(scores: str, number: str, hidden: bool) -> tuple[str, str]:
    return (number, scores) if hidden else (scores, number)


@pytest.mark.parametrize("number", [-1e9, 0.0, 1e30])
def test_a_number_that_scores_may_reach_is_none(number: float) -> None:
    """Rows that it hides whole would be what their scores are: exactly so they are not."""
    net = Spelling()
    q, k, v = (net.heads(net.wide(name)) for name in "qkv")
    scores = net.add(MatMul(), q, net.add(Transpose((0, 1, 3, 2)), k))
    seen = net.constant("seen", np.tri(STEPS, dtype=bool))
    far = net.constant("far", Splat(number, "float32", ()))
    net.joined(net.weights(net.add(Where(), seen, scores, far)), v)
    graph = net.finish(("y",))
    assert AttentionRecognition()(graph) is graph
