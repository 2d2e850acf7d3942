"""MatMul and Gemm."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.matmul import Gemm, IntegerMatMul, MatMul, RowProducts
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]


@pytest.mark.parametrize(
    ("a", "b"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((1, 1), (1, 1))]
)
def test_matmul_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    check_node("MatMul", {"a": random_array(1, *a), "b": random_array(2, *b)}, opset=9)


@pytest.mark.parametrize(
    ("a", "b"), [((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5))]
)
def test_a_vector_is_a_matrix_of_one_row_or_column(
    check_node: Check, random_array: Random, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    check_node("MatMul", {"a": random_array(1, *a), "b": random_array(2, *b)})


@pytest.mark.parametrize(("trans_a", "trans_b"), list(itertools.product((0, 1), (0, 1))))
@pytest.mark.parametrize("bias", [None, (), (1,), (5,), (1, 5), (3, 1), (3, 5)])
def test_gemm_agrees_with_onnxruntime(
    check_node: Check,
    random_array: Random,
    trans_a: int,
    trans_b: int,
    bias: tuple[int, ...] | None,
) -> None:
    inputs = {
        "a": random_array(1, *((4, 3) if trans_a else (3, 4))),
        "b": random_array(2, *((5, 4) if trans_b else (4, 5))),
    }
    if bias is not None:
        inputs["c"] = random_array(3, *bias)
    check_node("Gemm", inputs, opset=11, transA=trans_a, transB=trans_b)
    check_node("Gemm", inputs, opset=13, transA=trans_a, transB=trans_b, alpha=0.5, beta=-2.0)
    check_node("Gemm", inputs, opset=13, transA=trans_a, transB=trans_b, beta=0.0)


@pytest.mark.parametrize(
    ("op", "shapes", "text"),
    [
        (
            MatMul(),
            ((2, 3), (4, 5)),
            "MatMul: expected [..., i, k] times [..., k, j], got float32[2, 3], float32[4, 5]. "
            "[matmul-shape]",
        ),
        (
            RowProducts(),
            ((2, 3), (3, 4)),
            "RowProducts: expected [..., i, k] and [..., j, k], got float32[2, 3], float32[3, 4]. "
            "[row-products-shape]",
        ),
        (
            Gemm(),
            ((2, 3), (3,)),
            "Gemm: expected two matrices, got float32[2, 3], float32[3]. [gemm-rank]",
        ),
        (
            Gemm(trans_b=True),
            ((2, 3), (3, 4)),
            "Gemm: inner sizes 3 and 4 differ (trans_a=False, trans_b=True): float32[2, 3], "
            "float32[3, 4]. [gemm-inner]",
        ),
        (
            Gemm(),
            ((2, 3), (3, 4), (2, 2, 4)),
            "Gemm: expected C to broadcast to float32[2, 4], got float32[2, 2, 4]. [gemm-bias]",
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    op: MatMul | Gemm, shapes: tuple[tuple[int, ...], ...], text: str
) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer(tuple(TensorType("float32", shape) for shape in shapes))
    assert str(caught.value) == f"ModelError: {text}"


@pytest.mark.parametrize("a", ["int8", "uint8"])
@pytest.mark.parametrize("b", ["int8", "uint8"])
def test_products_of_bytes_are_those_of_int32(a: str, b: str) -> None:
    arrays = tuple(
        np.random.default_rng(n).integers(np.iinfo(kind).min, 128, shape).astype(kind)
        for n, (kind, shape) in enumerate(((a, (2, 3, 9)), (b, (9, 5))))
    )
    types = tuple(TensorType(array.dtype.name, array.shape) for array in arrays)
    (made,) = IntegerMatMul().infer(types)
    (y,) = IntegerMatMul().reference(*arrays)
    assert made == TensorType("int32", (2, 3, 5))
    wide = [array.astype(np.int64) for array in arrays]
    np.testing.assert_array_equal(y, wide[0] @ wide[1])


def test_numbers_that_are_not_narrow_are_refused() -> None:
    with pytest.raises(ModelError) as caught:
        IntegerMatMul().infer((TensorType("int8", (2, 3)), TensorType("int32", (3, 4))))
    assert str(caught.value) == (
        "ModelError: IntegerMatMul: expected int8, uint8 or int16, got int8[2, 3], int32[3, 4]. "
        "[matmul-bytes]"
    )


def test_words_are_of_bytes_without_a_sign_and_of_a_known_number_of_steps() -> None:
    with pytest.raises(ModelError) as caught:
        IntegerMatMul((1, 0), True).infer((TensorType("int8", (2, 3)), TensorType("int8", (3, 4))))
    assert str(caught.value) == (
        "ModelError: IntegerMatMul: expected words of uint8 without zeros, of a known number of "
        "steps, got zeros (1, 0) and int8[2, 3], int8[3, 4]. [matmul-words]"
    )
