"""Programs of the schedule tests: small te functions whose numbers stay exact in float32.

Inputs are small integers, so sums and products in any order give the same bits, and a schedule may
be compared with NumPy for equality.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.lower.lower import contraction, lower_to_nest
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace
from tilewright.tir.expr import Expr, Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.tensor_intrinsics import TensorIntrinsic
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_stmt

Array = np.ndarray


def matmul(m: int, n: int, k: int, *, dtype: str = "float32", constant: bool = False) -> PrimFunc:
    """C = A B."""
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B", constant=constant)
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="matmul")


def widened_matmul(size: int, kind: str) -> PrimFunc:
    """The product of two square matrices, summed in a wider type."""
    total = "int32" if kind == "int8" else "float32"
    a, b = (te.placeholder((size, size), kind, name=name) for name in "AB")
    k = te.reduce_axis(size, name="k")

    def wide(value: Expr) -> Expr:
        return value if kind == total else te.cast(value, total)

    c = te.compute(
        (size, size), lambda i, j: te.sum(wide(a[i, k]) * wide(b[k, j]), axis=k), name="C"
    )
    return te.func(a, b, c, name="product")


def matmul_relu(
    m: int, n: int, k: int, *, dtype: str = "float32", constant: bool = False
) -> PrimFunc:
    """Y = max(A B + bias, 0)."""
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B", constant=constant)
    bias = te.placeholder((n,), dtype, name="bias", constant=constant)
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    y = te.compute((m, n), lambda i, j: te.maximum(c[i, j] + bias[j], 0.0), name="Y")
    return te.func(a, b, bias, y, name="matmul_relu")


def gelu_matmul(rows: int, columns: int, inner: int) -> PrimFunc:
    """Y = gelu(X W + bias), W and bias constant."""
    x = te.placeholder((rows, inner), "float32", name="X")
    w = te.placeholder((inner, columns), "float32", name="W", constant=True)
    bias = te.placeholder((columns,), "float32", name="bias", constant=True)
    k = te.reduce_axis(inner, name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="C")

    def gelu(i: Expr, j: Expr) -> Expr:
        biased = c[i, j] + bias[j]
        return biased * 0.5 * (1.0 + te.erf(biased * 0.5**0.5))

    return te.func(x, w, bias, te.compute((rows, columns), gelu, name="Y"), name="gelu_matmul")


def chain(m: int, n: int, *, dtype: str = "float32") -> PrimFunc:
    """Y = max(2 X + bias, 0) * X, in three steps."""
    x = te.placeholder((m, n), dtype, name="X")
    bias = te.placeholder((n,), dtype, name="bias")
    p = te.compute((m, n), lambda i, j: x[i, j] * 2.0 + bias[j], name="P")
    q = te.compute((m, n), lambda i, j: te.maximum(p[i, j], 0.0), name="Q")
    y = te.compute((m, n), lambda i, j: q[i, j] * x[i, j], name="Y")
    return te.func(x, bias, y, name="chain")


def blur(m: int, n: int) -> PrimFunc:
    """Y[i, j] = R[i, j] + R[i + 1, j], R[i, j] = X[i, j] + X[i, j + 1]: readers that overlap."""
    x = te.placeholder((m + 1, n + 1), "float32", name="X")
    r = te.compute((m + 1, n), lambda i, j: x[i, j] + x[i, j + 1], name="R")
    y = te.compute((m, n), lambda i, j: r[i, j] + r[i + 1, j], name="Y")
    return te.func(x, y, name="blur")


def conv(
    height: int,
    width: int,
    channels: int,
    outputs: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    pad: int = 1,
    dilation: int = 1,
    groups: int = 1,
    batch: int = 1,
    dtype: str = "float32",
) -> PrimFunc:
    """relu(conv(X, W) + bias), channels last; `channels` per group."""
    total = channels * groups
    x = te.placeholder((batch, height, width, total), dtype, name="X")
    w = te.placeholder((kernel, kernel, channels, outputs), dtype, name="W", constant=True)
    bias = te.placeholder((outputs,), dtype, name="bias", constant=True)
    span = dilation * (kernel - 1) + 1
    rows, columns = (height + 2 * pad - span) // stride + 1, (width + 2 * pad - span) // stride + 1
    source = padded(x, pad, 0.0) if pad else x
    c, r, s = (
        te.reduce_axis(n, name=a) for a, n in zip("crs", (channels, kernel, kernel), strict=True)
    )
    per_group = outputs // groups

    def element(n: Expr, h: Expr, v: Expr, o: Expr) -> Expr:
        channel = o // per_group * channels + c if groups > 1 else c
        data = source[n, h * stride + r * dilation, v * stride + s * dilation, channel]
        return te.sum(data * w[r, s, c, o], axis=(c, r, s))

    shape = (batch, rows, columns, outputs)
    y = te.compute(shape, element, name="conv")
    z = te.compute(shape, lambda n, h, v, o: te.maximum(y[n, h, v, o] + bias[o], 0.0), name="relu")
    return te.func(x, w, bias, z, name="conv2d")


def image_conv(height: int, width: int, outputs: int, *, kernel: int = 3) -> PrimFunc:
    """conv(X, W) of stride 2 without padding; X has three channels, and they come first."""
    x = te.placeholder((1, 3, height, width), "float32", name="X")
    w = te.placeholder((kernel, kernel, 3, outputs), "float32", name="W", constant=True)
    c, r, s = (te.reduce_axis(n, name=a) for a, n in zip("crs", (3, kernel, kernel), strict=True))
    y = te.compute(
        (1, (height - kernel) // 2 + 1, (width - kernel) // 2 + 1, outputs),
        lambda n, h, v, o: te.sum(x[n, c, h * 2 + r, v * 2 + s] * w[r, s, c, o], axis=(c, r, s)),
        name="conv",
    )
    return te.func(x, w, y, name="image_conv")


def packed_dots(intrinsic: TensorIntrinsic, m: int, n: int, k: int) -> PrimFunc:
    """C[i, j] = the sum of A[i, k] * B[k // p, j, k % p], in the types of an intrinsic that takes p
    points: those of a column are neighbours.
    """
    points, defined = intrinsic.points, intrinsic.define(4)
    left, right, total = (p.dtype for p in defined.parameters)
    a = te.placeholder((m, k), left, name="A")
    b = te.placeholder((k // points, n, points), right, name="B")
    q = te.reduce_axis(k, name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            te.cast(a[i, q], total) * te.cast(b[q // points, j, q % points], total), axis=q
        ),
        name="C",
    )
    return te.func(a, b, c, name="dots")


def in_instructions(sch: Schedule, intrinsic: TensorIntrinsic, lanes: int) -> None:
    """Let an instruction compute the innermost loops of `packed_dots`."""
    i, j, k = sch.loops("C")
    j, lane = sch.split(j, (None, lanes))
    k, point = sch.split(k, (None, intrinsic.points))
    sch.reorder(i, j, k, lane, point)
    sch.tensorize(lane, intrinsic.name)


def farthest(m: int, n: int) -> PrimFunc:
    """The largest element of each row of X and where it is, and how far that is from the diagonal;
    then what the two of them make.
    """
    x = te.placeholder((m, n), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    best, at = te.compute(
        (m,), lambda i: te.argmax(x[i, k], axis=k, dtype="int32"), name=("best", "at")
    )
    y = te.compute((m,), lambda i: best[i] + te.cast(at[i], "float32"), name="Y")
    return te.func(x, y, name="farthest")


def causal(m: int, n: int, width: int) -> PrimFunc:
    """C[i, j] = the sum of A[i, k] * B[k, j] over the last `width` k up to i; D = C + 1"""
    a = te.placeholder((m, m), "float32", name="A")
    b = te.placeholder((m, n), "float32", name="B")
    k = te.reduce_axis(m, name="k")

    def element(i: Expr, j: Expr) -> Expr:
        return te.sum(a[i, k] * b[k, j], axis=k, where=te.all_of(k <= i, i - width < k))

    c = te.compute((m, n), element, name="C")
    d = te.compute((m, n), lambda i, j: c[i, j] + 1.0, name="D")
    return te.func(a, b, d, name="causal")


def extremes(m: int, n: int) -> PrimFunc:
    """Y = the largest minus the smallest of what is above and below X, column by column"""
    x = te.placeholder((m, n), "float32", name="X")
    up, down = te.compute((m, n), lambda i, j: (x[i, j] + 1.0, x[i, j] * -2.0), name=("up", "down"))
    join = te.comm_reducer(
        lambda p, q: (te.maximum(p[0], q[0]), te.minimum(p[1], q[1])),
        lambda s, t: (te.const(-1e30, s), te.const(1e30, t)),
        name="extremes",
    )
    k = te.reduce_axis(m, name="k")
    most, least = te.compute(
        (n,), lambda j: join((up[k, j], down[k, j]), axis=k), name=("most", "least")
    )
    y = te.compute((n,), lambda j: most[j] - least[j], name="Y")
    return te.func(x, y, name="extremes")


def padded(x: te.Tensor, pad: int, value: float) -> te.Tensor:
    """The two middle axes of X, `value` around them."""
    batch, height, width, channels = x.shape

    def element(n: Expr, h: Expr, v: Expr, c: Expr) -> Expr:
        inside = te.all_of(h >= pad, h < height + pad, v >= pad, v < width + pad)
        return te.select(inside, x[n, h - pad, v - pad, c], value)

    return te.compute((batch, height + 2 * pad, width + 2 * pad, channels), element, name="X_pad")


def pool(
    height: int,
    width: int,
    channels: int,
    *,
    kernel: int = 3,
    stride: int = 2,
    pad: int = 0,
    batch: int = 1,
    dtype: str = "float32",
) -> PrimFunc:
    """The largest element of each window, channels last."""
    x = te.placeholder((batch, height, width, channels), dtype, name="X")
    rows, columns = (
        (height + 2 * pad - kernel) // stride + 1,
        (width + 2 * pad - kernel) // stride + 1,
    )
    source = padded(x, pad, float("-inf")) if pad else x
    r, s = te.reduce_axis(kernel, name="r"), te.reduce_axis(kernel, name="s")
    y = te.compute(
        (batch, rows, columns, channels),
        lambda n, h, v, c: te.max(source[n, h * stride + r, v * stride + s, c], axis=(r, s)),
        name="Y",
    )
    return te.func(x, y, name="pool")


def scattered(rows: int, columns: int, count: int) -> PrimFunc:
    """Rows of U are added to those of X at the places P."""
    x = te.placeholder((rows, columns), "float32", name="X")
    u = te.placeholder((count, columns), "float32", name="U")
    p = te.placeholder((count,), "int64", name="P")
    at = te.compute(
        (count,), lambda k: te.cast(te.checked(p[k], rows, what="row"), "int32"), name="at"
    )
    y = te.scatter(x, u, at, axis=0, combining="add", name="Y")
    return te.func(x, u, p, y, name="scattered")


def gathered(rows: int, columns: int, count: int) -> PrimFunc:
    """Y[i, j] = T[N[i], j] + T[i, M[j]] of a table T = 2 X + 1 that is computed."""
    x = te.placeholder((rows, columns), "float32", name="X")
    n = te.placeholder((count,), "int32", name="N")
    m = te.placeholder((columns,), "int64", name="M")
    table = te.compute((rows, columns), lambda i, j: x[i, j] * 2.0 + 1.0, name="T")

    def element(i: Var, j: Var) -> Expr:
        return table[te.checked(n[i], rows), j] + table[i % rows, te.clamp_index(m[j], columns)]

    return te.func(x, n, m, te.compute((count, columns), element, name="Y"), name="gathered")


def bag(rows: int, columns: int, count: int) -> PrimFunc:
    """Y[j] = the sum of R[N[k], j] over k, where R[i, j] sums X[i, :] up."""
    x = te.placeholder((rows, count), "float32", name="X")
    n = te.placeholder((count,), "int64", name="N")
    k, r = te.reduce_axis(count, name="k"), te.reduce_axis(count, name="r")
    sums = te.compute(
        (rows, columns), lambda i, j: te.sum(x[i, r] * te.cast(j + 1, "float32"), axis=r), name="R"
    )
    y = te.compute((columns,), lambda j: te.sum(sums[te.checked(n[k], rows), j], axis=k), name="Y")
    return te.func(x, n, y, name="bag")


def moments(m: int, n: int) -> PrimFunc:
    """S = the sums of the rows of X, Q = the sums of their squares, D = X - S: two outputs that
    read one input, and a third that reads the first.
    """
    x = te.placeholder((m, n), "float32", name="X")
    k, t = te.reduce_axis(n, name="k"), te.reduce_axis(n, name="t")
    s = te.compute((m,), lambda i: te.sum(x[i, k], axis=k), name="S")
    q = te.compute((m,), lambda i: te.sum(x[i, t] * x[i, t], axis=t), name="Q")
    d = te.compute((m, n), lambda i, j: x[i, j] - s[i], name="D")
    return te.func(x, s, q, d, name="moments")


def parts_of_a_sum(sch: Schedule, block: str) -> tuple[str, str, str]:
    """The terms of a sum of rows in thirds, each in loops of its own; the blocks, of which the
    first holds the initialisation.
    """
    _, k = sch.loops(block)
    third = sch.extent(k) // 3
    sch.loop_partition(k, (third, 2 * third))
    names = (block, f"{block}_part1", f"{block}_part2")
    for name in names[:2]:
        sch.fission(sch.loops(name)[0], name)
    return names


def running(m: int, n: int, *, axis: int = 0, reverse: bool = False) -> PrimFunc:
    """S = sums of X along an axis, up to each element, or from each on."""
    x = te.placeholder((m, n), "float32", name="X")
    state = te.state((m, n), "float32", name="S")
    end = (m, n)[axis] - 1 if reverse else 0

    def moved(i: Expr, j: Expr, by: int) -> tuple[Expr, Expr]:
        def along(at: Expr) -> Expr:
            return at - -by if by < 0 else at + by

        return (along(i), j) if axis == 0 else (i, along(j))

    one = (1, n) if axis == 0 else (m, 1)
    first = te.compute(one, lambda i, j: x[moved(i, j, end)], name="first")
    step = te.compute(
        (m, n), lambda i, j: state[moved(i, j, 1 if reverse else -1)] + x[i, j], name="step"
    )
    return te.func(x, te.scan(first, step, state, axis=axis, reverse=reverse), name="running")


def wave(steps: int, n: int) -> PrimFunc:
    """Y = 2 S, where a step of S takes from its right neighbour in the one before, from its own
    place in the one before that, and from X.
    """
    x = te.placeholder((steps, n), "float32", name="X")
    state = te.state((steps, n), "float32", name="S")
    first = te.compute((2, n), lambda t, i: x[t, i] + 1.0, name="first")

    def element(t: Expr, i: Expr) -> Expr:
        right = te.select(i < n - 1, state[t - 1, i + 1], 0.0)
        return right - state[t - 2, i] + x[t, i]

    step = te.compute((steps, n), element, name="step")
    s = te.scan(first, step, state)
    y = te.compute((steps, n), lambda t, i: s[t, i] * 2.0, name="Y")
    return te.func(x, y, name="wave")


def braid(steps: int, n: int) -> PrimFunc:
    """Two states, each made of the other one alone: A of the right neighbour in the step of B
    before, B of the same place in the step of A before.
    """
    x = te.placeholder((steps, n), "float32", name="X")
    a, b = (te.state((steps, n), "float32", name=name) for name in "AB")
    first = te.compute((1, n), lambda t, i: (x[t, i], x[t, i] + 1.0), name=("a0", "b0"))

    def element(t: Expr, i: Expr) -> tuple[Expr, Expr]:
        right = te.select(i < n - 1, b[t - 1, i + 1], 0.0)
        return right + x[t, i], a[t - 1, i] - x[t, i]

    step = te.compute((steps, n), element, name=("a1", "b1"))
    return te.func(x, *te.scan(first, step, (a, b)), name="braid")


def cell(steps: int, n: int) -> PrimFunc:
    """The positive outputs H of cells that keep C, of which each step leaves F: two states."""
    x, f = (te.placeholder((steps, n), "float32", name=name) for name in "XF")
    kept, shown = (te.state((steps, n), "float32", name=name) for name in "CH")
    first = te.compute((1, n), lambda t, i: te.const(0.0, "float32"), name="first")

    def element(t: Expr, i: Expr) -> tuple[Expr, Expr]:
        now = kept[t - 1, i] * f[t, i] + shown[t - 1, i] + x[t, i]
        return now, te.maximum(now, 0.0)

    step = te.compute((steps, n), element, name=("now", "out"))
    return te.func(x, f, te.scan((first, first), step, (kept, shown))[1], name="cell")


# numbers that are not negative are in order as their bits are, NaN last
SORT_ROWS = """\
#include <string.h>

static int after(float a, float b)
{
    int one, other;
    memcpy(&one, &a, sizeof one);
    memcpy(&other, &b, sizeof other);
    return one > other;
}

void sort_rows(const float *from, float *to)
{
    for (int i = 0; i < %d; i++) {
        const float *x = from + i * %d;
        float *y = to + i * %d;
        for (int j = 0; j < %d; j++) {
            int k = j;
            for (; k > 0 && after(y[k - 1], x[j]); k--)
                y[k] = y[k - 1];
            y[k] = x[j];
        }
    }
}
"""


def in_rows(x: Array) -> Array:
    """Each row in ascending order."""
    return np.sort(x, axis=1)


def ranked(m: int, n: int) -> PrimFunc:
    """Y = 2 S + D, where a C function sorts each row of D = |A - B| into S."""
    a, b = (te.placeholder((m, n), "float32", name=name) for name in "AB")
    d = te.compute((m, n), lambda i, j: te.abs(a[i, j] - b[i, j]), name="D")
    text = SORT_ROWS % (m, n, n, n)
    s = te.extern(
        (m, n), "float32", d, source=text, symbol="sort_rows", reference=in_rows, name="S"
    )
    y = te.compute((m, n), lambda i, j: s[i, j] * 2.0 + d[i, j], name="Y")
    return te.func(a, b, y, name="ranked")


def integers(func: PrimFunc, seed: int = 0) -> dict[str, Array]:
    """Small integers for every parameter that is not an output, by name."""
    rng = np.random.default_rng(seed)
    return {
        p.name: rng.integers(-3, 4, p.buffer.shape).astype(p.dtype.numpy)
        for p in func.parameters
        if p.role != "output"
    }


def assert_same_values(func: PrimFunc, original: PrimFunc, *, barriers: bool = False) -> None:
    """`func`, in the checked interpreter, gives what NumPy gives for `original`, bit by bit."""
    arrays = integers(original)
    expected = evaluate(original, arrays)
    results = interpret(func, *arrays.values(), checked=True, barriers=barriers)
    for buffer, result in zip(func.outputs, results, strict=True):
        np.testing.assert_array_equal(result, expected[buffer.name], err_msg=buffer.name)


def assert_meaning_kept(sch: Schedule, target: str = "c:avx512") -> PrimFunc:
    """The schedule's function and its nest mean what the original does; the nest is returned."""
    assert_same_values(sch.func, sch.original)
    nest = lower_to_nest(contraction(sch.func, Target.parse(target)))
    assert_same_values(nest, sch.original, barriers=True)
    return nest


def assert_replays(sch: Schedule) -> None:
    """The trace, through JSON, makes the same text of the same function."""
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert str(Schedule.replay(sch.original, trace)) == str(sch)


def scheduled(func: PrimFunc, steps: Callable[[Schedule], object]) -> Schedule:
    """The schedule after `steps`: its values are kept and its trace replays."""
    sch = Schedule(func).apply(steps)
    assert_meaning_kept(sch)
    assert_replays(sch)
    return sch


def body_of(sch: Schedule) -> str:
    """The text of the function without its first line and one step of indentation."""
    return print_stmt(sch.func.body)


Steps = Callable[[Schedule], object]


def refused(func: PrimFunc, steps: Steps) -> str:
    """The text of the refusal that `steps` ends in; the schedule is as it was."""
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as refusal:
        sch.apply(steps)
    assert str(sch.func) == str(func)
    assert not sch.trace.steps
    return str(refusal.value)


def refusals(cases: dict[str, tuple[PrimFunc, Steps]]) -> str:
    """The refusals of several cases, each under its name, for one golden file."""
    return "\n\n".join(f"# {name}\n{refused(*case)}" for name, case in cases.items())
