"""Reductions over opsets, axes and element types, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.reduction import IntegerSum, ReduceMax, ReduceMean, ReduceMin, ReduceSum
from tilewright.graph.passes.layout import ChannelsLast
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

from ..cases import Case, check_case, check_compiled, model_of


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def whole(*shape: int, dtype: str = "int64") -> Array:
    return np.random.default_rng(1).integers(-3, 4, shape).astype(dtype)


PLAIN = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
ALL = (*PLAIN, "ReduceL1", "ReduceL2", "ReduceSumSquare")
X = normal(2, 3, 4, 5)
AXES = ([1], [-1], [0, 2], [3, 1], [0, 1, 2, 3])
SPECIAL = np.array([[1, np.nan], [np.inf, -np.inf], [2, 3]], dtype=np.float32)


def newest(name: str) -> int:
    """The first opset in which the axes are an input."""
    return 13 if name == "ReduceSum" else 18


# axes as inputs, attributes, opsets
LOGARITHMS: list[tuple[tuple[Array, ...], dict[str, int | list[int]], tuple[int, ...]]] = [
    ((), {}, (7, 11, 13, 18, 28)),
    ((), {"axes": [1, -1], "keepdims": 0}, (7, 13)),
    ((np.array([2, 0]),), {}, (18,)),
    ((np.array([1]),), {"keepdims": 0}, (20,)),
]
CASES = [
    *(
        Case(name, (X,), {"axes": axes, "keepdims": kept}, (7, 11))
        for name in ALL
        for axes in AXES
        for kept in (0, 1)
    ),
    *(
        Case(name, (X, np.array(axes)), {"keepdims": kept}, (newest(name), 20), (1,))
        for name in ALL
        for axes in AXES
        for kept in (0, 1)
    ),
    *(Case(name, (X,), {}, (7, 11, 13, 18)) for name in ALL),
    *(
        Case("ReduceLogSum", (np.abs(X), *axes), attributes, opsets, (1,))
        for axes, attributes, opsets in LOGARITHMS
    ),
    *(
        Case("ReduceLogSumExp", (x, *axes), attributes, opsets, (1,))
        for x in (X, 200 * X)
        for axes, attributes, opsets in LOGARITHMS
    ),
    Case("ReduceLogSumExp", (np.array([[-np.inf, 1], [2, 3]], np.float32),), {}, (13, 18)),
    *(Case("ReduceL2", (whole(3, 4, dtype=k),), {}, (13, 18)) for k in ("int32", "int64")),
    *(
        Case("LpNormalization", (x,), {"axis": axis, "p": p}, (7, 22))
        for x in (np.abs(X), normal(3, 4, dtype="float64") ** 2, 0 * X)  # the reference adds x
        for axis in (1, -1)
        for p in (1, 2)
    ),
    Case("MeanVarianceNormalization", (X,), {}, (9, 13, 22)),
    Case("MeanVarianceNormalization", (X,), {"axes": [1, 2]}, (9, 13)),
    *(Case(name, (X,), {"noop_with_empty_axes": 1}, (18,)) for name in PLAIN),
    *(Case(name, (normal(),), {"keepdims": 0}, (13,)) for name in PLAIN),
    *(Case(name, (SPECIAL, np.array([1])), {}, (18,), (1,)) for name in ("ReduceMax", "ReduceMin")),
    *(
        Case(name, (whole(3, 4, dtype=kind), np.array([1])), {}, (18,), (1,))
        for name in PLAIN
        if name != "ReduceMean"
        for kind in ("int64", "int32")
    ),
    *(Case(name, (normal(3, 4, dtype="float64"), np.array([0])), {}, (18,), (1,)) for name in ALL),
    *(
        Case(name, (np.zeros((2, 0, 3), np.float32), np.array([1])), {"keepdims": 0}, (20,), (1,))
        for name in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum")
    ),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_reductions_agree_with_the_reference(case: Case) -> None:
    check_case(case)


def compiled_cases() -> list[Case]:
    """Those of the newest opsets; of the composed operators one each."""
    newest = [case for case in CASES if max(case.opsets) in (18, 20)]
    plain = [case for case in newest if case.operator in PLAIN]
    composed = {case.operator: case for case in newest if case.operator not in PLAIN}
    return [*plain[::2], *composed.values()]


@pytest.mark.needs_cc
def test_compiled_reductions_agree_with_float64() -> None:
    check_compiled(compiled_cases())


def test_interpreted_reductions_agree_with_float64() -> None:
    check_compiled(compiled_cases(), "python")


def test_over_no_elements_the_result_is_neutral() -> None:
    empty = np.zeros((2, 0), dtype=np.int8)
    assert ReduceMax((1,), False).reference(empty)[0].tolist() == [-128, -128]
    assert ReduceMin((1,), False).reference(empty)[0].tolist() == [127, 127]
    (mean,) = ReduceMean((1,), False).reference(np.zeros((1, 0), dtype=np.float32))
    assert mean.dtype == np.float32
    assert np.isnan(mean).all()


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("axes", [(2, 3), (1,), (0, 3)])
def test_a_reduction_behind_a_convolution_stays_in_its_layout(
    kept: bool, axes: tuple[int, ...]
) -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (2, 3, 5, 4)))
    w = builder.constant("w", normal(6, 3, 1, 1))
    builder.add(ReduceSum(axes, kept), builder.add(Conv(), x, w), output="y")
    graph = builder.finish(("y",))
    moved = ChannelsLast()(graph)
    feeds = {"x": normal(2, 3, 5, 4)}
    expected, got = evaluate(graph, feeds)["y"], evaluate(moved, feeds)["y"]
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    moves = [node.op.title for node in moved.nodes]
    assert moves.index("ReduceSum") == 1  # right behind the convolution


def test_what_does_not_fit_is_refused() -> None:
    for axes in ((), (2, 1), (4,), (1, 1)):
        with pytest.raises(ModelError) as caught:
            ReduceSum(axes).infer((TensorType("float32", (2, 3, 4)),))
        problem = f"axes {axes} are not ascending axes of float32[2, 3, 4]."
        assert str(caught.value) == f"ModelError: ReduceSum: {problem} [op-axes]"
    with pytest.raises(ModelError) as caught:
        ReduceMean((0,)).infer((TensorType("int64", (2,)),))
    assert str(caught.value) == (
        "ModelError: ReduceMean: expected float16, bfloat16, float32 or float64, got int64. "
        "[op-float]"
    )
    with pytest.raises(ModelError) as caught:
        IntegerSum((0,)).infer((TensorType("int32", (2,)),))
    assert str(caught.value) == (
        "ModelError: IntegerSum: expected int8, uint8 or int16, got int32[2]. [integer-sum-type]"
    )
    model, _ = model_of([Case("ReduceSum", (X, np.array([1])))], 13)
    with pytest.raises(UnsupportedOperator) as unknown:
        import_onnx(model)
    assert "input 'c0_x1' is not a constant" in str(unknown.value)


def test_a_norm_of_a_negative_vector_counts_its_magnitudes() -> None:
    x = np.array([[-3, 1]], np.float32)
    model, feeds = model_of([Case("LpNormalization", (x,), {"p": 1})], 22)
    found = evaluate(import_onnx(model), feeds)["y0"]
    np.testing.assert_allclose(found, [[-0.75, 0.25]])
    model, _ = model_of([Case("LpNormalization", (X,), {"p": 3})], 22)
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    assert "p is 3" in str(caught.value)


def test_logarithms_of_integers_are_those_of_float64_rounded_towards_zero() -> None:
    x = np.array([[1, 2, 3], [40, 50, 60]], np.int64)
    for name, expected in (("ReduceLogSum", [1, 5]), ("ReduceLogSumExp", [3, 60])):
        model, feeds = model_of([Case(name, (x,), {"axes": [1], "keepdims": 0})], 13)
        found = evaluate(import_onnx(model), feeds, dtype=None)["y0"]
        assert found.dtype == np.int64
        assert found.tolist() == expected
