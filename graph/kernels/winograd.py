"""A 3x3 convolution of stride 1 by Winograd's algorithms F(2x2, 3x3) and F(4x4, 3x3): 16
multiplications for four outputs in place of 36, or 36 for sixteen in place of 144.

Y = A' [(G w G') * (B' d B)] A: tiles d of the data, which overlap by two, and the weights w are
transformed, multiplied element by element, summed over the channels and transformed back to the
outputs. Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015).

F(2x2) takes the points 0, 1, -1: its transforms only add, subtract and halve, and it rounds less
than the direct sum, which is longer. F(4x4) rounds more, the more its points differ in size: of
points c, -c, 1/c, -1/c, rounded to short fractions as Alam, Anderson, Barabasz and Gregg propose
("Winograd Convolution for Deep Neural Networks: Efficient Point Selection", 2022), 5/8 and 3/2 were
the best of 42 pairs with at most 16 as denominator. For 64 to 512 channels the root mean square of
the error is 1.6 to 1.9 times that of the direct sum, less than half of that of the usual 1 and 2.
All factors but those of the weights are exact in float32; the weights are transformed in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache

import numpy as np

from ...tir.dtype import FLOAT64
from ...tir.expr import Expr
from ...tir.reference.error_bound import reference
from ...tir.sizes import closed_shape, is_closed
from ...tir.te import te
from ...tir.te.te import Tensor
from ..ops.base import tensor_type
from ..ops.convolution import Conv
from ..ops.window import Axis, check_spatial, pad_stage
from ..types import TensorType
from .cook_toom import Matrices, cook_toom
from .fused_kernel import FusedKernel, KernelStep

TAPS = 3
FEW_TILES, FEW_OUTPUTS = 3, 16  # along an axis, and channels, of the data that tells an error
EIGHTHS = tuple(Fraction(n, 8) for n in (0, 5, -5, 12, -12))

Matrix = Sequence[Sequence[Fraction]]
Groups = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Transforms:
    """What tiles go through along one axis.

    data_parts, result_parts: the elements whose sums, up to a factor, several rows of a matrix
    share, the last one with the factor 1 there. wide: whether weights are transformed in float64.
    """

    matrices: Matrices
    data_parts: Groups
    result_parts: Groups
    wide: bool


def _each(count: int) -> Groups:
    return tuple((n,) for n in range(count))


TRANSFORMS: Mapping[int, Transforms] = {
    2: Transforms(cook_toom((0, 1, -1), TAPS, negated=(0, 3)), _each(4), _each(4), wide=False),
    4: Transforms(
        cook_toom(EIGHTHS, TAPS), ((0, 2, 4), (1, 3, 5)), ((0,), (2, 1), (4, 3), (5,)), wide=True
    ),
}


@dataclass(frozen=True, slots=True)
class Winograd(Conv):
    """A Conv on NHWC with a 3x3 kernel, stride 1, no dilation and one group, as F(2x2, 3x3) or
    F(4x4, 3x3).

    results: of a tile along an axis. Its shape rule and its NumPy meaning are those of the
    convolution.
    """

    results: int = 2

    @property
    def tile(self) -> int:
        """Elements of a tile of data along an axis."""
        return self.results + TAPS - 1

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, w = tensors[:2]
        ((batch, *spatial, outputs),) = (
            t.shape for t in self.infer(tuple(map(tensor_type, tensors)))
        )
        sizes = closed_shape(spatial)
        tile, made, transforms = self.tile, self.results, TRANSFORMS[self.results]
        rows, columns = (-(-size // made) for size in sizes)
        d = self._padded(x, (rows, columns), name)
        channels = w.shape[2]
        u = self._weights(w, name)
        data, parts = transforms.matrices.data, transforms.data_parts
        lines = te.compute(
            (tile, batch, rows, d.shape[2], channels),
            lambda a, n, p, q, c: _transformed(data, parts, a, lambda i: d[n, made * p + i, q, c]),
            name=f"{name}_rows",
        )
        v = te.compute(
            (tile, tile, batch, rows, columns, channels),
            lambda a, b, n, p, q, c: _transformed(
                data, parts, b, lambda j: lines[a, n, p, made * q + j, c]
            ),
            name=f"{name}_tiles",
        )
        axis = te.reduce_axis(channels, name="c")
        m = te.compute(
            (tile, tile, batch, rows, columns, outputs),
            lambda a, b, n, p, q, o: te.sum(v[a, b, n, p, q, axis] * u[a, b, axis, o], axis=axis),
            name=f"{name}_products",
        )
        result, shared = transforms.matrices.result, transforms.result_parts
        joined = te.compute(
            (made, tile, batch, rows, columns, outputs),
            lambda y, b, n, p, q, o: _transformed(result, shared, y, lambda a: m[a, b, n, p, q, o]),
            name=f"{name}_joined",
        )

        def element(n: Expr, h: Expr, k: Expr, o: Expr) -> Expr:
            p, q = h // made, k // made
            found = _transformed(
                result, shared, k % made, lambda b: joined[h % made, b, n, p, q, o]
            )
            return found if len(tensors) == 2 else found + tensors[2][o]

        return (te.compute((batch, *sizes, outputs), element, name=name),)

    def _padded(self, x: Tensor, tiles: Sequence[int], name: str) -> Tensor:
        """The data with the convolution's padding, and zeros after it up to whole tiles."""
        sizes = closed_shape(check_spatial(self, tensor_type(x), self.layout))
        axes = []
        for size, before, count in zip(sizes, self.pads, tiles, strict=False):
            after = self.results * count + TAPS - 1 - before - size
            axes.append(Axis(size, self.tile, self.results, 1, before, after))
        return pad_stage(x, axes, self.layout, 0.0, name)

    def _weights(self, w: Tensor, name: str) -> Tensor:
        """The transformed weights [tile, tile, channels, outputs]."""
        tile, transforms = self.tile, TRANSFORMS[self.results]
        factors, parts = transforms.matrices.weights, _each(TAPS)
        channels, outputs = w.shape[2:]
        kind = FLOAT64 if transforms.wide else w.dtype
        halved = te.compute(
            (tile, TAPS, channels, outputs),
            lambda a, j, c, o: _transformed(
                factors, parts, a, lambda i: te.cast(w[i, j, c, o], kind)
            ),
            name=f"{name}_weight_rows",
        )
        return te.compute(
            (tile, tile, channels, outputs),
            lambda a, b, c, o: te.cast(
                _transformed(factors, parts, b, lambda j: halved[a, j, c, o]), w.dtype
            ),
            name=f"{name}_weights",
        )


