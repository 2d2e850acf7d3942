"""tir/reference/evaluate.py against NumPy and against the interpreter."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference import evaluate as module
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.stmt import IterKind, iter_var
from tilewright.tir.te import te


def random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small whole numbers: every order of a sum gives the same bits."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def matmul(m: int, n: int, k_extent: int) -> PrimFunc:
    a = te.placeholder((m, k_extent), "float32", name="A")
    b = te.placeholder((k_extent, n), "float32", name="B")
    k = te.reduce_axis(k_extent, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="matmul")


def conv(channels: int, outputs: int, size: int, kernel: int, stride: int, groups: int) -> PrimFunc:
    """A convolution padded by kernel // 2, whose padding is a Select inside the sum."""
    pad, per_group = kernel // 2, channels // groups
    x = te.placeholder((channels, size, size), "float32", name="X")
    w = te.placeholder((outputs, per_group, kernel, kernel), "float32", name="W")
    c, r, s = te.reduce_axis(per_group), te.reduce_axis(kernel), te.reduce_axis(kernel)
    windows = (size + 2 * pad - kernel) // stride + 1

    def element(o: te.Expr, p: te.Expr, q: te.Expr) -> te.Expr:
        y, z = p * stride + r - pad, q * stride + s - pad
        inside = te.all_of(y >= 0, y < size, z >= 0, z < size)
        channel = o // (outputs // groups) * per_group + c
        return te.sum(te.select(inside, x[channel, y, z], 0.0) * w[o, c, r, s], axis=(c, r, s))

    return te.func(x, w, te.compute((outputs, windows, windows), element, name="Y"), name="conv")


def numpy_conv(x: np.ndarray, w: np.ndarray, stride: int, groups: int) -> np.ndarray:
    pad = w.shape[-1] // 2
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    taps = sliding_window_view(padded, w.shape[-2:], axis=(1, 2))[:, ::stride, ::stride]
    parts = zip(np.split(taps, groups), np.split(w, groups), strict=True)
    return np.concatenate([np.einsum("cpqrs,ocrs->opq", t, v) for t, v in parts])


def softmax(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k, t = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="t")
    top = te.compute((rows,), lambda i: te.max_any(x[i, k], axis=k), name="top")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
    total = te.compute((rows,), lambda i: te.sum(e[i, t], axis=t), name="total")
    y = te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="softmax")


def test_a_sum_of_products_is_a_matrix_product() -> None:
    a, b = random((20, 30)), random((30, 10), 1)
    result = evaluate(matmul(20, 10, 30), {"A": a, "B": b}, "float64")["C"]
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, a.astype(float) @ b.astype(float), rtol=1e-14)


