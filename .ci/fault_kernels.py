"""Kernels that a build should refuse, or get right, whatever is wrong in schedules and lowering."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from fault_task import Array, Make, Task, normal, whole

from tilewright import Schedule, te
from tilewright.tir.expr import Expr


def transposed_and_inlined() -> Task:
    """C = (2 A)' + A, where 2 A is put into its reader."""
    n, data = 13, normal(13, 13)
    a = te.placeholder((n, n), "float32", name="A")
    p = te.compute((n, n), lambda i, j: a[i, j] * 2.0, name="P")
    c = te.compute((n, n), lambda i, j: p[j, i] + a[i, j], name="C")
    sch = Schedule(te.func(a, c, name="transposed"))
    sch.compute_inline("P")
    return Task(sch, {"A": data}, {"C": 2 * data.T + data})


def _sums(rows: int, columns: int) -> tuple[Schedule, Array]:
    a = te.placeholder((rows, columns), "float32", name="A")
    k = te.reduce_axis(columns, name="k")
    c = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="C")
    return Schedule(te.func(a, c, name="sums")), normal(rows, columns)


def sums_in_parts() -> Task:
    """Sums of 100 numbers in 8 parts, of which the last terms do not exist."""
    sch, data = _sums(5, 100)
    _, k = sch.loops("C")
    sch.rfactor("C", sch.split(k, (None, 8))[1])
    return Task(sch, {"A": data}, {"C": data.sum(1, dtype=np.float64)})


def sums_shared_by_threads() -> Task:
    """Threads that share the terms of one sum: no schedule of ours."""
    sch, data = _sums(2, 5000)
    i, k = sch.loops("C")
    sch.reorder(k, i)
    sch.parallel(k)
    return Task(sch, {"A": data}, {"C": data.sum(1, dtype=np.float64)})


def read_too_early() -> Task:
    """A reader of a sum below the loop that sums: no schedule of ours."""
    a = te.placeholder((6, 50), "float32", name="A")
    k = te.reduce_axis(50, name="k")
    c = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="C")
    y = te.compute((6,), lambda i: c[i] * c[i], name="Y")
    sch, data = Schedule(te.func(a, y, name="squares")), normal(6, 50)
    sch.reverse_compute_at("Y", sch.loops("C")[1])
    return Task(sch, {"A": data}, {"Y": data.sum(1, dtype=np.float64) ** 2})


def _doubled(n: int) -> tuple[Schedule, Array, Array]:
    x = te.placeholder((n,), "float32", name="X")
    y = te.compute((n,), lambda i: x[i] * 2.0, name="Y")
    data = normal(n)
    return Schedule(te.func(x, y, name="doubled")), data, 2 * data


def split_with_a_guard() -> Task:
    """100 elements by eights, behind a test."""
    sch, data, wanted = _doubled(100)
    sch.split(sch.loops("Y")[0], (None, 8), tail="guard")
    return Task(sch, {"X": data}, {"Y": wanted}, 0)


def split_with_a_rest() -> Task:
    """100 elements by eights, the last four in a loop of their own."""
    sch, data, wanted = _doubled(100)
    sch.split(sch.loops("Y")[0], (None, 8), tail="partition")
    return Task(sch, {"X": data}, {"Y": wanted}, 0)


def masked_by_one_lane() -> Task:
    """111 elements in vectors of 16: the last one lacks a single lane."""
    sch, data, wanted = _doubled(111)
    _, middle, lanes = sch.split(sch.loops("Y")[0], (None, 4, 16), tail="mask")
    sch.unroll(middle)
    sch.vectorize(lanes)
    return Task(sch, {"X": data}, {"Y": wanted}, 0)


def _product(m: int, n: int, k: int) -> tuple[Schedule, dict[str, Array], Array]:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    one, two = normal(m, k), normal(k, n, seed=1)
    wanted = one.astype(np.float64) @ two
    return Schedule(te.func(a, b, c, name="product")), {"A": one, "B": two}, wanted