def as_winograd(fused: FusedKernel, results: int = 2) -> FusedKernel | None:
    """A fused kernel that begins with a 3x3 convolution of stride 1 of constant floats, by
    Winograd's algorithm with so many results of a tile along an axis; None where it is none, or a
    run decides how many tiles there are along an axis.
    """
    first, *rest = fused.steps
    op = first.op
    if type(op) is not Conv or not fused.operands[first.inputs[1]].constant:
        return None
    weights = fused.operands[first.inputs[1]].type
    if not weights.is_float or not _is_plain(op, weights) or fused.result.elements == 0:
        return None
    if not is_closed(fused.types[len(fused.operands)].shape[1:-1]):
        return None
    values = {field.name: getattr(op, field.name) for field in fields(op)}
    return replace(
        fused, steps=(KernelStep(Winograd(**values, results=results), first.inputs), *rest)
    )


def expected_error(fused: FusedKernel) -> float:
    """The largest error that the algorithm of a fused kernel which `as_winograd` made shows on
    a few tiles of random numbers, as a share of the largest result. It is the spread that the
    tolerance rule (tir/reference/error_bound.py) finds for the same stages.
    """
    first = fused.steps[0]
    assert isinstance(first.op, Winograd)
    weights = fused.operands[first.inputs[1]].type
    return _spread(first.op.results, weights.shape[-2], weights.dtype)


@cache
def _spread(results: int, channels: int, dtype: str) -> float:
    size = FEW_TILES * results
    x = te.placeholder((1, size, size, channels), dtype, name="x")
    w = te.placeholder((TAPS, TAPS, channels, FEW_OUTPUTS), dtype, name="w", constant=True)
    op = Winograd(pads=(1, 1, 1, 1), layout="NHWC", results=results)
    func = te.func(x, w, *op.express(x, w, name="y"), name="winograd")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(t.shape).astype(t.dtype.numpy) for t in (x, w)]
    (found,) = reference(func, arrays).outputs
    return float(found.spread / np.abs(found.value).max())


def _is_plain(op: Conv, w: TensorType) -> bool:
    return (
        op.layout == op.data_layout == "NHWC"
        and op.groups == 1
        and w.shape[:-2] == (TAPS, TAPS)
        and set(op.strides) == {1}
        and set(op.dilations) == {1}
    )


def _transformed(
    matrix: Matrix, parts: Groups, number: Expr, element: Callable[[int], Expr]
) -> Expr:
    """Row `number` of a matrix times the vector of the elements."""
    *rows, last = (_combined(row, parts, element) for row in matrix)
    value = last
    for n, row in reversed(list(enumerate(rows))):
        value = te.select(te.eq(number, n), row, value)
    return value


def _combined(row: Sequence[Fraction], parts: Groups, element: Callable[[int], Expr]) -> Expr:
    """The sum of the elements times their factors: part by part, each times the factor of its last
    element, those with a positive one first.
    """
    found = []
    for part in parts:
        used = [n for n in part if row[n]]
        if used:
            scale = row[used[-1]]
            found.append((scale, _sum([(row[n] / scale, element(n)) for n in reversed(used)])))
    return _sum(sorted(found, key=lambda term: term[0] < 0))


def _sum(terms: Sequence[tuple[Fraction, Expr]]) -> Expr:
    """The sum of numbers times their factors, the first of which is positive."""
    (factor, value), *rest = terms
    total = value if factor == 1 else value * float(factor)
    for factor, value in rest:
        size = abs(factor)
        term = value if size == 1 else value * float(size)
        total = total + term if factor > 0 else total - term
    return total
