"""Gather, GatherElements and GatherND: values, indices from the end, and indices that do not
exist.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.gathering import Gather, GatherElements, GatherND
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType
from tilewright.runtime.index_checks import IndexRangeError

from ..cases import Case, check_case, check_compiled, check_expressions, model_of

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def places(size: int, *shape: int, kind: str = "int64") -> Array:
    return RNG.integers(-size, size, shape).astype(kind)


GATHER, ELEMENTS = (7, 11, 13, 17, 21), (11, 13, 17, 21)
CASES = [
    Case("Gather", (floats(5, 4), places(5, 3)), {}, GATHER),
    Case("Gather", (floats(5, 4), places(4, 2, 3, kind="int32")), {"axis": 1}, GATHER),
    Case("Gather", (floats(2, 5, 4), places(5, 7)), {"axis": -2}, GATHER),
    Case("Gather", (floats(2, 5, 4), np.array(-1)), {"axis": 1}, GATHER),
    Case("Gather", (floats(5), np.array(3)), {}, GATHER),
    Case("Gather", (RNG.integers(-9, 9, (5, 4)), places(5, 3)), {}, GATHER),
    Case("Gather", (floats(5, 4) > 0, places(5, 3)), {}, GATHER),
    Case("Gather", (floats(70, 40), places(70, 33)), {}, (17,)),
    Case("Gather", (floats(5, 4), places(5, 0, 2)), {}, (17,)),
    Case("Gather", (floats(0, 4), places(1, 0)), {}, (17,)),
    Case("GatherElements", (floats(5, 4), places(4, 5, 9)), {"axis": 1}, ELEMENTS),
    Case("GatherElements", (floats(2, 3, 4), places(3, 2, 6, 4)), {"axis": -2}, ELEMENTS),
    Case("GatherND", (floats(3, 4, 5), places(3, 6, 3)), {}, ELEMENTS),
    Case("GatherND", (floats(3, 4, 5), places(3, 2, 6, 2)), {}, ELEMENTS),
    Case("GatherND", (floats(3, 4), places(3, 1)), {}, ELEMENTS),
    Case("GatherND", (floats(3, 4, 5), places(4, 3, 2)), {"batch_dims": 1}, (12, 13, 17)),
    Case("GatherND", (floats(2, 3, 4, 5), places(4, 2, 3, 7, 1)), {"batch_dims": 2}, (13,)),
]
# Cases that ONNX's reference evaluator does not take: fewer indices on another axis, a vector
SMALLER = [
    Case("GatherElements", (floats(5, 4), places(5, 3, 2)), {}, ELEMENTS),
    Case("GatherElements", (floats(2, 3, 4), places(3, 1, 6, 4)), {"axis": -2}, ELEMENTS),
    Case("GatherElements", (floats(70), places(70, 90, kind="int32")), {}, (17,)),
    Case("GatherElements", (floats(0), places(1, 0)), {}, (17,)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gathering_agrees_with_onnx(case: Case) -> None:
    check_case(case, rtol=0, atol=0)


@pytest.mark.parametrize("case", SMALLER, ids=str)
def test_gathering_agrees_with_onnxruntime(
    case: Case, run_onnxruntime: Callable[..., list[Array]]
) -> None:
    for opset in case.opsets:
        model, feeds = model_of([case], opset)
        (expected,) = run_onnxruntime(model, feeds)
        graph = import_onnx(model)
        (got,) = evaluate(graph, feeds, dtype=None).values()
        np.testing.assert_array_equal(got, expected, strict=True)
        check_expressions(graph, feeds)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", [None, "c:scalar"])
def test_kernels_do_what_the_reference_does(target: str | None) -> None:
    check_compiled([*CASES, *SMALLER], target, rtol=0, atol=0)


STEPS = [
    Case("Gather", (floats(2, 5, 4), np.array([0, 1, 2])), {"axis": 1}, GATHER, (1,)),
    Case("Gather", (floats(2, 5, 4), np.array(-5)), {"axis": 1}, GATHER, (1,)),
    Case("Gather", (floats(8, 4), np.array([[-1, 5], [3, -7]])), {}, GATHER, (1,)),
    Case("Gather", (floats(3, 4), np.zeros((2, 0), np.int64)), {}, GATHER, (1,)),
    Case("GatherND", (floats(3, 4, 5), np.array([[0, 1], [0, 3], [1, 1]])), {}, ELEMENTS, (1,)),
    Case("GatherND", (floats(3, 4), np.array([2, -1])), {}, ELEMENTS, (1,)),
]
IRREGULAR = [
    Case("Gather", (floats(6, 4), np.array([0, 2, 3])), {}, GATHER, (1,)),
    Case("Gather", (floats(6, 4), np.array([2, 2])), {}, GATHER, (1,)),
    Case("GatherND", (floats(3, 4), np.array([[0, 1], [0, 3], [1, 0]])), {}, ELEMENTS, (1,)),
    Case("GatherND", (floats(3, 4), np.array([[0], [1], [2]])), {"batch_dims": 1}, (13,), (1,)),
]


@pytest.mark.parametrize("case", [*STEPS, *IRREGULAR], ids=str)
def test_constant_indices_agree_with_onnx(case: Case) -> None:
    check_case(case, rtol=0, atol=0)


@pytest.mark.parametrize("case", STEPS, ids=str)
def test_constant_indices_in_even_steps_are_a_slice(
    case: Case, node_model: Callable[..., onnx.ModelProto]
) -> None:
    inputs = {"x": case.inputs[0], "i": case.inputs[1]}
    model = node_model(case.operator, inputs, constants=("i",), **case.attributes)
    titles = {node.op.title for node in import_onnx(model).nodes}
    assert titles <= {"Reshape", "Slice"}


def test_constants_that_are_gathered_are_a_constant() -> None:
    builder = GraphBuilder("g")
    table = builder.constant("table", floats(5, 4))
    at = builder.constant("at", np.array([3, -1, 3]))
    y = builder.add(Gather(0), table, at, output="y")
    graph, _ = optimise(builder.finish((y,)))
    assert not graph.nodes


@pytest.mark.needs_cc
@pytest.mark.parametrize("threads", [1, 2])
def test_an_index_that_does_not_exist_is_an_error_after_the_run(threads: int) -> None:
    table = floats(50, 33)
    builder = GraphBuilder("words")
    x = builder.input("token", TensorType("int64", (7,)))
    y = builder.add(Gather(0), builder.constant("table", table), x, output="y", name="embedding")
    engine = compile(builder.finish((y,)), cache=False)
    tokens = np.array([0, 49, -1, -50, 3, 3, 9])
    np.testing.assert_array_equal(
        engine.run({"token": tokens}, threads=threads)["y"], table[tokens]
    )
    for wrong, shown, nearest in ((50, 50, 49), (-51, -1, 0)):
        tokens[2] = wrong
        out = np.zeros((7, 33), np.float32)
        with pytest.raises(IndexRangeError) as caught:
            engine.run({"token": tokens}, out={"y": out}, threads=threads)
        assert str(caught.value) == (
            f"IndexRangeError: words: 'index from the front' of embedding is {shown}; expected 0 "
            "to 49. [index-range]\n"
            "  Note: the outputs were computed with the nearest index that exists."
        )
        tokens[2] = nearest
        np.testing.assert_array_equal(out, table[tokens])


TABLE, VECTOR = TensorType("float32", (3, 4)), TensorType("int64", (2,))


@pytest.mark.parametrize(
    ("op", "types", "text"),
    [
        (
            Gather(0),
            (TABLE, TensorType("float32", (2,))),
            "Gather: expected int32 or int64 indices, got float32[2]. [gather-indices]",
        ),
        (Gather(2), (TABLE, VECTOR), "Gather: axis 2 lies outside -2 .. 1. [op-axis]"),
        (
            Gather(0),
            (TensorType("float32", (0, 4)), VECTOR),
            "Gather: int64[2] has indices into no elements. [gather-empty]",
        ),
        (
            GatherElements(1),
            (TABLE, TensorType("int64", (4, 4))),
            "GatherElements: indices int64[4, 4] do not fit float32[3, 4] on every axis but 1. "
            "[gather-elements-shape]",
        ),
        (
            GatherND(),
            (TABLE, TensorType("int64", (2, 3))),
            "GatherND: indices int64[2, 3] name no positions in float32[3, 4] behind 0 batch axes. "
            "[gather-nd-depth]",
        ),
        (
            GatherND(1),
            (TABLE, TensorType("int64", (2, 1))),
            "GatherND: float32[3, 4] and int64[2, 1] differ in the first 1 axes. [gather-nd-batch]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    op: Operator, types: tuple[TensorType, ...], text: str
) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer(types)
    assert str(caught.value) == f"ModelError: {text}"


def test_a_constant_index_outside_is_refused(refused_node: Callable[..., str]) -> None:
    inputs = {"x": floats(3, 4), "i": np.array([[0, 1], [-3, -5]])}
    assert refused_node("Gather", inputs, constants=("i",), axis=1) == (
        "ModelError: model: node 'the_node' (Gather) has index -5; expected -4 to 3. [onnx-index]"
    )
    inputs["i"] = np.array([[0, 3], [3, 0]])
    assert refused_node("GatherND", inputs, constants=("i",)) == (
        "ModelError: model: node 'the_node' (GatherND) has index 3; expected -3 to 2. [onnx-index]"
    )


def test_indices_beyond_counting_are_left_to_the_run() -> None:
    value = helper.make_tensor("v", TensorProto.INT64, [1], [7])
    sizes = helper.make_tensor("s", TensorProto.INT64, [1], [1 << 27])
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["i"], value=value),
        helper.make_node("Gather", ["x", "i"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [4])],
        [helper.make_empty_tensor_value_info("y")],
        [sizes],
    )
    opset = [helper.make_opsetid("", 17)]
    tracemalloc.start()
    made = import_onnx(helper.make_model(graph, opset_imports=opset, ir_version=8))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [node.op for node in made.nodes] == [Gather(0)]
    assert peak < 1 << 20