def packed_operand() -> Task:
    """A product whose second matrix, as many rows as columns, lies in panels."""
    sch, data, wanted = _product(12, 12, 12)
    sch.transform_layout(sch.cache_read("C", "B"), "lambda k, n: (n // 4, k, n % 4)")
    return Task(sch, data, {"C": wanted})


def sums_in_memory() -> Task:
    """A product whose unrolled terms are added up in memory, one after the other."""
    sch, data, wanted = _product(5, 6, 8)
    _, _, k = sch.loops("C")
    sch.unroll(k)
    return Task(sch, data, {"C": wanted})


def fused_loops() -> Task:
    """Two loops as one."""
    x = te.placeholder((7, 11), "float32", name="X")
    b = te.placeholder((7,), "float32", name="B")
    y = te.compute((7, 11), lambda i, j: x[i, j] + b[i], name="Y")
    sch = Schedule(te.func(x, b, y, name="added"))
    sch.fuse(*sch.loops("Y"))
    data, bias = normal(7, 11), normal(7)
    return Task(sch, {"X": data, "B": bias}, {"Y": data + bias[:, None]}, 0)


def rolling_rows() -> Task:
    """A blur that keeps two rows of its first half."""
    x = te.placeholder((21, 18), "float32", name="X")
    r = te.compute((21, 17), lambda i, j: x[i, j] + x[i, j + 1], name="R")
    y = te.compute((20, 17), lambda i, j: r[i, j] + r[i + 1, j], name="Y")
    sch, data = Schedule(te.func(x, y, name="blur")), normal(21, 18)
    rows, _ = sch.loops("Y")
    sch.compute_at("R", rows)
    sch.rolling_buffer("R", rows)
    half = data[:, :-1].astype(np.float64) + data[:, 1:]
    return Task(sch, {"X": data}, {"Y": half[:-1] + half[1:]})


def filled_borders() -> Task:
    """A padded row whose borders are filled apart."""
    x = te.placeholder((20,), "float32", name="X")

    def element(i: Expr) -> Expr:
        return te.select(te.all_of(i >= 3, i < 23), x[i - 3], 5.0)

    p = te.compute((29,), element, name="P")
    y = te.compute((28,), lambda i: p[i] + p[i + 1], name="Y")
    sch, data = Schedule(te.func(x, y, name="shifted")), normal(20)
    sch.decompose_padding("P", sch.loops("P")[0])
    wide = np.pad(data.astype(np.float64), (3, 6), constant_values=5.0)
    return Task(sch, {"X": data}, {"Y": wide[:-1] + wide[1:]})


def padded_vectors() -> Task:
    """Vectors over a padded row, whose lanes lie before the row, in it and behind it, and use what
    they read several times: no C compiler makes one masked instruction of that.
    """
    x = te.placeholder((64,), "float32", name="X")

    def element(i: Expr) -> Expr:
        own = x[i - 8]
        return te.select(te.all_of(i >= 8, i < 72), own * own * own + own, 5.0)

    sch = Schedule(te.func(x, te.compute((200,), element, name="Y"), name="padded"))
    _, lanes = sch.split(sch.loops("Y")[0], (None, 16), tail="mask")
    sch.vectorize(lanes)
    data = normal(64)
    wide = data.astype(np.float64)
    wanted = np.pad(wide**3 + wide, (8, 128), constant_values=5.0)
    return Task(sch, {"X": data}, {"Y": wanted})


def shared_reads_behind_a_guard() -> Task:
    """An element that all lanes share is read where a condition on the lanes allows it."""
    x = te.placeholder((20,), "float32", name="X")
    z = te.placeholder((28, 32), "float32", name="Z")

    def element(i: Expr, j: Expr) -> Expr:
        inside = te.all_of(j >= 3, i >= 8)
        return z[i, j] + te.select(inside, x[i - 8], 0.0)

    y = te.compute((28, 32), element, name="Y")
    sch = Schedule(te.func(x, z, y, name="guarded"))
    sch.vectorize(sch.loops("Y")[1])
    data, other = normal(20), normal(28, 32)
    wanted = other.astype(np.float64)
    wanted[8:, 3:] += data[:, None]
    return Task(sch, {"X": data, "Z": other}, {"Y": wanted})


