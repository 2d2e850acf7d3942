"""Matrix products: MatMul over stacks of matrices, RowProducts of rows; IntegerMatMul of narrow
integers in int32; Gemm with scales, transposes and bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import is_closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import NARROW_INTEGERS, Array, Shape, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_float,
    check_number,
    listed,
    product_work,
    refuse,
    shape_of,
    tensor_type,
)
from .elementwise import broadcast, broadcast_read

_BYTE, _WORD = 8, 32  # bits


@dataclass(frozen=True, slots=True)
class MatMul(Operator):
    """y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]; other axes broadcast. Integers wrap
    around.
    """

    role = OperatorRole.GENERAL
    operand_names = ("a", "b")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        check_number(self, types)
        return (TensorType(types[0].dtype, _product_shape(self, types)),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,) = self.infer(types)
        return product_work(
            Operator.work(self, types), largest(result.elements * types[0].shape[-1])
        )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.matmul(*arrays),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        return (_product(tensors, result, name, lambda k, j: (k, j)),)


@dataclass(frozen=True, slots=True)
class RowProducts(Operator):
    """y[..., i, j] = sum over k of a[..., i, k] * b[..., j, k]: each row of one by each row of the
    other, which lie as they are added up; other axes broadcast.
    """

    role = OperatorRole.GENERAL
    operand_names = ("a", "b")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        check_number(self, types)
        a, b = types
        if a.rank < 2 or b.rank < 2 or a.shape[-1] != b.shape[-1]:
            problem = f"expected [..., i, k] and [..., j, k], got {listed(types)}"
            refuse(self, problem, code="row-products-shape")
        return MatMul().infer((a, _turned(b)))

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        a, b = types
        return MatMul().work((a, _turned(b)))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = arrays
        return (np.matmul(a, np.swapaxes(b, -1, -2)),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        return (_product(tensors, result, name, lambda k, j: (j, k)),)


def _turned(matrices: TensorType) -> TensorType:
    """The type of stacked matrices, each transposed."""
    *stack, rows, columns = matrices.shape
    return TensorType(matrices.dtype, (*stack, columns, rows))


def _product(
    tensors: Sequence[Tensor],
    result: TensorType,
    name: str,
    place: Callable[[Expr, Expr], tuple[Expr, Expr]],
) -> Tensor:
    """Sums of products of two tensors of stacked matrices. place: where in a matrix of the second
    the number is that term k and column j of the result have.
    """
    a, b = tensors
    k = te.reduce_axis(shape_of(a)[-1], name="k")

    def element(*indices: Expr) -> Expr:
        stack, (i, j) = indices[:-2], indices[-2:]
        left = broadcast_read(a, (*stack, i, k))
        right = broadcast_read(b, (*stack, *place(k, j)))
        return te.sum(left * right, axis=k, dtype=left.dtype)

    return te.compute(result.shape, element, name=name)


@dataclass(frozen=True, slots=True)
class IntegerMatMul(Operator):
    """MatMul of integers of 8 or 16 bits, each less its zero, in int32, which wraps around.

    zeros: what stands for 0 in a and in b. in_words: whether a kernel makes words of b first, which
    is uint8, and has no zero: as many steps of a column as an instruction multiplies with those of
    a at once, two of int16, four of bytes.
    """

    zeros: tuple[int, int] = (0, 0)
    in_words: bool = False

    role = OperatorRole.GENERAL
    operand_names = ("a", "b")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 2)
        if any(type_.dtype not in NARROW_INTEGERS for type_ in types):
            problem = f"expected int8, uint8 or int16, got {listed(types)}"
            refuse(self, problem, code="matmul-bytes")
        fits = not any(self.zeros) and types[1].dtype == "uint8" and is_closed(types[0].shape[-1:])
        if self.in_words and not fits:
            problem = (
                "expected words of uint8 without zeros, of a known number of steps, got zeros "
                f"{self.zeros} and {listed(types)}"
            )
            refuse(self, problem, code="matmul-words")
        return (TensorType("int32", _product_shape(self, types)),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,) = self.infer(types)
        return product_work(
            Operator.work(self, types), largest(result.elements * types[0].shape[-1])
        )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        kind = exact_type(arrays[0].shape[-1])
        a, b = (x.astype(kind) - zero for x, zero in zip(arrays, self.zeros, strict=True))
        sums = np.matmul(a, b)
        return (sums.astype(np.int64).astype(np.int32),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        a, b = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        if self.in_words:
            return (_product_by_words(a, b, result, name),)
        k = te.reduce_axis(shape_of(a)[-1], name="k")

        def element(*indices: Expr) -> Expr:
            stack, (i, j) = indices[:-2], indices[-2:]
            left: Expr = te.cast(broadcast_read(a, (*stack, i, k)), "int32")
            right: Expr = te.cast(broadcast_read(b, (*stack, k, j)), "int32")
            p, q = self.zeros
            return te.sum((left - p if p else left) * (right - q if q else right), axis=k)

        return (te.compute(result.shape, element, name=name),)


def _product_by_words(a: Tensor, b: Tensor, result: TensorType, name: str) -> Tensor:
    """The sums of products of levels with bytes that lie in words, those of neighbouring steps."""
    points = _WORD // max(a.type.bits, _BYTE)
    width, steps = _WORD // points, largest(shape_of(a)[-1])
    count = -(-steps // points)
    a, b = (
        with_zeros(x, count * points, axis, f"{name}_{which}")
        for x, axis, which in ((a, -1, "left"), (b, -2, "right"))
    )

    def word(*at: Expr) -> Expr:
        *stack, w, j = at
        levels = [te.cast(b[(*stack, w * points + p, j)], "int32") for p in range(points)]
        parts = [level << width * p if p else level for p, level in enumerate(levels)]
        return reduce(lambda one, other: one | other, parts)

    *stack, _, columns = shape_of(b)
    words = te.compute((*stack, count, columns), word, name=f"{name}_words")
    w, point = te.reduce_axis(count, name="w"), te.reduce_axis(points, name="point")

    def element(*indices: Expr) -> Expr:
        stack, (i, j) = indices[:-2], indices[-2:]
        left = te.cast(broadcast_read(a, (*stack, i, w * points + point)), "int32")
        right = broadcast_read(words, (*stack, w, j)) >> te.cast(point * width, "int32")
        return te.sum(left * (right & ((1 << _BYTE) - 1)), axis=(w, point))

    return te.compute(result.shape, element, name=name)


def with_zeros(x: Tensor, size: int, axis: int, name: str) -> Tensor:
    """x with zeros up to `size` along an axis, counted from the last one."""
    shape = list(shape_of(x))
    own = largest(shape[axis])
    if own == size:
        return x
    shape[axis] = size

    def padded(*at: Expr) -> Expr:
        return te.select(at[axis] < own, x[at], te.const(0, x.type))

    return te.compute(tuple(shape), padded, name=f"{name}_whole")


def exact_type(terms: int) -> type[np.float64 | np.int64]:
    """A type that holds sums of so many products of narrow integers: float64, in which NumPy
    multiplies fast, as long as they are below 2**53.
    """
    return np.float64 if terms <= 1 << 22 else np.int64


def _product_shape(operator: Operator, types: tuple[TensorType, ...]) -> Shape:
    """The shape of a product of stacks of matrices. Raises: ModelError where they do not fit."""
    a, b = types
    if a.rank < 2 or b.rank < 2 or a.shape[-1] != b.shape[-2]:
        problem = f"expected [..., i, k] times [..., k, j], got {listed(types)}"
        refuse(operator, problem, code="matmul-shape")
    stacks = tuple(TensorType(type_.dtype, type_.shape[:-2]) for type_ in types)
    return (*broadcast(operator, stacks).shape, a.shape[-2], b.shape[-1])


@dataclass(frozen=True, slots=True)
class Gemm(Operator):
    """alpha * A @ B + beta * C; A and B may be transposed; C is optional and broadcasts."""

    alpha: float = 1.0
    beta: float = 1.0
    trans_a: bool = False
    trans_b: bool = False

    role = OperatorRole.GENERAL
    operand_names = ("a", "b", "bias")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 2, 3)
        check_float(self, types)
        a, b = types[:2]
        if a.rank != 2 or b.rank != 2:
            refuse(self, f"expected two matrices, got {listed(types)}", code="gemm-rank")
        rows, inner = a.shape[::-1] if self.trans_a else a.shape
        other, columns = b.shape[::-1] if self.trans_b else b.shape
        if inner != other:
            problem = (
                f"inner sizes {inner} and {other} differ "
                f"(trans_a={self.trans_a}, trans_b={self.trans_b}): {listed(types)}"
            )
            refuse(self, problem, code="gemm-inner")
        result = TensorType(a.dtype, (rows, columns))
        if len(types) == 3 and (types[2].rank > 2 or broadcast(self, (result, types[2])) != result):
            refuse(self, f"expected C to broadcast to {result}, got {types[2]}", code="gemm-bias")
        return (result,)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,), inner = self.infer(types), types[0].shape[0 if self.trans_a else 1]
        return product_work(Operator.work(self, types), largest(result.elements * inner))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = arrays[:2]
        y = np.matmul(a.T if self.trans_a else a, b.T if self.trans_b else b)
        if self.alpha != 1.0:
            y = y * y.dtype.type(self.alpha)
        if len(arrays) == 3 and self.beta != 0.0:
            y = y + (arrays[2] if self.beta == 1.0 else arrays[2] * y.dtype.type(self.beta))
        return (y,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        a, b = tensors[:2]
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        k = te.reduce_axis(shape_of(a)[0 if self.trans_a else 1], name="k")
        has_bias = len(tensors) == 3 and self.beta != 0.0
        alone = not has_bias and self.alpha == 1.0

        def product(i: Expr, j: Expr) -> Expr:
            left = a[k, i] if self.trans_a else a[i, k]
            right = b[j, k] if self.trans_b else b[k, j]
            return te.sum(left * right, axis=k)

        y = te.compute(result.shape, product, name=name if alone else f"{name}_dot")
        if alone:
            return (y,)

        def element(i: Expr, j: Expr) -> Expr:
            value: Expr = y[i, j] if self.alpha == 1.0 else y[i, j] * self.alpha
            if not has_bias:
                return value
            bias = broadcast_read(tensors[2], (i, j))
            return value + (bias if self.beta == 1.0 else bias * self.beta)

        return (te.compute(result.shape, element, name=name),)
