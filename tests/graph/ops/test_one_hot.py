"""OneHot, Hardmax and EyeLike, which compare places, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.types import Array

from ..cases import Case, check_case, check_compiled, expected_of, model_of

RNG = np.random.default_rng(0)
FLAGS = np.array([0, 1], np.float32)


def indices(*shape: int, kind: str = "int64") -> Array:
    """Some of them from the end, some outside."""
    return RNG.integers(-7, 8, shape).astype(kind)


def depth(value: float, kind: str = "int64") -> Array:
    return np.array(value, kind)


X = RNG.integers(-3, 4, (3, 4, 5)).astype(np.float32)
CASES = [
    *(
        Case("OneHot", (indices(3, 4), depth(5), FLAGS), {"axis": axis}, (9, 11, 17, 28), (1,))
        for axis in (-1, 0, 1, 2, -3)
    ),
    *(
        Case("OneHot", (indices(6, kind=kind), depth(5, kind), FLAGS), {}, (11,), (1, 2))
        for kind in ("int32", "float32", "float64")
    ),
    Case("OneHot", (indices(), depth(5), np.array([7, -2], np.int32)), {}, (11,), (1,)),
    Case("OneHot", (indices(0, 3), depth(5), FLAGS), {}, (11,), (1,)),
    Case("OneHot", (indices(3), depth(4), FLAGS.astype("float64")), {}, (11,), (1,)),
    *(Case("Hardmax", (X,), {"axis": axis}, (13, 22)) for axis in (0, 1, -1)),
    Case("Hardmax", (X,), {}, (13,)),
    Case("Hardmax", (X.astype("float64")[:, :0],), {}, (13,)),
    *(Case("EyeLike", (X[0],), {"k": k}, (9, 22)) for k in (0, 1, -2, 9)),
    Case("EyeLike", (X[0],), {"dtype": TensorProto.INT32}, (9,)),
    Case("EyeLike", (X[0].astype("int64"),), {"dtype": TensorProto.BOOL}, (22,)),
    Case("EyeLike", (X[0, :0],), {}, (22,)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_they_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_they_agree_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) != 28])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_old_hardmax_goes_along_all_axes_behind_its_own(axis: int) -> None:
    """Each row of the matrix that the axes before it and the others make, as the opset says."""
    for opset in (7, 11):
        model, feeds = model_of([Case("Hardmax", (X,), {"axis": axis})], opset)
        found = compile(import_onnx(model), "python", cache=False).run(feeds)["y0"]
        rows = X.reshape(int(np.prod(X.shape[:axis])), -1)
        expected = np.eye(rows.shape[1], dtype=np.float32)[rows.argmax(1)].reshape(X.shape)
        np.testing.assert_array_equal(found, expected)


def test_sizes_may_be_open() -> None:
    """The depth is the number of columns, which a call decides."""
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"], start=1, end=2),
        helper.make_node("Squeeze", ["sizes"], ["size"]),
        helper.make_node("OneHot", ["i", "size", "values"], ["y"]),
        helper.make_node("EyeLike", ["x"], ["eye"], k=1),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", "m")),
        helper.make_tensor_value_info("i", TensorProto.INT64, (3,)),
        helper.make_tensor_value_info("values", TensorProto.FLOAT, (2,)),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, "m")),
        helper.make_tensor_value_info("eye", TensorProto.FLOAT, ("n", "m")),
    ]
    graph = helper.make_graph(nodes, "open", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    sizes = {"n": (1, 2, 8), "m": (1, 5, 8)}
    engine = compile(import_onnx(model, shapes=sizes), "python", cache=False)
    for shape in ((2, 5), (7, 3)):
        feeds = {"x": np.zeros(shape, np.float32), "i": np.array([0, -1, 2]), "values": FLAGS + 3}
        results = engine.run(feeds).values()
        for found, expected in zip(results, expected_of(model, feeds), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            Case("OneHot", (indices(3), depth(4), X[0, 0]), {}, (17,), (1,)),
            "node 'y0' (OneHot) has the values float32[5]; expected two, for off and on. "
            "[onnx-one-hot]",
        ),
        (
            Case("OneHot", (indices(3), X[0, 0], FLAGS), {}, (17,), (1,)),
            "input 'c0_x1' of node 'y0' (OneHot) has 5 elements; expected at most 1. "
            "[onnx-input-size]",
        ),
        (
            Case("OneHot", (indices(3), X[0, 0, :0], FLAGS), {}, (17,), (1,)),
            "node 'y0' (OneHot) has the depth float32[0]; expected one number. "
            "[onnx-one-hot-depth]",
        ),
        (
            Case("EyeLike", (X,)),
            "node 'y0' (EyeLike) has the input float32[3, 4, 5]; expected a matrix. [onnx-eye]",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(case: Case, message: str) -> None:
    model, _ = model_of([case], 17)
    with pytest.raises(ModelError) as refused:
        import_onnx(model)
    assert str(refused.value) == f"ModelError: model: {message}"


def test_a_depth_that_data_decide_and_types_that_we_lack_are_refused() -> None:
    for case, reason in (
        (Case("OneHot", (indices(3), depth(4), FLAGS)), "input 'c0_x1' is not a constant"),
        (Case("EyeLike", (X[0],), {"dtype": TensorProto.STRING}), "it gives string; known are"),
    ):
        model, _ = model_of([case], 17)
        with pytest.raises(UnsupportedOperator) as caught:
            import_onnx(model)
        assert reason in str(caught.value)
