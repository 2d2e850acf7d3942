"""Kernels of functions whose outermost size a call decides: every size around the tiles, rows with
the same bits at each, and calls that disagree.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver.build import build
from tilewright.runtime.arrays import ArgumentValueError
from tilewright.runtime.kernel import Kernel, KernelError
from tilewright.runtime.machine.host import host
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.error_bound import reference

pytestmark = pytest.mark.needs_cc
MOST = 70
SIZES = (1, 2, 5, 6, 7, 8, 9, 14, 15, 16, 17, 47, 48, 49, 69, MOST)
ISAS = [isa for isa in ("scalar", "avx2", "avx512", "neon") if isa in host().isas]
W = np.random.default_rng(0).standard_normal((33, 21), dtype=np.float32)


def matmul() -> PrimFunc:
    n = te.dim("n", 1, MOST)
    a = te.placeholder((n, 33), "float32", name="A")
    b = te.placeholder((33, 21), "float32", name="B", constant=True)
    k = te.reduce_axis(33, name="k")
    c = te.compute((n, 21), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, 21), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    return te.func(a, b, d, name="matmul")


def mixed() -> PrimFunc:
    n = te.dim("n", 1, MOST)
    x = te.placeholder((n, 37), "float32", name="X")
    y = te.placeholder((n, 37), "float32", name="Y")
    z = te.compute((n, 37), lambda i, j: te.tanh(x[i, j]) + y[i, j] * 0.5, name="Z")
    return te.func(x, y, z, name="mixed")


def flat() -> PrimFunc:
    n = te.dim("n", 1, MOST)
    x = te.placeholder((n,), "float32", name="X")
    z = te.compute((n,), lambda i: te.exp(x[i]) * 2.0, name="Z")
    return te.func(x, z, name="flat")


def softmax() -> PrimFunc:
    n = te.dim("n", 1, MOST)
    x = te.placeholder((n, 19), "float32", name="X")
    k, q = te.reduce_axis(19, name="k"), te.reduce_axis(19, name="q")
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="most")
    e = te.compute((n, 19), lambda i, j: te.exp(x[i, j] - most[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, q], axis=q), name="total")
    y = te.compute((n, 19), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="softmax")


def made(func: PrimFunc, target: str) -> Kernel:
    constants = {"B": W} if func.constants else None
    return build(func, target, constants=constants, verify="off")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("make", [matmul, mixed, flat, softmax])
def test_every_size_is_right_and_a_row_has_the_same_bits_in_each(
    make: Callable[[], PrimFunc], isa: str
) -> None:
    func = make()
    kernel = made(func, f"c:{isa}")
    assert str(kernel.proof).startswith("proved (")
    rng = np.random.default_rng(1)
    whole = [rng.standard_normal(b.shape, dtype=np.float32) for b in func.inputs]
    rows = kernel(*whole)
    for size in SIZES:
        given = [a[:size] for a in whole]
        found = kernel(*given, threads=1 + size % 3)
        assert isinstance(found, np.ndarray)
        assert isinstance(rows, np.ndarray)
        np.testing.assert_array_equal(found, rows[:size])
        if isa == ISAS[0]:
            named = dict(zip((b.name for b in func.inputs), given, strict=True))
            named |= {b.name: W for b in func.constants}
            assert reference(func, named).compare([found])


def test_nothing_beyond_the_rows_is_read_or_written() -> None:
    kernel = tw.build(mixed())  # checked on fenced arrays at the largest, the smallest and others
    x, y = np.full((2, 9, 37), np.nan, np.float32)
    out = np.full((9, 37), -1.0, np.float32)
    x[:4], y[:4] = 1.0, 2.0
    kernel(x[:4], y[:4], out[:4])
    assert np.isfinite(out[:4]).all()
    assert (out[4:] == -1.0).all()


def test_the_interpreter_takes_every_size_too() -> None:
    kernel = build(mixed(), "python")
    x, y = np.ones((2, 3, 37), np.float32)
    np.testing.assert_allclose(kernel(x, y), np.tanh(x) + 0.5, rtol=1e-6)


def test_a_kernel_says_its_sizes_pickles_and_is_timed_at_any() -> None:
    kernel = made(matmul(), "c")
    assert kernel.signature == "matmul(A: float32[n, 33]) -> D: float32[n, 21]"
    assert "size n: 1 to 70" in kernel.source
    again = pickle.loads(pickle.dumps(kernel))
    a = np.ones((5, 33), np.float32)
    np.testing.assert_array_equal(again(a), kernel(a))
    assert kernel.time(a, seconds=0.01).median > 0


def refusal(call: Callable[[], object], error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_sizes_that_disagree_or_lie_out_of_bounds_are_refused() -> None:
    kernel = made(mixed(), "c:scalar")

    def ones(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.ones(shape, np.float32)

    assert refusal(lambda: kernel(ones(71, 37), ones(71, 37)), ArgumentValueError) == (
        "ArgumentValueError: mixed: axis 0 of 'X' has 71 elements; expected 'n', which is 1 to 70. "
        "[argument-size]\n"
        '  Hint: te.dim("n", 1, 71) builds a kernel that takes it.'
    )
    assert refusal(lambda: kernel(ones(0, 37), ones(0, 37)), ArgumentValueError) == (
        "ArgumentValueError: mixed: axis 0 of 'X' has 0 elements; expected 'n', which is 1 to 70. "
        "[argument-size]\n"
        '  Hint: te.dim("n", 0, 70) builds a kernel that takes it.'
    )
    assert refusal(lambda: kernel(ones(4, 37), ones(5, 37)), ArgumentValueError) == (
        "ArgumentValueError: mixed: 'n' is 4 in 'X' and 5 in 'Y'; expected one size in all "
        "arguments. [argument-sizes]\n"
        "  Hint: Y: an array of shape (4, 37)."
    )
    assert refusal(lambda: kernel(ones(4, 37), ones(4, 37), ones(5, 37)), ArgumentValueError) == (
        "ArgumentValueError: mixed: 'n' is 4 in 'X' and 5 in 'Z'; expected one size in all "
        "arguments. [argument-sizes]\n"
        "  Hint: Z: an array of shape (4, 37)."
    )
    assert refusal(lambda: kernel(ones(4, 36), ones(4, 37)), ArgumentValueError) == (
        "ArgumentValueError: mixed: 'X' has shape (4, 36), expected (n, 37). [argument-shape]"
    )


def test_the_roofline_is_known_for_the_largest_size() -> None:
    kernel = made(flat(), "c")
    assert kernel.work is not None
    assert kernel.work.bytes == 2 * 4 * MOST
    assert refusal(lambda: kernel.roofline(np.ones(9, np.float32)), KernelError) == (
        "KernelError: roofline: 'X' has shape (9,); expected the largest, (70,), for which the "
        "work of 'flat' is known. [kernel-work-size]\n"
        "  Hint: flat.time(...) takes arrays of any size."
    )


def test_rows_that_no_input_has_are_the_definition_s_error() -> None:
    n = te.dim("n", 1, 9)
    x = te.placeholder((n,), "float32", name="X")
    y = te.compute((n,), lambda i: x[i + 1], name="Y")
    with pytest.raises(IndexError, match=r"block 'Y' loads X\[\d\]; 'X' has shape \[n\]"):
        build(te.func(x, y, name="shifted"))
