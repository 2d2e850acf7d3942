"""A 3x3 convolution of stride 1 by Winograd's algorithm F(2x2, 3x3): 16 multiplications for four
outputs in place of 36.

Y = A' [(G w G') * (B' d B)] A: tiles d of 4x4 data, which overlap by two, and the weights w are
transformed, multiplied element by element, summed over the channels and transformed back to 2x2
outputs. The transforms only add, subtract and halve; the rounding error is a few times that of the
direct sum. Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from ..tir import te
from ..tir.expr import Expr
from ..tir.te import Tensor
from .form import Form, Step
from .ops.base import tensor_type
from .ops.convolution import Conv
from .ops.window import Axis, check_spatial, pad_stage
from .types import TensorType

TILE = 4  # elements of data along an axis
OUTPUTS = 2  # of a tile along an axis
TAPS = 3
DATA = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))  # B'
WEIGHTS = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))  # G
RESULT = ((1, 1, 1, 0), (0, 1, -1, -1))  # A'

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Winograd(Conv):
    """A Conv on NHWC with a 3x3 kernel, stride 1, no dilation and one group, as F(2x2, 3x3).

    Its shape rule and its NumPy meaning are those of the convolution.
    """

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, w = tensors[:2]
        ((batch, *sizes, outputs),) = (
            t.shape for t in self.infer(tuple(map(tensor_type, tensors)))
        )
        rows, columns = (-(-size // OUTPUTS) for size in sizes)
        d = _padded(self, x, (rows, columns), name)
        channels = w.shape[2]
        halved = te.compute(
            (TILE, TAPS, channels, outputs),
            lambda a, j, c, o: _transformed(WEIGHTS, a, lambda i: w[i, j, c, o]),
            name=f"{name}_weight_rows",
        )
        u = te.compute(
            (TILE, TILE, channels, outputs),
            lambda a, b, c, o: _transformed(WEIGHTS, b, lambda j: halved[a, j, c, o]),
            name=f"{name}_weights",
        )
        lines = te.compute(
            (TILE, batch, rows, d.shape[2], channels),
            lambda a, n, p, q, c: _transformed(DATA, a, lambda i: d[n, OUTPUTS * p + i, q, c]),
            name=f"{name}_rows",
        )
        v = te.compute(
            (TILE, TILE, batch, rows, columns, channels),
            lambda a, b, n, p, q, c: _transformed(
                DATA, b, lambda j: lines[a, n, p, OUTPUTS * q + j, c]
            ),
            name=f"{name}_tiles",
        )
        axis = te.reduce_axis(channels, name="c")
        m = te.compute(
            (TILE, TILE, batch, rows, columns, outputs),
            lambda a, b, n, p, q, o: te.sum(v[a, b, n, p, q, axis] * u[a, b, axis, o], axis=axis),
            name=f"{name}_products",
        )
        joined = te.compute(
            (OUTPUTS, TILE, batch, rows, columns, outputs),
            lambda y, b, n, p, q, o: _transformed(RESULT, y, lambda a: m[a, b, n, p, q, o]),
            name=f"{name}_joined",
        )

        def element(n: Expr, h: Expr, k: Expr, o: Expr) -> Expr:
            p, q = h // OUTPUTS, k // OUTPUTS
            found = _transformed(RESULT, k % OUTPUTS, lambda b: joined[h % OUTPUTS, b, n, p, q, o])
            return found if len(tensors) == 2 else found + tensors[2][o]

        return (te.compute((batch, *sizes, outputs), element, name=name),)


def as_winograd(form: Form) -> Form | None:
    """A form that begins with a 3x3 convolution of stride 1 of constant weights, by Winograd's
    algorithm; None where it is none.
    """
    first, *rest = form.steps
    op = first.op
    if type(op) is not Conv or not form.operands[first.inputs[1]].constant:
        return None
    if not _is_plain(op, form.operands[first.inputs[1]].type) or not form.result.elements:
        return None
    values = {field.name: getattr(op, field.name) for field in fields(op)}
    return replace(form, steps=(Step(Winograd(**values), first.inputs), *rest))


def _is_plain(op: Conv, w: TensorType) -> bool:
    return (
        op.layout == op.data_layout == "NHWC"
        and op.groups == 1
        and w.shape[:-2] == (TAPS, TAPS)
        and set(op.strides) == {1}
        and set(op.dilations) == {1}
    )


def _padded(op: Conv, x: Tensor, tiles: Sequence[int], name: str) -> Tensor:
    """The data with the convolution's padding, and zeros after it up to whole tiles."""
    sizes = check_spatial(op, tensor_type(x), op.layout)
    axes = []
    for size, before, count in zip(sizes, op.pads, tiles, strict=False):
        after = OUTPUTS * count + TILE - OUTPUTS - before - size
        axes.append(Axis(size, TILE, OUTPUTS, 1, before, after))
    return pad_stage(x, axes, op.layout, 0.0, name)


def _transformed(matrix: Matrix, number: Expr, element: Callable[[int], Expr]) -> Expr:
    """Row `number` of a matrix times the vector of the elements."""
    *rows, last = (_combined(row, element) for row in matrix)
    value = last
    for n, row in reversed(list(enumerate(rows))):
        value = te.select(te.eq(number, n), row, value)
    return value


def _combined(factors: Sequence[float], element: Callable[[int], Expr]) -> Expr:
    """The sum of the elements times their factors, the positive ones first."""

    def term(n: int) -> Expr:
        size = abs(factors[n])
        return element(n) if size == 1 else element(n) * float(size)

    first, *added = (n for n, factor in enumerate(factors) if factor > 0)
    total = term(first)
    for n in added:
        total = total + term(n)
    for n in (n for n, factor in enumerate(factors) if factor < 0):
        total = total - term(n)
    return total
