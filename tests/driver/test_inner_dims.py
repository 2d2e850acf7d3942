"""Kernels of functions of which a call decides inner sizes and how much is summed: values at the
ends of each size, around tiles and between, on arrays whose rows lie as far apart as the call says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product

import numpy as np
import pytest

from tilewright import te
from tilewright.driver.build import build
from tilewright.driver.check.data import random_array
from tilewright.runtime.arrays import ArgumentValueError, Array
from tilewright.runtime.machine.host import host
from tilewright.tir.dim import Dim
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.te.tensor import Tensor

pytestmark = [pytest.mark.needs_cc, pytest.mark.sampled(5)]
ISAS = [isa for isa in ("scalar", "avx2", "avx512", "neon") if isa in host().isas]


def matmul() -> PrimFunc:
    """C = A @ B; there may be no terms."""
    m, n, terms = te.dim("m", 1, 40), te.dim("n", 1, 70), te.dim("terms", 0, 50)
    a = te.placeholder((m, terms), "float32", name="A")
    b = te.placeholder((terms, n), "float32", name="B")
    k = te.reduce_axis(terms, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="matmul")


def dense() -> PrimFunc:
    """Batches of sequences, times constant weights."""
    n, s = te.dim("n", 1, 3), te.dim("s", 1, 40)
    x = te.placeholder((n, s, 24), "float32", name="X")
    w = te.placeholder((24, 36), "float32", name="W", constant=True)
    k = te.reduce_axis(24, name="k")
    y = te.compute((n, s, 36), lambda b, i, j: te.sum(x[b, i, k] * w[k, j], axis=k), name="Y")
    return te.func(x, w, y, name="dense")


def _softmax(x: Tensor, rows: Dim, columns: Dim) -> Tensor:
    k, q = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="q")
    most = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="most")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - most[i]), name="e")
    total = te.compute((rows,), lambda i: te.sum(e[i, q], axis=q), name="total")
    return te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="Y")


def softmax() -> PrimFunc:
    m, n = te.dim("m", 1, 20), te.dim("n", 1, 70)
    x = te.placeholder((m, n), "float32", name="X")
    return te.func(x, _softmax(x, m, n), name="softmax")


def attention() -> PrimFunc:
    """Heads of as many queries and keys as a call decides."""
    m, n = te.dim("m", 1, 20), te.dim("n", 1, 40)
    q = te.placeholder((2, m, 16), "float32", name="Q")
    keys = te.placeholder((2, n, 16), "float32", name="K")
    v = te.placeholder((2, n, 16), "float32", name="V")
    d, r, p, t = (te.reduce_axis(e, name=x) for e, x in ((16, "d"), (n, "r"), (n, "p"), (n, "t")))
    s = te.compute((2, m, n), lambda h, i, j: te.sum(q[h, i, d] * keys[h, j, d], axis=d), name="S")
    most = te.compute((2, m), lambda h, i: te.max(s[h, i, r], axis=r), name="most")
    e = te.compute((2, m, n), lambda h, i, j: te.exp(s[h, i, j] - most[h, i]), name="E")
    total = te.compute((2, m), lambda h, i: te.sum(e[h, i, p], axis=p), name="total")
    o = te.compute((2, m, 16), lambda h, i, j: te.sum(e[h, i, t] * v[h, t, j], axis=t), name="O")
    y = te.compute((2, m, 16), lambda h, i, j: o[h, i, j] / total[h, i], name="Y")
    return te.func(q, keys, v, y, name="attention")


def blurred() -> PrimFunc:
    """Images of any height and width, each pixel the sum of its nine neighbours that there are."""
    h, w = te.dim("h", 1, 20), te.dim("w", 1, 40)
    x = te.placeholder((2, h, w), "float32", name="X")
    r, c = te.reduce_axis(3, name="r"), te.reduce_axis(3, name="c")

    def near(b: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        row, column = i + r - 1, j + c - 1
        inside = te.all_of(row >= 0, row < h, column >= 0, column < w)
        return te.sum(te.select(inside, x[b, row, column], 0.0), axis=(r, c))

    return te.func(x, te.compute((2, h, w), near, name="Y"), name="blurred")


def turned() -> PrimFunc:
    """A transposed matrix of bytes, beside its columns' largest."""
    m, n = te.dim("m", 1, 40), te.dim("n", 1, 70)
    x = te.placeholder((m, n), "int8", name="X")
    k = te.reduce_axis(m, name="k")
    y = te.compute((n, m), lambda i, j: x[j, i], name="Y")
    z = te.compute((n,), lambda i: te.max(x[k, i], axis=k), name="Z")
    return te.func(x, y, z, name="turned")


