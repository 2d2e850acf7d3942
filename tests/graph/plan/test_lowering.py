"""Programs of graphs: slices, outputs, copies, functions shared, in place; the values are those of
the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.base import Operator, OperatorRole
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Identity, Reshape, Transpose
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.plan.choose import choose, chosen_parts
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.lowering import LoweredModel, lower
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.plan.pricing import Pricer
from tilewright.graph.plan.reference_program import reference_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, Splat, TensorType
from tilewright.tir.index_check import IndexCheck
from tilewright.tir.program.evaluate import evaluate_program, interpret_with_checks
from tilewright.tir.program.program import Copy, Launch
from tilewright.tir.program.syncs import place_syncs, verify_program
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

TARGET = Target.parse("c:avx512")
X = TensorType("float32", (2, 3, 4))


def lowered(graph: Graph, *, in_place: bool = False) -> LoweredModel:
    """The program as the graph stands; its outputs are compared with the graph's."""
    decisions = choose(graph, fuse(graph).groups, Pricer(TARGET))
    found = lower(graph, chosen_parts(graph, decisions), in_place=in_place)
    rng = np.random.default_rng(0)
    feeds = {n: rng.standard_normal(graph.types[n].shape).astype("float32") for n in graph.inputs}
    got = evaluate_program(found.program, feeds, found.constants)
    for name, expected in evaluate(graph, feeds).items():
        assert got[name].shape == expected.shape
        np.testing.assert_allclose(got[name], expected, rtol=1e-5, atol=1e-6)
    return found


def test_a_view_is_the_same_bytes_and_no_launch() -> None:
    builder = GraphBuilder("g")
    a = builder.add(MaxPool((2,), (2,), (0, 0), (1,)), builder.input("x", X), output="a")
    b = builder.add(Reshape((2, 6)), a, output="b")
    c = builder.add(Transpose((1, 0)), b, output="c")
    program = lowered(builder.finish((builder.add(Relu(), c, output="y"),))).program
    first, second = program.launches
    assert first.arguments[-1].position == second.arguments[0].position
    assert (first.arguments[-1].shape, second.arguments[0].shape) == ((2, 3, 2), (2, 6))


def test_an_output_that_is_a_view_is_computed_in_the_callers_array() -> None:
    builder = GraphBuilder("g")
    a = builder.add(Relu(), builder.input("x", X), output="a")
    builder.add(Reshape((24,)), a, output="flat")
    found = lowered(builder.finish(("flat",)))
    (launch,) = found.program.body
    assert isinstance(launch, Launch)
    assert (launch.arguments[-1].space, found.program.arena_bytes) == ("output", 0)


def test_an_output_that_others_read_is_read_from_the_callers_array() -> None:
    builder = GraphBuilder("g")
    a = builder.add(Relu(), builder.input("x", X), output="a")
    b = builder.add(Mul(), a, builder.input("z", X), output="b")
    second = lowered(builder.finish((a, b))).program.launches[1]
    assert [item.space for item in second.arguments] == ["output", "input", "output"]


def test_outputs_that_are_inputs_constants_or_other_outputs_are_copied() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", X)
    builder.add(Identity(), x, output="same")
    builder.constant("fixed", Splat(2.5, "float32", (3,)))
    builder.add(Relu(), x, output="y")
    builder.add(Reshape((24,)), "y", output="flat")
    found = lowered(builder.finish(("same", "fixed", "y", "flat")))
    ends = [(s.source.space, s.target.position) for s in found.program.body if isinstance(s, Copy)]
    assert ends == [("input", 0), ("constant", 1), ("output", 3)]
    assert [tensor.name for tensor in found.program.constants] == ["fixed"]


def test_equal_kernels_share_one_function_and_others_get_names_of_their_own() -> None:
    builder = GraphBuilder("g")
    value = builder.input("x", TensorType("float32", (1, 8, 8, 4)))
    for n, stride in enumerate((1, 1, 2)):
        w = builder.constant(f"w{n}", np.full((3, 3, 4, 4), n + 1, np.float32))
        value = builder.add(Conv((stride,) * 2, (1, 1, 1, 1), layout="NHWC"), value, w)
    program = lowered(builder.finish((value,))).program
    assert [func.name for func in program.functions] == ["conv", "conv_1"]
    assert [launch.function for launch in program.launches] == ["conv", "conv", "conv_1"]
    assert [launch.arguments[1].position for launch in program.launches] == [0, 1, 2]


def test_an_elementwise_result_takes_the_place_of_an_input_that_dies() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", X)
    a = builder.add(MaxPool((1,), (1,), (0, 0), (1,)), x, output="a")
    b = builder.add(Reshape((24,)), a, output="b")
    c = builder.add(Relu(), b, output="c")
    y = builder.add(Add(), builder.add(Reshape((2, 3, 4)), c), x, output="y")
    z = builder.add(Transpose((1, 0, 2)), y, output="z")
    graph = builder.finish((z,))
    assert lowered(graph).plan.in_place == ()
    found = lowered(graph, in_place=True)
    assert found.plan.in_place[0] == ("c", "a")
    assert found.plan.arena_bytes == 128


def test_a_result_does_not_overwrite_what_it_also_reads_elsewhere() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (4, 4)))
    a = builder.add(Relu(), x, output="a")
    b = builder.add(Reshape((4, 4)), a, output="b")  # the bytes of a, under another name
    c = builder.add(Transpose((1, 0)), a, output="c")
    d = builder.add(Add(), c, b, output="d")
    y = builder.add(Transpose((1, 0)), d, output="y")
    found = lowered(builder.finish((y,)), in_place=True)
    assert [launch.label for launch in found.program.launches] == ["a", "c, d", "y"]
    assert found.plan.in_place == ()


