"""The runner: passes in order, each verified, compared, reported and, when it is wrong, undone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode, rebuilt
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.base import ReferenceWork
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.movement import Identity
from tilewright.graph.ops.normalisation import BatchNormalization
from tilewright.graph.passes import pipeline
from tilewright.graph.passes.dead_code import DeadCode
from tilewright.graph.passes.identity_removal import IdentityRemoval
from tilewright.graph.passes.pipeline import PIPELINE, optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Splat, TensorType
from tilewright.tir.errors import InternalError


@dataclass(frozen=True, slots=True)
class SwapAdd:
    """A wrong pass: additions become products."""

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        nodes = (
            GraphNode(Mul(), node.inputs, node.outputs) if node.op == Add() else node
            for node in graph.nodes
        )
        return rebuilt(graph, nodes, graph.constants)


@dataclass(frozen=True, slots=True)
class DropLast:
    """A wrong pass: what it returns is no graph."""

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        return replace(graph, nodes=graph.nodes[:-1])


@dataclass(frozen=True, slots=True)
class Rename:
    """A wrong pass: it changes the interface."""

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        return replace(graph, outputs=("r",))


def network() -> Graph:
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (1, 4, 5, 5)))
    generator = np.random.default_rng(0)
    w = b.constant("w", generator.standard_normal((4, 4, 3, 3)).astype("float32"))
    norms = [
        b.constant(n, Splat(v, "float32", (4,))) for n, v in zip("sbmv", (2, 1, 3, 4), strict=True)
    ]
    value = b.add(
        Identity(), b.add(Relu(), b.add(BatchNormalization(), b.add(Conv(), x, w), *norms))
    )
    total = b.add(Add(), value, value, output="r")
    return b.finish((b.add(Identity(), total, output="y"),))


def test_the_whole_pipeline_keeps_the_meaning_and_reports_each_pass() -> None:
    graph = network()
    after, reports = optimise(graph)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 4, 5, 5))}
    expected, got = evaluate(graph, feeds)["y"], evaluate(after, feeds)["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    assert [type(node.op).__name__ for node in after.nodes] == [
        "Transpose",
        "Conv",
        "Relu",
        "Add",
        "Transpose",
    ]
    assert [str(report) for report in reports] == [
        "IdentityRemoval: equal; Identity 2 -> 0",
        "ConstantFolding: unchanged",
        "IdentityRemoval: unchanged",
        "BatchNormFolding: equal; BatchNormalization 1 -> 0",
        "PadFolding: unchanged",
        "CommonSubexpressions: unchanged",
        "KeptAxes: unchanged",
        "MeanRecognition: unchanged",
        "SoftmaxRecognition: unchanged",
        "LayerNormRecognition: unchanged",
        "FastNormRecognition: unchanged",
        "GeluRecognition: unchanged",
        "ProductTurning: unchanged",
        "AttentionRecognition: unchanged",
        "SharedHeads: unchanged",
        "DeadCode: equal",
        "HeadMerging: unchanged",
        "ChannelsLast: equal; Transpose 0 -> 2",
        "MaxPoolSplitting: unchanged",
        "ReshapeMotion: unchanged",
        "RowProductRecognition: unchanged",
        "IdentityRemoval: unchanged",
        "CommonSubexpressions: unchanged",
        "DeadCode: equal",
    ]
    idle = 17  # no branches and loops, no bytes or words, no zeros between pixels
    assert len(reports) == len(PIPELINE) - idle
    assert all(report.seconds >= 0 for report in reports)


def test_a_pass_that_changes_the_meaning_is_undone_and_the_rest_go_on() -> None:
    after, reports = optimise(network(), (SwapAdd(), IdentityRemoval()))
    assert [report.verdict for report in reports] == ["undone", "equal"]
    assert "'r' differs by" in reports[0].problem
    assert reports[0].comparison is not None
    assert Add() in [node.op for node in after.nodes]
    assert Identity() not in [node.op for node in after.nodes]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (DropLast(), "verify: graph 'g': output 'y' is not defined."),
        (Rename(), "outputs changed from y to r"),
    ],
)
def test_a_pass_that_breaks_the_graph_is_undone(wrong: DropLast | Rename, problem: str) -> None:
    graph = network()
    after, (report,) = optimise(graph, (wrong,), check=False)
    assert after is graph
    assert (report.verdict, report.problem) == ("undone", problem)
    assert str(report).startswith(f"{type(wrong).__name__} of '{__name__}.")


def test_checks_are_left_out_when_asked_or_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "is_ours", lambda kind: True)  # those of others are compared
    graph, reasons = network(), []
    for after, (report,) in (
        optimise(graph, (SwapAdd(),), check=False),
        optimise(graph, (SwapAdd(),), limits=ReferenceWork(125, 1 << 40)),
        optimise(graph, (SwapAdd(),), limits=ReferenceWork(1 << 40, 10)),
    ):
        assert Mul() in [node.op for node in after.nodes]
        assert (report.verdict, report.comparison) == ("unchecked", None)
        reasons.append(report.problem)
    assert reasons[0] == ""
    assert reasons[1].startswith("too large to compare: it takes up to ")
    assert reasons[1].endswith(" bytes; at most 1000 are allowed")
    assert reasons[2].startswith("too large to compare: it takes ")
    assert reasons[2].endswith(" steps; at most 10 are allowed")
    assert "SwapAdd: unchecked; Add 1 -> 0, Mul 0 -> 1; too large" in str(report)


def test_an_invalid_graph_is_refused_at_the_door() -> None:
    broken = replace(network(), outputs=("z",))
    with pytest.raises(InternalError, match="output 'z' is not defined"):
        optimise(broken, (DeadCode(),))


def test_a_strict_build_runs_the_passes_that_say_they_keep_rounding() -> None:
    left_out = [type(one).__name__ for one in PIPELINE if not one.keeps_rounding]
    assert left_out == [
        "IntegerProducts",
        "Int16Products",
        "BlockProducts",
        "GridBlockProducts",
        "BatchNormFolding",
        "SoftmaxRecognition",
        "FastNormRecognition",
        "GeluRecognition",
        "AttentionRecognition",
    ]