MADE = [matmul, dense, softmax, attention, blurred, turned]


def sizes_of(func: PrimFunc) -> list[dict[Dim, int]]:
    """All ends, and some sizes between, others for each dim."""
    rng = np.random.default_rng(3)
    ends = [dict(zip(func.dims, at, strict=True)) for at in product(*_ends(func.dims))]
    return ends + [{d: int(rng.integers(d.low, d.high + 1)) for d in func.dims} for _ in range(12)]


def _ends(dims: tuple[Dim, ...]) -> list[tuple[int, int]]:
    return [(dim.low, dim.high) for dim in dims]


def arrays(func: PrimFunc, sizes: Mapping[Dim, int]) -> list[Array]:
    """Random inputs of a call of these sizes."""
    rng = np.random.default_rng(4)
    shapes = [tuple(sizes[e] if isinstance(e, Dim) else e for e in b.extents) for b in func.inputs]
    return [random_array(rng, b.type, s) for b, s in zip(func.inputs, shapes, strict=True)]


def fixed(func: PrimFunc) -> dict[str, Array]:
    """Its constants."""
    rng = np.random.default_rng(5)
    return {b.name: random_array(rng, b.type, b.shape) for b in func.constants}


def compare(func: PrimFunc, run: Callable[..., Array | tuple[Array, ...]]) -> None:
    """Hold a kernel against the reference at many sizes."""
    for sizes in sizes_of(func):
        given = arrays(func, sizes)
        found = run(*given)
        named = dict(zip((b.name for b in func.inputs), given, strict=True))
        results = list(found) if isinstance(found, tuple) else [found]
        assert reference(func, {**named, **fixed(func)}).compare(results), sizes


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("make", MADE)
def test_every_size_is_right(make: Callable[[], PrimFunc], isa: str) -> None:
    func = make()
    kernel = build(func, f"c:{isa}", constants=fixed(func), verify="off")
    assert str(kernel.proof).startswith("proved (")
    for threads in (1, 3):
        compare(func, partial(kernel, threads=threads))


def test_the_reference_knows_sums_of_nothing_of_which_some_are_read() -> None:
    n = te.dim("n", 0, 3)
    x = te.placeholder((3, n), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    doubled = te.compute((3, n), lambda i, j: x[i, j] * 2.0, name="D")
    sums = te.compute((3,), lambda i: te.sum(doubled[i, k], axis=k), name="S")
    y = te.compute((1,), lambda i: sums[2 * i] + 1.0, name="Y")
    func = te.func(x, y, name="last")
    for size in (0, 2):
        given = np.ones((3, size), np.float32)
        assert reference(func, {"X": given}).compare([np.float32([2 * size + 1])])
        assert not reference(func, {"X": given}).compare([np.float32([2 * size + 2])])


def test_rows_lie_as_far_apart_as_the_call_says() -> None:
    source = build(matmul(), "c:scalar", verify="off").source
    assert "matmul(input A: float32[m, terms], input B: float32[terms, n]" in source
    assert "* n + " in source
    assert "* 70" not in source


def test_inputs_that_disagree_about_an_inner_size_are_refused() -> None:
    kernel = build(matmul(), "c:scalar", verify="off")
    a, b = np.ones((4, 5), np.float32), np.ones((6, 7), np.float32)
    with pytest.raises(ArgumentValueError) as refused:
        kernel(a, b)
    assert "'terms'" in str(refused.value)
    with pytest.raises(ArgumentValueError) as refused:
        kernel(a, np.ones((5, 71), np.float32))
    assert str(refused.value).startswith(
        "ArgumentValueError: matmul: axis 1 of 'B' has 71 elements; expected 'n', which is 1 to 70."
    )
