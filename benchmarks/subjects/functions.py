"""Functions that several benchmarks measure, of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te
from tilewright.tir.te.tensor import Tensor


def product(m: int, n: int, k: int, *, turned: bool = False) -> PrimFunc:
    """Rows times constant weights; turned: these lie by columns."""
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((n, k) if turned else (k, n), "float32", name="B", constant=True)
    r = te.reduce_axis(k, name="k")

    def term(i: Expr, j: Expr) -> Expr:
        return te.sum(a[i, r] * (b[j, r] if turned else b[r, j]), axis=r)

    c = te.compute((m, n), term, name="C")
    return te.func(a, b, c, name="matmul")


def half_product(m: int, n: int, k: int) -> PrimFunc:
    """Rows times constant weights, all of float16, the sum in float32."""
    a = te.placeholder((m, k), "float16", name="A")
    b = te.placeholder((k, n), "float16", name="B", constant=True)
    r = te.reduce_axis(k, name="k")

    def term(i: Expr, j: Expr) -> Expr:
        return te.sum(te.cast(a[i, r], "float32") * te.cast(b[r, j], "float32"), axis=r)

    c = te.compute((m, n), term, name="C")
    d = te.compute((m, n), lambda i, j: te.cast(c[i, j], "float16"), name="D")
    return te.func(a, b, d, name="half_matmul")


def batched(count: int, m: int, n: int, k: int) -> PrimFunc:
    """Products of two tensors that both change with each call."""
    a = te.placeholder((count, m, k), "float32", name="A")
    b = te.placeholder((count, k, n), "float32", name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((count, m, n), lambda h, i, j: te.sum(a[h, i, r] * b[h, r, j], axis=r), name="C")
    return te.func(a, b, c, name="batched")


def reduced(shape: Sequence[int], axes: Sequence[int], how: Callable[..., Expr]) -> PrimFunc:
    """A sum or a maximum over some axes."""
    x = te.placeholder(tuple(shape), "float32", name="X")
    over = {axis: te.reduce_axis(shape[axis], name=f"k{axis}") for axis in axes}
    kept = [axis for axis in range(len(shape)) if axis not in over]

    def total(*indices: Expr) -> Expr:
        at = dict(zip(kept, indices, strict=True))
        return how(
            x[tuple(over.get(n, at.get(n)) for n in range(len(shape)))], axis=(*over.values(),)
        )

    y = te.compute(
        tuple(shape[axis] for axis in kept) or (1,),
        total if kept else partial(_first, total),
        name="Y",
    )
    return te.func(x, y, name="reduced")


def _first(total: Callable[..., Expr], _: Expr) -> Expr:
    return total()


def transposed(shape: Sequence[int], order: Sequence[int]) -> PrimFunc:
    """Axis n of the result is axis order[n] of the data."""
    x = te.placeholder(tuple(shape), "float32", name="X")

    def element(*indices: Expr) -> Expr:
        return x[tuple(indices[order.index(axis)] for axis in range(len(shape)))]

    y = te.compute(tuple(shape[axis] for axis in order), element, name="Y")
    return te.func(x, y, name="transposed")


def softmax(rows: int, columns: int) -> PrimFunc:
    """Along the last axis."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k, n = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="n")
    top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="M")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((rows,), lambda i: te.sum(e[i, n], axis=n), name="S")
    y = te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="softmax")


def normalised(rows: int, columns: int) -> PrimFunc:
    """Rows less their mean, over the root of their variance."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k, n = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="n")
    s = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")
    d = te.compute((rows, columns), lambda i, j: x[i, j] - s[i] * (1.0 / columns), name="D")
    v = te.compute((rows,), lambda i: te.sum(d[i, n] * d[i, n], axis=n), name="V")
    y = te.compute(
        (rows, columns), lambda i, j: d[i, j] / te.sqrt(v[i] * (1.0 / columns) + 1e-5), name="Y"
    )
    return te.func(x, y, name="normalised")


def _padded(x: Tensor, size: int, channels: int, border: int) -> Tensor:
    def inside(n: Expr, i: Expr, j: Expr, c: Expr) -> Expr:
        low, high = border, size + border
        there = te.all_of(i >= low, i < high, j >= low, j < high)
        return te.select(there, x[n, i - low, j - low, c], 0.0)

    wide = size + 2 * border
    return te.compute((1, wide, wide, channels), inside, name="image")


def convolution(size: int, inputs: int, outputs: int, kernel: int, stride: int = 1) -> PrimFunc:
    """Of a square image, padded by half the kernel."""
    x = te.placeholder((1, size, size, inputs), "float32", name="X")
    w = te.placeholder((kernel, kernel, inputs, outputs), "float32", name="W", constant=True)
    p, q, c = (te.reduce_axis(n, name=a) for n, a in ((kernel, "p"), (kernel, "q"), (inputs, "c")))
    image = _padded(x, size, inputs, kernel // 2) if kernel > 1 else x
    made = (size - 1) // stride + 1
    y = te.compute(
        (1, made, made, outputs),
        lambda n, i, j, o: te.sum(
            image[n, i * stride + p, j * stride + q, c] * w[p, q, c, o], axis=(p, q, c)
        ),
        name="Y",
    )
    return te.func(x, w, y, name="convolution")


def depthwise(size: int, channels: int, kernel: int, stride: int) -> PrimFunc:
    """A window for each channel of its own."""
    x = te.placeholder((1, size, size, channels), "float32", name="X")
    w = te.placeholder((kernel, kernel, channels), "float32", name="W", constant=True)
    p, q = te.reduce_axis(kernel, name="p"), te.reduce_axis(kernel, name="q")
    image = _padded(x, size, channels, kernel // 2)
    made = (size - 1) // stride + 1
    y = te.compute(
        (1, made, made, channels),
        lambda n, i, j, c: te.sum(
            image[n, i * stride + p, j * stride + q, c] * w[p, q, c], axis=(p, q)
        ),
        name="Y",
    )
    return te.func(x, w, y, name="depthwise")


def pooled(size: int, channels: int, kernel: int, stride: int) -> PrimFunc:
    """The largest of each window."""
    x = te.placeholder((1, size, size, channels), "float32", name="X")
    p, q = te.reduce_axis(kernel, name="p"), te.reduce_axis(kernel, name="q")
    made = (size - kernel) // stride + 1
    y = te.compute(
        (1, made, made, channels),
        lambda n, i, j, c: te.max(x[n, i * stride + p, j * stride + q, c], axis=(p, q)),
        name="Y",
    )
    return te.func(x, y, name="pooled")


def chain(rows: int, columns: int) -> PrimFunc:
    """Five operations, element by element, with a row that all rows share."""
    x = te.placeholder((rows, columns), "float32", name="X")
    b = te.placeholder((columns,), "float32", name="B", constant=True)
    y = te.compute(
        (rows, columns), lambda i, j: te.tanh((x[i, j] + b[j]) * 0.5) * x[i, j] + 1.0, name="Y"
    )
    return te.func(x, b, y, name="chain")
