"""What NumPy has to do is known before it is done."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tilewright.graph.ir.ir import GraphNode
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.attention import Attention
from tilewright.graph.ops.base import Operator, ReferenceWork
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.ops.normalisation import LRN
from tilewright.graph.ops.pooling import AveragePool, MaxPool
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.ops.repetition import Tile
from tilewright.graph.ops.resize import Places, Resize
from tilewright.graph.ops.slicing import Pad
from tilewright.graph.reference.effort import TooLarge, check_limits, check_within, effort
from tilewright.graph.types import TensorType
from tilewright.runtime.machine.memory import process_memory

CASES: list[tuple[Operator, tuple[tuple[int, ...], ...]]] = [
    (Add(), ((200, 300), (300,))),
    (AveragePool((9, 9), pads=(4, 4, 4, 4)), ((1, 2, 150, 150),)),
    (Attention(4, 0.5), ((1, 100, 4, 8), (1, 300, 4, 8), (1, 300, 4, 8))),
    (Conv(pads=(2, 2, 2, 2)), ((1, 8, 64, 64), (4, 8, 5, 5))),
    (Conv((1, 1), (0, 0, 0, 0), layout="NHWC"), ((1, 90, 90, 8), (5, 5, 8, 4))),
    (Conv((1, 1), (0, 300, 0, 300)), ((1, 1, 300, 1), (1, 1, 1, 1))),
    (Gemm(trans_b=True), ((200, 300), (400, 300))),
    (LRN(5), ((1, 40, 60, 60),)),
    (LRN(5000), ((1, 40, 60, 60),)),
    (MatMul(), ((3, 100, 200), (200, 300))),
    (MaxPool((3, 3), pads=(1, 1, 1, 1)), ((1, 8, 100, 100),)),
    (Pad((0, 500), (500, 0)), ((10, 10),)),
    (Resize((4000, 2), (Places(1, 0, 1000), Places(500, 0, 1)), "linear"), ((4, 1000),)),
    (Tile((200, 3)), ((10, 100),)),
    (TopK(1, 5), ((50, 2000),)),
]


@pytest.mark.parametrize(("op", "shapes"), CASES, ids=lambda value: str(value)[:40])
def test_an_operator_holds_no_more_than_it_says(
    op: Operator, shapes: tuple[tuple[int, ...], ...]
) -> None:
    types = tuple(TensorType("float64", shape) for shape in shapes)
    arrays = [np.ones(shape) for shape in shapes]
    op.reference(*arrays)
    given = sum(type_.elements for type_ in types)
    tracemalloc.start()
    op.reference(*arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = op.work(types).held
    assert peak <= 8 * (held - given) * 1.3 + 20_000
    assert op.work(types).steps >= op.infer(types)[0].elements


def test_a_window_costs_a_step_for_each_tap() -> None:
    type_ = (TensorType("float32", (1, 1, 1, 1)),)
    pool = MaxPool((2**14, 2**14), pads=(2**14,) * 4)
    assert pool.work(type_).steps > (2**14 + 2) ** 2 * 2**28
    conv = Conv(pads=(0, 2**30, 0, 0))
    assert conv.work((*type_, TensorType("float32", (1, 1, 1, 1)))).held > 2**31


def test_the_effort_of_nodes_is_all_their_values_and_the_most_that_one_needs_besides() -> None:
    types = {name: TensorType("float32", (2, 8, 8, 8)) for name in "xyz"}
    types["w"] = TensorType("float32", (8, 8, 3, 3))
    conv = Conv(pads=(1, 1, 1, 1))
    nodes = [GraphNode(Relu(), ("x",), ("y",)), GraphNode(conv, ("y", "w"), ("z",))]
    besides = conv.work((types["y"], types["w"])).held - 2 * 1024 - 576
    found = effort(nodes, types)
    assert found.held == 3 * 1024 + 576 + besides
    assert found.steps == 2 * 1024 + conv.work((types["y"], types["w"])).steps


def test_what_is_too_large_says_by_how_much() -> None:
    check_within(ReferenceWork(10, 10), ReferenceWork(10, 10))
    with pytest.raises(TooLarge, match="up to 88 bytes; at most 80 are allowed"):
        check_within(ReferenceWork(11, 10), ReferenceWork(10, 10))
    with pytest.raises(TooLarge, match="takes 11 steps; at most 10 are allowed"):
        check_within(ReferenceWork(10, 11), ReferenceWork(10, 10))


def test_a_check_takes_no_more_than_a_quarter_of_the_memory() -> None:
    assert 8 * check_limits().held <= process_memory() // 4