def test_tensors_without_elements_are_not_computed() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (0, 4)))
    builder.add(Relu(), x, output="y")
    builder.add(Relu(), builder.input("z", X), output="w")
    program = lowered(builder.finish(("y", "w"))).program
    assert [launch.label for launch in program.launches] == ["w"]


def test_a_scalar_is_no_argument() -> None:
    builder = GraphBuilder("g")
    half = builder.constant("half", Splat(0.5, "float32", (1, 1, 1)))
    builder.add(Mul(), builder.input("x", X), half, output="y")
    found = lowered(builder.finish(("y",)))
    assert found.program.constants == ()
    assert len(found.program.launches[0].arguments) == 2


def test_a_splat_stays_one_number() -> None:
    builder = GraphBuilder("g")
    w = builder.constant("w", Splat(0.5, "float32", (1, 1, 4, 8)))
    x = builder.input("x", TensorType("float32", (1, 4, 4, 4)))
    builder.add(Conv(layout="NHWC"), x, w, output="y")
    found = lowered(builder.finish(("y",)))
    assert found.constants["w"].strides == (0, 0, 0, 0)
    assert found.plan.weight_bytes == 4 * 32


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(15))
def test_random_graphs_compute_what_their_nodes_do(seed: int) -> None:
    """Through the passes, fused, planned: and as imported, one function a node."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder("g")
    values = [builder.input("x", TensorType("float32", (1, 6, 6, 8)))]
    for n in range(14):
        a, b = (values[k] for k in rng.integers(max(0, len(values) - 4), len(values), 2))
        w = rng.standard_normal((1, 1, 8, 8)).astype("float32") / 3
        kind = rng.integers(0, 6)
        if kind == 0:
            values.append(builder.add(Conv(layout="NHWC"), a, builder.constant(f"w{n}", w)))
        elif kind == 1:
            values.append(builder.add(Add(), a, b))
        elif kind == 2:
            values.append(builder.add(Relu(), a))
        elif kind == 3:
            flat = builder.add(Reshape((36, 8)), a)
            values.append(builder.add(Reshape((1, 6, 6, 8)), builder.add(Relu(), flat)))
        elif kind == 4:
            values.append(builder.add(Transpose((0, 2, 1, 3)), a))
        else:
            pool = MaxPool((3, 3), (1, 1), (1, 1, 1, 1), layout="NHWC")
            values.append(builder.add(pool, a))
    graph = builder.finish((values[-1], values[-4]) if values[-1] != values[-4] else (values[-1],))
    feeds = {"x": rng.standard_normal((1, 6, 6, 8)).astype("float32")}
    expected = evaluate(graph, feeds)
    planned = plan_model(graph, TARGET)
    assert {report.verdict for report in planned.passes} <= {"equal", "unchanged"}
    got = evaluate_program(planned.lowered.program, feeds, planned.lowered.constants)
    plain = reference_model(graph)(feeds)
    for name, array in expected.items():
        scale = np.abs(array).max()
        np.testing.assert_allclose(got[name], array, rtol=0, atol=1e-5 * scale)
        np.testing.assert_allclose(plain[name], array, rtol=0, atol=1e-12 * scale)


def test_launches_without_syncs_are_in_order() -> None:
    """The driver places Syncs; without them the verifier sees what depends on what."""
    builder = GraphBuilder("g")
    a = builder.add(Transpose((2, 1, 0)), builder.input("x", X))
    program = lowered(builder.finish((builder.add(Transpose((1, 0, 2)), a),))).program
    with pytest.raises(ValueError, match="program-sync"):
        verify_program(program)


@dataclass(frozen=True, slots=True)
class Rows(Operator):
    """Rows of a table at indices that are checked."""

    role = OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        table, rows = types
        return (TensorType(table.dtype, (*rows.shape, *table.shape[1:])),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        table, rows = arrays
        return (table[np.clip(rows, 0, len(table) - 1)],)

    def express(self, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        table, rows = tensors
        (_, width), (count,) = table.shape, rows.shape
        return (
            te.compute(
                (count, width),
                lambda i, j: table[te.checked(rows[i], table.shape[0], what="row"), j],
                name=name,
            ),
        )


def test_the_results_of_checks_lie_behind_all_that_is_planned() -> None:
    builder = GraphBuilder("g")
    table = builder.input("t", TensorType("float32", (5, 3)))
    indices = [builder.input(name, TensorType("int64", (7,))) for name in "ab"]
    first, second = (
        builder.add(Rows(), builder.add(Relu(), table), rows, name=f"rows of {rows}")
        for rows in indices
    )
    graph = builder.finish((builder.add(MatMul(), first, builder.add(Transpose((1, 0)), second)),))
    decisions = choose(graph, fuse(graph).groups, Pricer(TARGET))
    found = lower(graph, chosen_parts(graph, decisions))
    program = place_syncs(found.program)
    verify_program(program)
    planned = found.plan.arena_bytes
    assert [check.check for check in program.checks] == [IndexCheck("row", 5)] * 2
    places = [check.word.position for check in program.checks]
    assert places == [planned, planned + 8]
    assert program.arena_bytes == planned + 16
    assert all("rows of" in check.label for check in program.checks)
    feeds = {
        "t": np.arange(15, dtype=np.float32).reshape(5, 3) - 7,
        "a": np.array([0, 1, 2, 3, 4, 0, 0]),
        "b": np.array([4, 4, 4, 4, -3, 0, 1]),
    }
    outputs, words, _ = interpret_with_checks(program, feeds, found.constants)
    assert words == (4, 2**64 - 3)
    (name,) = graph.outputs
    np.testing.assert_allclose(outputs[name], evaluate(graph, feeds)[name], rtol=1e-5)
