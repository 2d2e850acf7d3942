"""Operators side by side in one kernel: reductions, arguments, ranks, softmax and pools of every
type, with what is pointwise behind them. A group is scheduled by its own rule, proved and
lowered; nothing gives way. Those of one list are one model, which is compiled and compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tilewright.driver.check.ways import Ways
from tilewright.graph.compile import compile
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ops.activation import Softplus
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.functions import Abs, Cast, Log
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.ops.pooling import AveragePool, GlobalAveragePool, MaxPool
from tilewright.graph.ops.quantization import DynamicQuantizeLinear
from tilewright.graph.ops.ranking import ArgMax, ArgMin, TopK
from tilewright.graph.ops.reduction import (
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from tilewright.graph.ops.softmax import LogSoftmax, Softmax
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.types import TensorType
from tilewright.tir.dtype import dtype
from tilewright.tir.target.target import Target

Chain = tuple[str, tuple[int, ...], tuple[Operator, ...]]
TARGETS = ("c:scalar", "c:avx2", "c:avx512", "c:neon", "cuda:sm_90a")

CHAINS: tuple[Chain, ...] = (
    # a tuple of which one tensor is read
    ("float32", (4, 9), (ArgMax(1), Abs())),
    ("float32", (4, 5, 9), (ArgMin(2, False), Abs())),
    ("float64", (7, 1), (ArgMax(1, False), Abs())),
    ("float32", (37,), (ArgMax(0, False), Abs())),
    ("float16", (3, 33), (ArgMax(1, False, True), Abs())),
    ("int8", (5, 17), (ArgMin(1), Cast("float32"))),
    # a last axis of size 1 behind a tile
    ("float32", (4, 33), (ArgMin(1, True, True), Abs())),
    ("float64", (3, 2, 2), (ReduceSum((1, 2)), Log())),
    ("float64", (3, 2, 2), (ReduceSum((2,), False), Log())),
    # sums and choices of types that a target has no vectors, or no instruction for
    ("float16", (31, 16, 5), (TopK(1, 8), Abs())),
    ("uint64", (31, 6, 8), (TopK(0, 15), Abs())),
    ("float64", (4, 9, 33), (DynamicQuantizeLinear(), Cast("float32"))),
    ("float16", (300,), (DynamicQuantizeLinear(),)),
    ("int64", (33, 31), (ReduceMax((0,), False), Abs())),
    ("uint16", (7, 13, 37), (ReduceMin((0, 1), False), Abs())),
    ("int64", (3, 5, 31), (MaxPool((2,), (1,), (0, 0), (1,)), Abs())),
    ("int64", (31, 13, 8, 7), (ArgMax(2), Abs())),
    ("int32", (9, 21), (ReduceProd((0,)), Abs())),
    # what stands several times in one expression, and in its masks
    ("float32", (300,), (LogSoftmax((0,)), Softplus())),
    ("float32", (7, 19), (Softmax((0,)), Log())),
    # rows, pools, sums of sums
    ("float32", (2, 3, 5, 7), (AveragePool((2, 3)), Softplus())),
    ("float16", (2, 3, 5, 7), (GlobalAveragePool(), Abs())),
    ("float16", (6, 40), (ReduceMean((1,)), Abs())),
    ("float32", (1, 1, 13), (ReduceSum((0, 1, 2)), Log())),
    ("float32", (5, 17), (Transpose((1, 0)), ReduceSum((1,)))),
)


def add(builder: GraphBuilder, number: int, chain: Chain) -> str:
    kind, shape, operators = chain
    value = builder.input(f"x{number}", TensorType(kind, shape))
    for operator in operators:
        made = [builder.fresh(operator.title.lower())]
        made += [f"{made[0]}.{n}" for n in range(1, operator.output_count)]
        builder.add_node(GraphNode(operator, (value,), tuple(made)))
        value = made[0]
    return value


def model_of(chains: Sequence[Chain]) -> Graph:
    builder = GraphBuilder("pairs")
    return builder.finish(tuple(add(builder, n, chain) for n, chain in enumerate(chains)))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", TARGETS)
def test_every_group_is_scheduled_by_its_own_rule(name: str) -> None:
    target = Target.parse(name)
    planned = plan_model(model_of(CHAINS), target, check=False)
    for func in planned.lowered.program.functions:
        way = Ways(func, target).best()
        assert (way.lowered.verdict.status, way.notes(func.name)) == ("proved", ())


@pytest.mark.slow
@pytest.mark.needs_cc
def test_what_they_compute_is_what_they_say() -> None:
    engine = compile(model_of(CHAINS), cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    rng = np.random.default_rng(0)
    inputs = {
        spec.name: rng.permutation(np.prod(spec.shape, dtype=int)).reshape(spec.shape) % 50 + 1
        for spec in engine.inputs
    }
    typed = {spec.name: inputs[spec.name].astype(dtype(spec.dtype).numpy) for spec in engine.inputs}
    assert engine.verify(typed)
