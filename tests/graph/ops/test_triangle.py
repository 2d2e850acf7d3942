"""Trilu, CumSum and CumProd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.cases import Case, check_case, check_compiled
from tilewright.graph.errors import ModelError
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.triangle import CumProd, CumSum, RunningTotal, Trilu
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [None, -1, 0, 2, 9])
def test_trilu_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, upper: int, diagonal: int | None
) -> None:
    inputs = {"x": random_array(1, 2, 4, 5)}
    if diagonal is not None:
        inputs["k"] = np.array(diagonal)
    check_node("Trilu", inputs, constants=tuple(inputs)[1:], upper=upper)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumulative_sums_agree_with_onnxruntime(
    check_node: Check, random_array: Random, axis: int, exclusive: int, reverse: int
) -> None:
    inputs = {"x": random_array(1, 2, 3, 4), "axis": np.array(axis)}
    check_node("CumSum", inputs, constants=("axis",), exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_cumulative_products_agree_with_onnx(
    random_array: Random, axis: int, exclusive: int, reverse: int, dtype: str
) -> None:
    x = np.round(random_array(1, 2, 3, 4) * 4).astype(dtype)
    attributes: dict[str, int] = {"exclusive": exclusive, "reverse": reverse}
    check_case(Case("CumProd", (x, np.array(axis)), attributes, (26,), (1,)))


@pytest.mark.needs_cc
def test_compiled_cumulative_products_agree_with_onnx(random_array: Random) -> None:
    x, axis = random_array(1, 5, 40), np.array(1)
    check_compiled(
        [
            Case("CumProd", (x, axis), {"exclusive": exclusive, "reverse": reverse}, (26,), (1,))
            for exclusive in (0, 1)
            for reverse in (0, 1)
        ]
    )


@pytest.mark.parametrize("kind", [CumSum, CumProd])
def test_no_elements_have_no_totals(kind: type[RunningTotal]) -> None:
    empty = np.zeros((2, 0), np.float32)
    for op in (kind(1), kind(1, True, True)):
        assert op.reference(empty)[0].shape == (2, 0)


@pytest.mark.parametrize("kind", [CumSum, CumProd])
def test_truth_values_have_no_totals(kind: type[RunningTotal]) -> None:
    with pytest.raises(ModelError) as caught:
        kind(0).infer((TensorType("bool", (3,)),))
    assert (
        str(caught.value) == f"ModelError: {kind.__name__}: expected numbers, got bool. [op-number]"
    )


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "op",
    [
        Trilu(True, 1),
        Trilu(False, -2),
        CumSum(1),
        CumSum(0, True, True),
        CumProd(1),
        CumProd(0, True, True),
    ],
)
def test_kernels_do_what_the_reference_does(
    check_kernel: Callable[..., None], random_array: Random, op: Operator
) -> None:
    check_kernel(op, random_array(1, 20, 33))
    check_kernel(op, np.arange(12).reshape(3, 4))


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        Trilu().infer((TensorType("float32", (3,)),))
    assert str(caught.value) == "ModelError: Trilu: expected matrices, got float32[3]. [trilu-rank]"


@pytest.mark.parametrize("diagonal", [-(2**63), 2**63 - 1, -5, 7])
def test_a_diagonal_far_outside_is_the_nearest_one(
    check_node: Check, random_array: Random, diagonal: int
) -> None:
    x = random_array(1, 3, 4)
    model_of = {"x": x, "k": np.array(diagonal)}
    graph = check_node("Trilu", model_of, constants=("k",), upper=1)
    (node,) = graph.nodes
    expected = x if diagonal < 0 else np.zeros_like(x)
    np.testing.assert_array_equal(node.op.reference(x)[0], expected)
    assert -3 <= node.op.diagonal <= 4