@pytest.mark.parametrize(("stride", "groups"), [(1, 1), (2, 1), (1, 2), (1, 4)])
def test_windows_strides_groups_and_padding_give_a_convolution(stride: int, groups: int) -> None:
    x, w = integers((4, 9, 9)), integers((8, 4 // groups, 3, 3), 1)
    result = evaluate(conv(4, 8, 9, 3, stride, groups), [x, w])["Y"]
    np.testing.assert_array_equal(result, numpy_conv(x, w, stride, groups))


def test_intermediates_are_returned_when_asked_for() -> None:
    x = random((5, 7))
    found = evaluate(softmax(5, 7), [x], intermediates=True)
    assert list(found) == ["Y", "top", "e", "total"]
    np.testing.assert_array_equal(found["top"], x.max(axis=1))
    np.testing.assert_allclose(found["Y"].sum(axis=1), 1.0, rtol=1e-6)


def odd_function() -> PrimFunc:
    """Quotients, remainders, a diagonal, a reversed axis, casts, many outputs."""
    a = te.placeholder((6, 8), "float32", name="A")
    k = te.reduce_axis(3, name="k")
    b = te.compute((48,), lambda i: a[i // 8, i % 8] + te.cast(i % 5, "float32"), name="B")
    c = te.compute((4, 6), lambda i, j: te.min(a[j, 7 - i - k] * a[i, i], axis=k), name="C")
    e = te.compute((4, 6), lambda i, j: te.prod(b[i * 6 + j + k], axis=k), name="E")
    s = te.compute((), lambda: te.sum(a[k, k] * a[k, 0], axis=k), name="S")
    return te.func(a, c, e, s, name="odd")


SCATTERED = """\
def scattered(A: float32[4, 6], B: output(float32[6, 4]), C: output(float32[6])):
    for i in range(4):
        for j in range(6):
            with block("B", vi=spatial(4, i), vj=spatial(6, j)):
                B[5 - vj, vi] = A[vi, vj]
    for j in range(6):
        for k in range(4):
            with block("C", vj=spatial(6, j), vk=reduce(4, k)):
                with init():
                    C[5 - vj] = 0.0
                C[5 - vj] = fma(B[vj, vk], A[vk, 0], C[5 - vj])
"""


FUNCTIONS: dict[str, Callable[[], PrimFunc]] = {
    "matmul": lambda: matmul(3, 4, 5),
    "conv": lambda: conv(2, 4, 5, 3, 2, 2),
    "softmax": lambda: softmax(3, 4),
    "one": lambda: softmax(1, 1),
    "odd": odd_function,
    "scattered": lambda: parse(SCATTERED),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_agrees_with_the_interpreter(name: str) -> None:
    func = FUNCTIONS[name]()
    arrays = [integers(b.shape, seed) for seed, b in enumerate(func.inputs)]
    expected = interpret(func, *arrays)
    found = evaluate(func, arrays)
    for buffer, array in zip(func.outputs, expected, strict=True):
        np.testing.assert_allclose(found[buffer.name], array, rtol=3e-7)
        assert found[buffer.name].dtype == array.dtype


def test_boxes_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for func in (conv(4, 8, 9, 3, 1, 2), softmax(7, 9), matmul(8, 8, 8)):
        arrays = [integers(b.shape, seed) for seed, b in enumerate(func.inputs)]
        whole = evaluate(func, arrays)
        with monkeypatch.context() as patch:
            patch.setattr(module, "POINTS", 10)
            patch.setattr(module, "_FACTORS", 100)
            parts = evaluate(func, arrays)
        for name, array in whole.items():
            np.testing.assert_allclose(parts[name], array, rtol=1e-6)


def test_a_reduction_over_nothing_is_its_neutral_element() -> None:
    a, none = te.placeholder((4, 0), "float32", name="A"), te.reduce_axis(0, name="none")
    total = te.compute((4,), lambda i: te.sum(a[i, none], axis=none), name="B")
    least = te.compute((4,), lambda i: te.min(a[i, none], axis=none), name="C")
    found = evaluate(te.func(a, total, least, name="nothing"), [random((4, 0))])
    assert found["B"].tolist() == [0.0] * 4
    assert found["C"].tolist() == [np.inf] * 4


def test_arrays_that_do_not_fit_are_refused() -> None:
    func, a = matmul(2, 3, 4), random((2, 4))
    with pytest.raises(IRError) as error:
        evaluate(func, [a])
    assert str(error.value) == (
        "IRError: evaluate: 'matmul' takes 'A', 'B'; got 1 arrays. [evaluate-arguments]"
    )
    with pytest.raises(IRError) as error:
        evaluate(func, {"A": a, "B": a.astype(np.float64)})
    assert str(error.value) == (
        "IRError: evaluate: 'B' is float64[2, 4]; expected float32[4, 3]. [evaluate-array]"
    )


@pytest.mark.slow
def test_large_kernels_take_less_than_a_second() -> None:
    for func in (conv(64, 64, 56, 3, 1, 1), matmul(128, 768, 3072)):
        arrays = [random(b.shape, seed) for seed, b in enumerate(func.inputs)]
        began = time.perf_counter()
        evaluate(func, arrays, "float64")
        assert time.perf_counter() - began < 1.0


def gathered(*, twice: bool) -> PrimFunc:
    """Rows of a table by number; read `twice`, its first column is added."""
    table = te.placeholder((9, 3), "float32", name="T")
    rows = te.placeholder((4,), "int64", name="rows")

    def element(i: te.Var, j: te.Var) -> te.Expr:
        row = table[te.clamp_index(rows[i], 9), j]
        return row * row + table[i, 0] if twice else row * row

    return te.func(table, rows, te.compute((4, 3), element, name="C"), name="gathered")


@pytest.mark.parametrize("twice", [False, True])
def test_rows_of_a_table_are_promoted_as_they_are_read(twice: bool) -> None:
    table = np.random.default_rng(0).standard_normal((9, 3), dtype=np.float32)
    rows = np.array([8, 0, 3, 3])
    wide = table.astype(np.float64)
    wanted = wide[rows] ** 2 + (wide[:4, :1] if twice else 0.0)
    found = evaluate(gathered(twice=twice), [table, rows], "float64")["C"]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, wanted)


def test_a_table_is_not_promoted_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[dict[str, str]] = []
    compute = module.compute

    def seen(definition: object, buffers: dict[module.Buffer, module.Array], *rest: object) -> None:
        kinds.append({buffer.name: array.dtype.name for buffer, array in buffers.items()})
        compute(definition, buffers, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "compute", seen)
    arrays = [np.zeros((9, 3), np.float32), np.zeros(4, np.int64)]
    for twice in (False, True):
        evaluate(gathered(twice=twice), arrays, "float64")
    assert [kind["T"] for kind in kinds] == ["float32", "float64"]


@pytest.mark.parametrize(
    ("first", "step", "found"),
    [(0, 1, True), (3, 2, True), (7, 2, True), (-1, 1, False), (8, 2, False)],
)
def test_what_is_read_inside_of_a_tensor_is_a_view_of_it(
    first: int, step: int, found: bool
) -> None:
    data = random((20,))
    axis = iter_var(Var("i"), 7, IterKind.SPATIAL)
    load = Load(Buffer("A", FLOAT32, (20,)), (axis.var * step + first,))
    view = module.DomainBox((axis,), (0,), (7,)).view(load, data)
    assert (view is not None) == found
    if view is not None:
        assert np.shares_memory(view, data)
        np.testing.assert_array_equal(view, data[first::step][:7])