def triangle_in_registers() -> Task:
    """Sums over a triangle, in vectors of which each term takes fewer lanes than the last."""
    n = 32
    a = te.placeholder((n, n), "float32", name="A")
    k = te.reduce_axis(n, name="k")
    c = te.compute((n,), lambda j: te.sum(a[k, j] + 1.0, axis=k, where=k <= j), name="C")
    sch = Schedule(te.func(a, c, name="triangle"))
    j, k = sch.loops("C")
    outer, lanes = sch.split(j, (None, 16))
    sch.reorder(outer, k, lanes)
    sch.vectorize(lanes)
    sch.stage("C", "C", outer, "register")
    data = normal(n, n)
    return Task(sch, {"A": data}, {"C": np.triu(data.astype(np.float64) + 1.0).sum(0)})


def constants_before_two_loops() -> Task:
    """A table made of a constant, rows of very different cost, and columns that read all of them:
    what threads share out in two ways, with a wait between.
    """
    n = 192
    w = te.placeholder((n, n), "float32", name="W", constant=True)
    x = te.placeholder((n, n), "float32", name="X")
    p = te.compute((n, n), lambda i, j: w[i, j] * 2.0, name="P")
    k = te.reduce_axis(n, name="k")
    t = te.compute((n, n), lambda i, j: te.sum(x[i, k] * p[k, j], axis=k, where=k <= i), name="T")
    r = te.reduce_axis(n, name="r")
    y = te.compute((n,), lambda j: te.sum(t[r, j], axis=r), name="Y")
    sch = Schedule(te.func(w, x, y, name="table"))
    sch.parallel(sch.loops("T")[0])
    sch.parallel(sch.loops("Y")[0])
    weights, data = normal(n, n), normal(n, n, seed=1)
    rows = np.tril(data.astype(np.float64)) @ (2.0 * weights)
    return Task(sch, {"X": data}, {"Y": rows.sum(0)}, constants={"W": weights})


def two_workspaces() -> Task:
    """Two tensors that are kept side by side, and a third that reads both."""
    n = 60000
    x = te.placeholder((n,), "float32", name="X")
    s = te.compute((n,), lambda i: x[i] * x[i], name="S")
    t = te.compute((n,), lambda i: s[(n - 1) - i] + x[i], name="T")
    y = te.compute((n,), lambda i: s[i] - t[(n - 1) - i], name="Y")
    sch = Schedule(te.func(x, y, name="both"))
    for name in "STY":
        sch.parallel(sch.loops(name)[0])
    data = normal(n)
    wide = data.astype(np.float64)
    total = (wide * wide)[::-1] + wide
    return Task(sch, {"X": data}, {"Y": wide * wide - total[::-1]})


def tiles_of_threads() -> Task:
    """Each row in a tile that its thread keeps for itself, written once, then read whole for each
    element of the result.
    """
    rows, columns = 24, 1000
    x = te.placeholder((rows, columns), "float32", name="X")
    p = te.compute((rows, columns), lambda i, j: x[i, j] * x[i, j], name="P")
    k = te.reduce_axis(columns, name="k")
    y = te.compute((rows, columns), lambda i, j: te.sum(p[i, k] * x[i, j], axis=k), name="Y")
    sch = Schedule(te.func(x, y, name="tiles"))
    i, _, _ = sch.loops("Y")
    sch.compute_at("P", i)
    sch.parallel(i)
    data = normal(rows, columns)
    squares = (data.astype(np.float64) ** 2).sum(1, keepdims=True)
    return Task(sch, {"X": data}, {"Y": squares * data}, 1e-4)


