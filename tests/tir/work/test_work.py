"""Operations and bytes of a definition, counted by hand beside it."""

from __future__ import annotations

from tilewright.tir.func import PrimFunc
from tilewright.tir.lowered import Fma
from tilewright.tir.te import te
from tilewright.tir.work.work import (
    block_work,
    bytes_moved,
    expression_operations,
    integer_operations,
    operations,
)


def convolution(size: int, kernel: int, stride: int, pad: int) -> PrimFunc:
    x = te.placeholder((size, 4), "float32", name="x")
    w = te.placeholder((kernel, 4, 8), "float32", name="w", constant=True)
    windows = (size + 2 * pad - kernel) // stride + 1
    k, c = te.reduce_axis(kernel, name="k"), te.reduce_axis(4, name="c")
    padded = te.compute(
        (size + 2 * pad, 4),
        lambda i, j: te.select(te.all_of(i >= pad, i < size + pad), x[i - pad, j], 0.0),
        name="padded",
    )
    y = te.compute(
        (windows, 8),
        lambda i, o: te.sum(padded[i * stride + k, c] * w[k, c, o], axis=(k, c)),
        name="y",
    )
    return te.func(x, w, y, name="convolution")


def test_a_contraction_counts_two_operations_a_point() -> None:
    assert operations(convolution(16, 3, 1, 1)) == 2 * 16 * 8 * 3 * 4


def test_every_tensor_moves_once() -> None:
    func = convolution(16, 3, 1, 1)
    assert bytes_moved(func) == 4 * (16 * 4 + 3 * 4 * 8 + 16 * 8)


def test_an_index_that_is_data_moves_as_many_elements_as_it_has_values() -> None:
    def moved(count: int) -> int:
        table = te.placeholder((10, 3), "float32", name="T")
        n = te.placeholder((count,), "int32", name="N")
        y = te.compute((count, 3), lambda i, j: table[te.clamp_index(n[i], 10), j], name="Y")
        return bytes_moved(te.func(table, n, y, name="rows"))

    assert moved(4) == 4 * (4 * 3 + 4 + 4 * 3)
    assert moved(40) == 4 * (10 * 3 + 40 + 40 * 3)


def test_a_stride_beyond_the_kernel_skips_elements() -> None:
    func = convolution(16, 1, 4, 0)
    padded, y = (block_work(block) for block in func.blocks)
    assert padded.read == ((func.inputs[0], 4 * 16 * 4),)
    assert dict(y.read)[func.allocations[0]] == 4 * 4 * 4
    assert y.written == 4 * 4 * 8


def test_padding_is_not_read() -> None:
    padded = block_work(convolution(16, 3, 1, 1).blocks[0])
    assert (padded.points, padded.written) == (18 * 4, 4 * 18 * 4)
    assert padded.read[0][1] == 4 * 16 * 4


def test_several_reads_of_one_tensor_count_their_union() -> None:
    x = te.placeholder((10,), "float32", name="x")
    y = te.compute((4,), lambda i: x[i] + x[i + 2], name="y")
    assert bytes_moved(te.func(x, y, name="f")) == 4 * (6 + 4)


def test_a_tensor_that_one_read_covers_counts_once() -> None:
    x = te.placeholder((10,), "float32", name="x")
    y = te.compute((10,), lambda i: x[i] + x[9 - i] + x[0], name="y")
    func = te.func(x, y, name="f")
    assert bytes_moved(func) == 4 * (10 + 10)
    assert operations(func) == 20


def test_index_arithmetic_and_comparisons_are_free_and_the_longer_side_counts() -> None:
    x = te.placeholder((10,), "float32", name="x")
    y = te.compute((10,), lambda i: te.select(i * 2 < 10, te.exp(x[i]) + 1.0, x[i] * 2.0), name="y")
    assert operations(te.func(x, y, name="f")) == 10 * 2


def test_a_fused_multiply_add_is_two_operations() -> None:
    x = te.placeholder((1,), "float32", name="x")
    assert expression_operations(Fma(x[0], x[0], x[0])) == 2


def test_a_reshape_reads_everything() -> None:
    x = te.placeholder((6, 4), "float32", name="x")
    y = te.compute((24,), lambda i: x[i // 4, i % 4], name="y")
    assert bytes_moved(te.func(x, y, name="f")) == 4 * (24 + 24)


def test_only_the_points_that_count_are_work() -> None:
    x = te.placeholder((6, 6), "float32", name="X")
    flags = te.placeholder((6,), "int32", name="F")
    k = te.reduce_axis(6, name="k")
    lower = te.compute((6,), lambda i: te.sum(x[i, k], axis=k, where=k <= i), name="lower")
    assert operations(te.func(x, lower, name="f")) == 21
    some = te.compute((6,), lambda i: te.sum(x[i, k], axis=k, where=flags[k] > 0), name="some")
    assert (
        operations(te.func(x, flags, some, name="f")) == 36
    )  # decided by data: each combines something


def test_each_tensor_of_a_block_is_written() -> None:
    x = te.placeholder((6, 8), "float32", name="X")
    k = te.reduce_axis(8, name="k")
    best, at = te.compute((6,), lambda i: te.argmax(x[i, k], axis=k), name=("best", "at"))
    func = te.func(x, best, at, name="f")
    work = block_work(func.blocks[0])
    assert [(buffer.name, count) for buffer, count in work.written_to] == [("best", 24), ("at", 48)]
    assert work.written == 72
    assert [(buffer.name, count) for buffer, count in work.read] == [("X", 192)]
    assert bytes_moved(func) == 192 + 72


def test_operations_on_integers_count_where_data_is_in_them() -> None:
    a = te.placeholder((64, 256), "uint8", name="A")
    b = te.placeholder((256, 128), "int8", name="B")
    k = te.reduce_axis(256, name="k")
    c = te.compute(
        (64, 128),
        lambda i, j: te.sum(te.cast(a[i, k], "int32") * te.cast(b[k, j], "int32"), axis=k),
        name="C",
    )
    dot = te.func(a, b, c, name="dot")
    assert (integer_operations(dot), operations(dot)) == (2 * 64 * 128 * 256, 0)
    x = te.placeholder((100,), "int32", name="X")
    n = te.reduce_axis(100, name="n")
    one = te.const(1, "int32")
    counts = te.compute(
        (8,), lambda i: te.sum(one, n, where=te.eq(te.cast(x[n], "int64"), i)), name="counts"
    )
    assert integer_operations(te.func(x, counts, name="histogram")) == 8 * 100
    shifted = te.compute((100,), lambda i: (x[i] >> 2) + te.cast(i * 3, "int32"), name="S")
    assert integer_operations(te.func(x, shifted, name="shifted")) == 2 * 100
    assert integer_operations(convolution(16, 3, 1, 1)) == 0
