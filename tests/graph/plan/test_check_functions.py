"""A kernel's function that is not what its operators are is found before it is scheduled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.kernels.express import express
from tilewright.graph.kernels.fused_kernel import FusedKernel
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Div, Mul, Sub
from tilewright.graph.ops.base import Operator, ReferenceWork
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast, Log, Sqrt
from tilewright.graph.ops.normalisation import BatchNormalization
from tilewright.graph.ops.pooling import AveragePool
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.plan import check_functions, pricing
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.types import TensorType
from tilewright.tir.errors import InternalError
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

TARGET = Target.parse("c:avx2")
IMAGE = TensorType("float32", (1, 8, 8, 4))


def chain(*steps: tuple[Operator, str], types: TensorType = IMAGE) -> Graph:
    """x, y -> a node for each step: its operator, and its inputs; the last one's is the result."""
    b = GraphBuilder("g")
    b.input("x", types)
    b.input("y", types)
    for number, (op, inputs) in enumerate(steps):
        b.add(op, *inputs.split(), output=f"v{number}")
    return b.finish((f"v{len(steps) - 1}",))


def reversed_at(title: str) -> object:
    """`express`, with the operands of one kind of operator the wrong way round."""

    def wrong(fused: FusedKernel) -> PrimFunc:
        if len(fused.steps) == 1:
            return express(fused)
        steps = (
            replace(step, inputs=step.inputs[::-1]) if step.op.title == title else step
            for step in fused.steps
        )
        return express(replace(fused, steps=tuple(steps)))

    return wrong


@pytest.mark.parametrize(
    "steps",
    [
        ((Sub(), "x y"), (Relu(), "v0")),
        ((Softmax((3,)), "x"),),
        ((Sqrt(), "x"), (Log(), "y"), (Add(), "v0 v1")),
        ((Div(), "x y"),),
        ((AveragePool((3, 3), pads=(1, 1, 1, 1), layout="NHWC"), "x"), (Mul(), "v0 y")),
    ],
)
def test_right_functions_are_equal(steps: tuple[tuple[Operator, str], ...]) -> None:
    planned = plan_model(chain(*steps), TARGET, passes=())
    assert planned.checker is not None
    assert set(planned.checker.verdicts.values()) == {"equal"}
    assert planned.notes == ()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "bool"])
def test_integers_are_compared_bit_by_bit_over_the_range_of_their_type(kind: str) -> None:
    steps = [(Cast("float32"), "x")] if kind == "bool" else [(Sub(), "x y"), (Mul(), "v0 y")]
    graph = chain(*steps, types=TensorType(kind, (64, 3)))
    planned = plan_model(graph, TARGET, passes=())
    assert planned.checker is not None
    assert set(planned.checker.verdicts.values()) == {"equal"}


def test_a_fusion_that_reverses_operands_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "express", reversed_at("Sub"))
    planned = plan_model(chain((Sub(), "x y"), (Relu(), "v0")), TARGET, passes=())
    assert [func.name for func in planned.lowered.program.functions] == ["sub", "relu"]
    (note,) = planned.notes
    assert note.startswith(
        "Sub+Relu (v0, v1) was taken apart: its function is wrong: it differs by "
    )


@pytest.mark.needs_cc
def test_the_note_stands_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "express", reversed_at("Sub"))
    engine = compile(chain((Sub(), "x y"), (Relu(), "v0")), cache=False, passes=())
    assert any("was taken apart: its function is wrong" in n for n in engine.explain().notes)
    assert engine.verify()


def test_an_operator_whose_expression_is_not_its_reference_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(fused: FusedKernel) -> PrimFunc:
        pools = (replace(s, op=replace(s.op, include_pad=True)) for s in fused.steps)  # type: ignore[call-arg]
        return express(replace(fused, steps=tuple(pools)))

    monkeypatch.setattr(pricing, "express", wrong)
    graph = chain((AveragePool((3, 3), pads=(1, 1, 1, 1), layout="NHWC"), "x"))
    with pytest.raises(InternalError) as refused:
        plan_model(graph, TARGET, passes=())
    assert "plan: the function of AveragePool (v0) does not compute what NumPy does" in str(
        refused.value
    )
    assert "[plan-function]" in str(refused.value)


def test_an_epsilon_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """1e-5 beside variances near 1: a fault of 5e-6, a hundred times what rounding explains."""

    def wrong(fused: FusedKernel) -> PrimFunc:
        steps = (
            replace(s, op=replace(s.op, epsilon=0.0))  # type: ignore[call-arg]
            if isinstance(s.op, BatchNormalization)
            else s
            for s in fused.steps
        )
        return express(replace(fused, steps=tuple(steps)))

    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (1, 4, 8, 8)))
    parameters = [b.input(name, TensorType("float32", (4,))) for name in "abcd"]
    graph = b.finish((b.add(BatchNormalization(), x, *parameters, output="y"),))
    monkeypatch.setattr(pricing, "express", wrong)
    with pytest.raises(InternalError, match="differs by"):
        plan_model(graph, TARGET, passes=())


def test_winograd_is_equal_in_float64() -> None:
    rng = np.random.default_rng(0)
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (1, 56, 56, 64)))
    w = b.constant("w", rng.standard_normal((3, 3, 64, 64)).astype("float32"))
    conv = Conv(strides=(1, 1), pads=(1, 1, 1, 1), layout="NHWC")
    graph = b.finish((b.add(conv, x, w, output="y"),))
    planned = plan_model(graph, TARGET, passes=(), tolerance=1e-3)
    assert planned.checker is not None
    assert set(planned.checker.verdicts.values()) == {"equal"}


def test_what_is_too_large_is_said_and_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_functions, "check_limits", lambda: ReferenceWork(100, 1 << 30))
    planned = plan_model(chain((Sub(), "x y")), TARGET, passes=())
    assert str(planned.checker) == (
        "functions: 0 compared with the NumPy references of their operators, in float64, "
        "1 too large to compare"
    )


def test_nothing_is_compared_where_nobody_asks() -> None:
    assert plan_model(chain((Sub(), "x y")), TARGET, passes=(), check=False).checker is None


@pytest.mark.parametrize("position", [0, 1])
def test_each_of_several_results_is_compared(
    monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (4, 9)))
    b.add_node(GraphNode(TopK(1, 3), (x,), ("values", "places")))
    graph = b.finish(("values", "places"))
    assert plan_model(graph, TARGET, passes=()).notes == ()
    honest = TopK.express

    def wrong(op: TopK, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        made = list(honest(op, *tensors, name=name))
        first = made[position]
        made[position] = te.compute(first.shape, lambda i, j: first[i, 2 - j], name="turned")
        return tuple(made)

    monkeypatch.setattr(TopK, "express", wrong)
    with pytest.raises(InternalError, match=r"function of TopK .* does not compute what NumPy"):
        plan_model(graph, TARGET, passes=())