def rows_of_threads() -> Task:
    """64 rows: two threads share them evenly, three do not."""
    x = te.placeholder((64, 8), "float32", name="X")
    y = te.compute((64, 8), lambda i, j: x[i, j] + 1.0, name="Y")
    sch, data = Schedule(te.func(x, y, name="rows")), normal(64, 8)
    sch.parallel(sch.loops("Y")[0])
    return Task(sch, {"X": data}, {"Y": data + np.float32(1)}, 0)


def stored_as_bfloat16() -> Task:
    """Numbers rounded to the nearest bfloat16."""
    x = te.placeholder((4096,), "float32", name="X")
    y = te.compute((4096,), lambda i: te.cast(x[i], "bfloat16"), name="Y")
    data = normal(4096)
    return Task(
        te.func(x, y, name="rounded"), {"X": data}, {"Y": data.astype(ml_dtypes.bfloat16)}, 0
    )


def _divided(quotient: bool) -> Task:
    x = te.placeholder((500,), "int32", name="X")
    d = te.placeholder((500,), "int32", name="D")
    y = te.compute((500,), lambda i: x[i] // d[i] if quotient else x[i] % d[i], name="Y")
    data, by = whole("int32", 500), whole("int32", 500, low=-9, high=9)
    by[by == 0] = 7
    wanted = data // by if quotient else data % by
    return Task(te.func(x, d, y, name="divided"), {"X": data, "D": by}, {"Y": wanted}, 0)


def rounded_down_quotients() -> Task:
    """Quotients of numbers of both signs."""
    return _divided(True)


def remainders_of_negatives() -> Task:
    """Remainders of numbers of both signs."""
    return _divided(False)


def saturated_bytes() -> Task:
    """Floats beyond the ends of int8, as quantised models have them."""
    x = te.placeholder((1000,), "float32", name="X")
    y = te.compute((1000,), lambda i: te.cast(te.round(x[i] * 20.0), "int8"), name="Y")
    data = 8 * normal(1000)
    wanted = np.clip(np.rint(data * np.float32(20)), -128, 127).astype(np.int8)
    return Task(te.func(x, y, name="quantised"), {"X": data}, {"Y": wanted}, 0)


def signed_bytes() -> Task:
    """Bytes of both signs, one by one."""
    x = te.placeholder((300,), "int8", name="X")
    y = te.compute((300,), lambda i: te.cast(x[i], "int32") * 3, name="Y")
    sch, data = Schedule(te.func(x, y, name="widened")), whole("int8", 300)
    sch.split(sch.loops("Y")[0], (None, 10))
    return Task(sch, {"X": data}, {"Y": data.astype(np.int32) * 3}, 0)


def unrolled_rows() -> Task:
    """Four copies of a loop's body."""
    x = te.placeholder((4, 9), "float32", name="X")
    y = te.compute((4, 9), lambda i, j: x[i, j] * 2.0, name="Y")
    sch, data = Schedule(te.func(x, y, name="copies")), normal(4, 9)
    sch.unroll(sch.loops("Y")[0])
    return Task(sch, {"X": data}, {"Y": 2 * data}, 0)


KERNELS: dict[str, Make] = {
    make.__name__: make
    for make in (
        transposed_and_inlined,
        sums_in_parts,
        sums_shared_by_threads,
        read_too_early,
        split_with_a_guard,
        split_with_a_rest,
        masked_by_one_lane,
        packed_operand,
        sums_in_memory,
        fused_loops,
        rolling_rows,
        filled_borders,
        padded_vectors,
        shared_reads_behind_a_guard,
        triangle_in_registers,
        constants_before_two_loops,
        two_workspaces,
        tiles_of_threads,
        rows_of_threads,
        stored_as_bfloat16,
        rounded_down_quotients,
        remainders_of_negatives,
        saturated_bytes,
        signed_bytes,
        unrolled_rows,
    )
}
