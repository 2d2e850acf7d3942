"""ArgMax, ArgMin and TopK: places, ties, NaN, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import GraphNode
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.ranking import ArgMax, ArgMin, TopK
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te

from ..cases import Case, check_case, check_compiled, check_expressions

RNG = np.random.default_rng(0)
NAN, INF = np.nan, np.inf


def tied(*shape: int, kind: str = "float32") -> Array:
    """Few different numbers, so that many are equal."""
    return RNG.integers(-3, 4, shape).astype(kind)


ODD = np.array([[1, NAN, -INF, NAN], [INF, 0, -0.0, INF], [0, -0.0, 0, -0.0]], np.float32)
ARG = (7, 11, 13, 17)
PLACES = [
    Case(name, (x,), attributes, opsets)
    for name in ("ArgMax", "ArgMin")
    for x, attributes, opsets in (
        (tied(4, 5), {}, ARG),
        (tied(4, 5), {"axis": 1, "keepdims": 0}, ARG),
        (tied(2, 9, 4), {"axis": -2}, ARG),
        (tied(2, 9, 4), {"axis": 1, "keepdims": 0, "select_last_index": 1}, (12, 13)),
        (tied(2, 33, kind="int64"), {"axis": 1, "select_last_index": 1}, (12, 13)),
        (tied(33, kind="uint8"), {"keepdims": 0}, (13,)),
        (ODD, {"axis": 1}, (13,)),
        (ODD, {"axis": 0}, (13,)),
        (tied(70, 90), {"axis": 0}, (13,)),
    )
]


@pytest.mark.parametrize("case", PLACES, ids=str)
def test_places_agree_with_onnx(case: Case) -> None:
    check_case(case, rtol=0, atol=0)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", [None, "c:scalar"])
def test_kernels_do_what_the_reference_does(target: str | None) -> None:
    check_compiled(PLACES, target, rtol=0, atol=0)


TOP = [
    (RNG.standard_normal((3, 70)).astype(np.float32), 1, 5),
    (RNG.standard_normal((4, 9, 3)).astype(np.float32), 1, 9),
    (tied(40), 0, 7),
    (tied(2, 21, kind="int64"), -1, 3),
    (tied(30, 2, kind="int32"), 0, 1),
    (tied(5, 4), 1, 0),
    (tied(4, 1, kind="int64"), 1, 1),
]


LONG = np.where(RNG.random((3, 701)) < 0.01, NAN, tied(3, 701)).astype(np.float32)
LONG[0] = -INF
LONG[1, ::7] = INF
IN_ROUNDS = [
    (LONG, 1, 7),
    (RNG.standard_normal((2, 1900, 3)).astype(np.float32), 1, 40),
    (tied(2, 900, kind="int64"), 1, 3),
    (RNG.integers(0, 256, 1000).astype(np.uint8), 0, 2),
]


def top_model(x: Array, axis: int, count: int, largest: bool, opset: int = 11) -> onnx.ModelProto:
    """A TopK with both of its outputs."""
    given: dict[str, int] = {"axis": axis}
    if opset < 10:
        given["k"] = count
    if opset > 10:
        given["largest"] = int(largest)
    names = ["x"] if opset < 10 else ["x", "k"]
    k = [numpy_helper.from_array(np.array([count]), "k")] if opset > 9 else []
    node = helper.make_node("TopK", names, ["values", "places"], name="the_node", **given)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [helper.make_tensor_value_info("x", kind, x.shape)]
    outputs = [
        helper.make_tensor_value_info("values", kind, None),
        helper.make_tensor_value_info("places", TensorProto.INT64, None),
    ]
    graph = helper.make_graph([node], "top", inputs, outputs, k)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(("x", "axis", "count"), TOP)
@pytest.mark.parametrize("largest", [True, False])
def test_the_largest_and_smallest_agree_with_onnxruntime(
    run_onnxruntime: Callable[..., list[Array]], x: Array, axis: int, count: int, largest: bool
) -> None:
    model = top_model(x, axis, count, largest)
    expected = run_onnxruntime(model, {"x": x})
    graph = import_onnx(model)
    for version in (graph, optimise(graph)[0]):
        found = evaluate(version, {"x": x}, dtype=None)
        for got, wanted in zip(found.values(), expected, strict=True):
            np.testing.assert_array_equal(got, wanted, strict=True)
    check_expressions(graph, {"x": x})


@pytest.mark.parametrize("opset", [7, 10])
def test_before_opset_11_the_largest_are_taken(opset: int) -> None:
    x = tied(3, 20)
    old, new = (import_onnx(top_model(x, 1, 4, True, n)) for n in (opset, 11))
    assert old.nodes == new.nodes


@pytest.mark.isa
@pytest.mark.sampled(4)
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", [None, "c:scalar"])
@pytest.mark.parametrize("largest", [True, False])
def test_top_kernels_do_what_the_reference_does(target: str | None, largest: bool) -> None:
    builder = GraphBuilder("top")
    feeds, outputs = {}, []
    for n, (array, axis, count) in enumerate((*TOP, *IN_ROUNDS, (ODD, 1, 3), (tied(0, 3), 0, 0))):
        x = builder.input(f"x{n}", TensorType(array.dtype.name, array.shape))
        made = (f"value{n}", f"place{n}")
        builder.add_node(GraphNode(TopK(axis % array.ndim, count, largest), (x,), made))
        outputs += made
        feeds[x] = array
    graph = builder.finish(tuple(outputs))
    results = compile(graph, target, cache=False).run(feeds)
    for name, expected in evaluate(graph, feeds, dtype=None).items():
        np.testing.assert_array_equal(results[name], expected, err_msg=name, strict=True)


def test_a_nan_is_larger_than_every_number_and_zeros_are_equal() -> None:
    for largest, places in (
        (True, [[1, 3, 0, 2], [0, 3, 1, 2], [0, 1, 2, 3]]),
        (False, [[2, 0, 1, 3], [1, 2, 0, 3], [0, 1, 2, 3]]),
    ):
        op = TopK(1, 4, largest)
        x = te.placeholder(ODD.shape, "float32", name="x")
        made = interpret(te.func(x, *op.express(x, name="top"), name="f"), ODD, checked=True)
        for values, at in (made, op.reference(ODD)):
            assert at.tolist() == places
            np.testing.assert_array_equal(values, np.take_along_axis(ODD, at, 1), strict=True)
            assert (
                np.signbit(values).tolist() == np.signbit(ODD[np.arange(3)[:, None], at]).tolist()
            )


X = TensorType("float32", (3, 4))


@pytest.mark.parametrize(
    ("op", "type_", "text"),
    [
        (ArgMax(2), X, "ArgMax: axis 2 lies outside -2 .. 1. [op-axis]"),
        (
            ArgMin(0),
            TensorType("float32", (0, 4)),
            "ArgMin: float32[0, 4] has no elements on axis 0. [arg-empty]",
        ),
        (ArgMax(0), TensorType("bool", (3,)), "ArgMax: expected numbers, got bool. [op-number]"),
        (TopK(1, 5), X, "TopK: cannot take 5 of 4 elements on axis 1. [top-count]"),
        (TopK(0, -1), X, "TopK: cannot take -1 of 3 elements on axis 0. [top-count]"),
    ],
)
def test_what_does_not_fit_is_refused(op: Operator, type_: TensorType, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer((type_,))
    assert str(caught.value) == f"ModelError: {text}"


def test_a_count_that_is_no_single_integer_is_refused(refused_node: Callable[..., str]) -> None:
    inputs = {"x": tied(3, 4), "k": np.array([1, 2])}
    assert refused_node("TopK", inputs, constants=("k",)) == (
        "ModelError: model: node 'the_node' (TopK) takes k from int64[2]; expected one integer. "
        "[onnx-top-count]"
    )
