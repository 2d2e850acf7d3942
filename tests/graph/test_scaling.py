"""What reading and planning a model costs grows as its nodes do: calls are counted at n nodes and
at twice as many, so that no clock is asked.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from itertools import pairwise

import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.plan.reference_program import reference_model
from tilewright.tir.program.syncs import place_syncs, verify_program
from tilewright.tir.target.target import Target

MOST = 2.5  # calls at 2n nodes over those at n
TARGET = Target.parse("c:avx2")


def model(nodes: list[NodeProto], rows: int = 4, outputs: int = 1) -> onnx.ModelProto:
    """A model from x [rows, 8] to y, or to outputs of one row each."""
    names = ["y"] if outputs == 1 else [f"y{n}" for n in range(outputs)]
    shape = [rows, 8] if outputs == 1 else [1, 8]
    graph = helper.make_graph(
        nodes,
        "scaled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 8])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names],
    )
    opset = helper.make_operatorsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def row(operator: str, count: int, last: str) -> list[NodeProto]:
    names = ["x", *(f"v{n}" for n in range(count - 1)), last]
    return [helper.make_node(operator, [a], [b]) for a, b in pairwise(names)]


def chain(operator: str) -> Callable[[int], onnx.ModelProto]:
    return lambda count: model(row(operator, count, "y"))


def dead_nodes(count: int) -> onnx.ModelProto:
    dead = [helper.make_node("Neg", ["x"], [f"d{n}"]) for n in range(count)]
    return model([*dead, helper.make_node("Relu", ["x"], ["y"])])


def dead_chain(count: int) -> onnx.ModelProto:
    return model([*row("Neg", count, "d"), helper.make_node("Relu", ["x"], ["y"])])


def split(count: int) -> onnx.ModelProto:
    names = [f"y{n}" for n in range(count)]
    node = helper.make_node("Split", ["x"], names, axis=0, num_outputs=count)
    return model([node], rows=count, outputs=count)


def compiled_but_for_kernels(made: onnx.ModelProto) -> None:
    """All stages of a compile that look at the model as a whole."""
    graph = import_onnx(made)
    planned = plan_model(graph, TARGET, check=False)
    verify_program(place_syncs(planned.lowered.program))
    verify_program(reference_model(graph).program)


def calls(made: onnx.ModelProto) -> int:
    with cProfile.Profile() as profile:
        compiled_but_for_kernels(made)
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined, no-any-return]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("made", "count"),
    [
        pytest.param(chain("Neg"), 300, id="chain"),
        pytest.param(chain("Sigmoid"), 300, id="chain of groups"),
        pytest.param(dead_nodes, 300, id="dead nodes"),
        pytest.param(dead_chain, 300, id="dead chain"),
        pytest.param(split, 60, id="split"),
    ],
)
def test_twice_the_nodes_take_about_twice_the_calls(
    made: Callable[[int], onnx.ModelProto], count: int
) -> None:
    compiled_but_for_kernels(made(20))  # what is done once in a process
    few, many = calls(made(count)), calls(made(2 * count))
    assert many < MOST * few


@pytest.mark.slow
def test_a_hundred_thousand_dead_nodes_are_read() -> None:
    graph = import_onnx(dead_nodes(100_000))
    assert len(graph.nodes) == 100_001
