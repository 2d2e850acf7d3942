"""Sizes that a call decides, on a GPU: one kernel for all of them, whose grid is as large as a call
needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Stop
from tilewright.codegen.cuda.block_stops import block_stop
from tilewright.driver.check.data import random_array
from tilewright.runtime.arrays import Array
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.nvrtc import Nvrtc
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.schedule import Schedule
from tilewright.tir.dim import Dim
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.error_bound import reference

from ...driver import test_inner_dims as inner
from ...driver.test_dims import flat, matmul, mixed

TARGET = "cuda:sm_90a"


def rows() -> PrimFunc:
    """A softmax of rows that a block computes together; there may be none."""
    n = te.dim("n", 0, 40)
    x = te.placeholder((n, 300), "float32", name="X")
    k, q = te.reduce_axis(300, name="k"), te.reduce_axis(300, name="q")
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="most")
    e = te.compute((n, 300), lambda i, j: te.exp(x[i, j] - most[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, q], axis=q), name="total")
    y = te.compute((n, 300), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="rows")


def batched() -> PrimFunc:
    """Products of which a call decides the number."""
    n = te.dim("n", 1, 6)
    a = te.placeholder((n, 20, 16), "float32", name="A")
    b = te.placeholder((n, 16, 24), "float32", name="B")
    k = te.reduce_axis(16, name="k")
    c = te.compute((n, 20, 24), lambda h, i, j: te.sum(a[h, i, k] * b[h, k, j], axis=k), name="C")
    return te.func(a, b, c, name="batched")


def images() -> PrimFunc:
    """A convolution of some images."""
    n = te.dim("n", 1, 5)
    x = te.placeholder((n, 4, 12, 12), "float32", name="X")
    w = te.placeholder((8, 4, 3, 3), "float32", name="W", constant=True)
    c, r, s = (te.reduce_axis(size, name=name) for size, name in ((4, "c"), (3, "r"), (3, "s")))
    y = te.compute(
        (n, 8, 10, 10),
        lambda b, o, i, j: te.sum(x[b, c, i + r, j + s] * w[o, c, r, s], axis=(c, r, s)),
        name="Y",
    )
    return te.func(x, w, y, name="images")


def two() -> PrimFunc:
    """Two sizes, one of which has the name of an array."""
    n, m = te.dim("n", 1, 40), te.dim("m", 1, 30)
    x, y = (
        te.placeholder((n, 20), "float32", name="n"),
        te.placeholder((m, 20), "float32", name="y"),
    )
    a = te.compute((n, 20), lambda i, j: x[i, j] * 2.0, name="a")
    b = te.compute((m, 20), lambda i, j: y[i, j] + 2.0, name="b")
    return te.func(x, y, a, b, name="two")


MADE = [flat, mixed, matmul, rows, batched, images, two]


def built(make: Callable[[], PrimFunc]) -> tuple[PrimFunc, Kernel, dict[str, Array]]:
    func, rng = make(), np.random.default_rng(0)
    fixed = {b.name: random_array(rng, b.type, b.shape) for b in func.constants}
    return func, tw.build(func, TARGET, constants=fixed, verify="off"), fixed


def sizes_of(func: PrimFunc) -> list[dict[Dim, int]]:
    """The ends, and some between, others for each dim."""
    return [
        {d: d.low + (d.high - d.low) * (part + n) // 9 for n, d in enumerate(func.dims)}
        for part in (0, 1, 4, 7, 8, 9 - (len(func.dims) - 1))
    ]


def at(func: PrimFunc, sizes: dict[Dim, int], whole: Sequence[Array]) -> list[Array]:
    """The inputs of a call: the first rows of the largest arrays."""
    return [
        a if not b.dims or b.dims[0] is None else a[: sizes[b.dims[0]]]
        for b, a in zip(func.inputs, whole, strict=True)
    ]


@pytest.mark.sampled(4)
@pytest.mark.needs_cxx
@pytest.mark.parametrize("make", MADE)
def test_every_size_is_right_and_a_row_has_the_same_bits_in_each(
    make: Callable[[], PrimFunc],
) -> None:
    func, kernel, fixed = built(make)
    assert str(kernel.proof).startswith("proved (")
    plain, checked = tw.emulated(kernel), tw.emulated(kernel, checked=True)
    rng = np.random.default_rng(1)
    whole = [random_array(rng, b.type, b.shape) for b in func.inputs]
    largest = results(plain(*whole))
    for number, sizes in enumerate(sizes_of(func)):
        given = at(func, sizes, whole)
        found = results((checked if number % 2 else plain)(*given))
        for one, all_rows in zip(found, largest, strict=True):
            np.testing.assert_array_equal(one, all_rows[: len(one)])
        named = dict(zip((b.name for b in func.inputs), given, strict=True))
        if all(a.size for a in given):
            assert reference(func, {**named, **fixed}).compare(found)


@pytest.mark.sampled(4)
@pytest.mark.needs_cxx
@pytest.mark.parametrize("make", inner.MADE)
def test_inner_sizes_are_right_too(make: Callable[[], PrimFunc]) -> None:
    func = make()
    kernel = tw.build(func, TARGET, constants=inner.fixed(func), verify="off")
    assert str(kernel.proof).startswith("proved (")
    inner.compare(func, tw.emulated(kernel, checked=True))


def results(found: Array | tuple[Array, ...]) -> list[Array]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [mixed, matmul, rows])
def test_it_compiles(make: Callable[[], PrimFunc], nvrtc: Nvrtc) -> None:
    func, kernel, _ = built(make)
    assert compile_cuda(kernel.source, "sm_90a", name=func.name).image


def test_the_size_is_an_argument_and_the_grid_follows_it() -> None:
    _, kernel, _ = built(mixed)
    artifact = kernel.artifact
    assert isinstance(artifact, CudaArtifact)
    assert " int n)\n{" in kernel.source
    assert "if (i_j_0 * 256 < n * 37) {" in kernel.source
    (launch,) = artifact.run.launches
    assert launch.arguments == ("X", "Y", "Z", "n")
    assert launch.grid == (11, 1, 1)
    assert launch.stops == (Stop(0, "n", 37, 256, 0),)
    sizes = [artifact.sizes_of([(n, 37)] * 3) for n in (1, 6, 7, 70)]
    assert [n["n"] for n in sizes] == [1, 6, 7, 70]
    assert [launch.at(n).grid[0] for n in sizes] == [1, 1, 2, 11]


def test_no_rows_are_no_launch() -> None:
    _, kernel, _ = built(rows)
    artifact = kernel.artifact
    assert isinstance(artifact, CudaArtifact)
    assert artifact.run.launches_at({"n": 0}) == ()
    (launch,) = artifact.run.launches_at({"n": 3})
    assert launch.grid == (3, 1, 1)
    assert launch.stops == ()


def test_a_size_with_the_name_of_an_array_has_another_for_the_launch() -> None:
    _, kernel, _ = built(two)
    artifact = kernel.artifact
    assert isinstance(artifact, CudaArtifact)
    assert artifact.run.sizes == ("n_", "m")
    assert artifact.sizes_of([(3, 20), (4, 20), (3, 20), (4, 20)]) == {"n_": 3, "m": 4}
    assert [launch.arguments for launch in artifact.run.launches] == [
        ("n", "a", "n_"),
        ("y", "b", "m"),
    ]
    assert kernel.signature == "two(n: float32[n, 20], y: float32[m, 20]) -> " + (
        "a: float32[n, 20], b: float32[m, 20]"
    )


def test_a_launch_without_stops_is_what_it_was() -> None:
    launch = KernelLaunch("k", (4, 2, 1), (32, 1, 1), ("x",))
    assert launch.at({}) == launch


STORES = """\
def f(n: dim(1, 64), m: dim(1, 64), X: float32[n], Y: float32[m], Z: output(float32[n])):
    for i in bound(8, axis="blockIdx.x"):
        kept = alloc(float32[8], "shared")
        for t in bound(8, axis="threadIdx.x"):
            kept[t] = 0.0
        BODY
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("if i * 8 < n: Z[i * 8] = 1.0", ("n", 1, 8, 0)),
        ("if i * 8 <= n: Z[i * 8] = 1.0", ("n", 1, 8, 1)),
        ("if i * 8 + 3 < n * 2: Z[i * 8] = 1.0", ("n", 2, 8, -3)),
        # the least of each store, the largest of all
        ("if i * 8 < n: if i * 8 + 4 < n: Z[i * 8] = 1.0", ("n", 1, 8, -4)),
        ("if i * 8 + 4 < n: Z[i * 8] = 1.0; if i * 8 < n: Z[i * 8] = 2.0", ("n", 1, 8, 0)),
        ("for u in range(5): if i * 8 + u < n + 2: Z[i] = 1.0", ("n", 1, 8, 2)),
        ("for u in range(5): if i * 8 - u < n: Z[i] = 1.0", ("n", 1, 8, 4)),
        # what ends in no such way
        ("Z[i * 8] = 1.0", None),
        ("if i * 8 < n: Z[i * 8] = 1.0; Z[i] = 2.0", None),
        ("if i * 8 < n: Z[i] = 1.0; if i * 8 < m: Z[i] = 2.0", None),
        ("if i * 8 < n + m: Z[i] = 1.0", None),
        ("if n < i * 8: Z[i] = 1.0", None),
        ("if i * 8 + i // 2 < n: Z[i] = 1.0", None),
        ("if i < 7: Z[i] = 1.0", None),
    ],
)
def test_a_grid_ends_where_no_store_comes_any_more(
    body: str, wanted: tuple[str, int, int, int] | None
) -> None:
    func = parse(STORES.replace("BODY", "\n        ".join(_lines(body))))
    found = block_stop(func.body, "blockIdx.x")
    assert (found and (found.dim.name, found.scale, found.step, found.offset)) == wanted
    assert block_stop(func.body, "blockIdx.y") is None


def _lines(body: str) -> list[str]:
    """One statement a line, each inside of those before its colons."""
    lines = []
    for statement in body.split("; "):
        parts = statement.split(": ")
        lines += [
            "    " * depth + part + (":" if depth < len(parts) - 1 else "")
            for depth, part in enumerate(parts)
        ]
    return lines


def test_a_block_stop_says_how_many_blocks_there_are() -> None:
    stop = Stop(0, "n", 2, 8, -3)
    assert [stop.blocks({"n": n}) for n in (0, 1, 2, 5, 6, 64)] == [0, 0, 1, 1, 2, 16]


def test_a_schedule_by_hand_may_bind_the_rows_too() -> None:
    func = flat()
    sch = Schedule(func, tw.Target.parse(TARGET))
    (i,) = sch.loops("Z")
    blocks, threads = sch.split(i, (None, 32))
    sch.bind(blocks, "blockIdx.y")
    sch.bind(threads, "threadIdx.x")
    artifact = tw.build(sch, TARGET, verify="off").artifact
    assert isinstance(artifact, CudaArtifact)
    (launch,) = artifact.run.launches
    assert (launch.grid, launch.at({"n": 33}).grid) == ((1, 3, 1), (1, 2, 1))
