"""schedule/rules/grid: what the rules of a GPU make is right for every kind of function, with the
default choices and others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.kernels.online_attention import OnlineAttention
from tilewright.graph.ops.attention import Heads
from tilewright.schedule.library import deal_out
from tilewright.schedule.rules.default import rule_for
from tilewright.schedule.rules.gpu.products import TILES
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...nests import softmax
from ...programs import blur, chain, conv, gelu_matmul, image_conv, matmul, matmul_relu, pool
from ...rule_checks import Answered, check

pytestmark = pytest.mark.sampled(5)

A100 = Target.parse("cuda:sm_80")


def sums(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    return te.func(x, te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S"), name="sums")


def sums_of_columns(a: int, b: int, columns: int) -> PrimFunc:
    x = te.placeholder((a, b, columns), "float32", name="X")
    r, s = te.reduce_axis(a, name="r"), te.reduce_axis(b, name="s")
    y = te.compute((columns,), lambda i: te.sum(x[r, s, i], axis=(r, s)), name="S")
    return te.func(x, y, name="sums_of_columns")


def total(n: int) -> PrimFunc:
    x, k = te.placeholder((n,), "float32", name="X"), te.reduce_axis(n, name="k")
    return te.func(x, te.compute((), lambda: te.sum(x[k], axis=k), name="S"), name="total")


def batched(count: int, m: int, n: int, k: int) -> PrimFunc:
    a = te.placeholder((count, m, k), "float32", name="A")
    b = te.placeholder((count, k, n), "float32", name="B")
    r = te.reduce_axis(k, name="r")

    def term(h: Expr, i: Expr, j: Expr) -> Expr:
        return te.sum(a[h, i, r] * b[h, r, j], axis=r)

    return te.func(a, b, te.compute((count, m, n), term, name="C"), name="batched")


def channels_first(height: int, width: int, channels: int, outputs: int) -> PrimFunc:
    """A convolution with windows of 3 x 3, its channels before its pixels, of two padded images."""
    x = te.placeholder((2, channels, height, width), "float32", name="X")
    w = te.placeholder((outputs, channels, 3, 3), "float32", name="W", constant=True)

    def inside(n: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        there = te.all_of(i >= 1, i <= height, j >= 1, j <= width)
        return te.select(there, x[n, c, i - 1, j - 1], 0.0)

    p = te.compute((2, channels, height + 2, width + 2), inside, name="P")
    c, r, s = (te.reduce_axis(n, name=a) for a, n in zip("crs", (channels, 3, 3), strict=True))

    def element(n: Expr, o: Expr, i: Expr, j: Expr) -> Expr:
        return te.sum(p[n, c, i + r, j + s] * w[o, c, r, s], axis=(c, r, s))

    return te.func(x, w, te.compute((2, outputs, height, width), element, name="C"), name="first")


def rows_of_two_axes(a: int, b: int, k: int, n: int) -> PrimFunc:
    """relu(X) W, of rows that two axes count: what relu makes is stored as it is read."""
    x = te.placeholder((a, b, k), "float32", name="X")
    w = te.placeholder((k, n), "float32", name="W")
    r = te.reduce_axis(k, name="k")
    p = te.compute((a, b, k), lambda i, j, q: te.maximum(x[i, j, q], 0.0), name="P")
    shape = (a, b, n)
    c = te.compute(shape, lambda i, j, q: te.sum(p[i, j, r] * w[r, q], axis=r), name="C")
    return te.func(x, w, c, name="rows")


def in_a_batch_of_one(m: int, k: int, n: int) -> PrimFunc:
    """Y[0] = A[0] B + c, as expressions of axes of one value are written."""
    a = te.placeholder((1, m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=True)
    bias = te.placeholder((n,), "float32", name="c")
    r, shape = te.reduce_axis(k, name="k"), (1, m, n)
    c = te.compute(shape, lambda h, i, j: te.sum(a[0, i, r] * b[r, j], axis=r), name="C")
    y = te.compute(shape, lambda h, i, j: c[0, i, j] + bias[j], name="Y")
    return te.func(a, b, bias, y, name="one")


def online_attention(rows: int, places: int, depth: int, *, tile: int = 16) -> PrimFunc:
    """Two heads, side by side in one array where there are as many rows as places; with a mask in
    the other case.
    """
    joined = rows == places
    first = 2 if joined else 0
    places_of = Heads(), Heads(first, not joined), Heads(2 * first, not joined)
    op = OnlineAttention(2, 0.5, *places_of, guarded=True, tile=tile)
    q = te.placeholder((1, rows, 6 if joined else 2, depth), "float32", name="Q")
    shape = (1, 2, places, depth)
    own = [] if joined else [te.placeholder(shape, "float32", name=name) for name in "KV"]
    mask = [] if joined else [te.placeholder((1, 1, rows, places), "float32", name="M")]
    k, v = own or (q, q)
    return te.func(q, *own, *mask, *op.express(q, k, v, *mask, name="Y"), name="attention")


PRODUCTS: dict[str, Callable[[], PrimFunc]] = {
    "product": lambda: matmul(19, 21, 17),
    "with constants": lambda: matmul(9, 5, 33, constant=True),
    "and what follows": lambda: matmul_relu(17, 18, 5),
    "gelu": lambda: gelu_matmul(9, 6, 7),
    "fetched in vectors": lambda: matmul(18, 36, 20),
    "batched": lambda: batched(3, 9, 10, 5),
    "convolution": lambda: conv(6, 5, 3, 4),
    "strided convolution of several images": lambda: conv(7, 6, 5, 9, stride=2, batch=3),
    "dilated convolution": lambda: conv(9, 8, 2, 5, dilation=2, pad=2),
    "grouped convolution": lambda: conv(5, 4, 3, 8, groups=2),
    "convolution of single pixels": lambda: conv(4, 5, 6, 7, kernel=1, pad=0),
    "convolution of an image": lambda: image_conv(9, 11, 5),
    "channels first": lambda: channels_first(5, 6, 3, 10),
    "rows of several axes": lambda: rows_of_two_axes(3, 5, 4, 6),
    "an axis of one, read at 0": lambda: in_a_batch_of_one(9, 4, 6),
}
WINDOWS: dict[str, tuple[Callable[[], PrimFunc], str, tuple[int, ...]]] = {
    "depthwise": (lambda: conv(6, 5, 1, 8, groups=8), "conv", (3, 5)),
    "strided depthwise": (lambda: conv(7, 9, 1, 4, groups=4, stride=2, batch=2), "conv", (4, 1)),
    "two results of a channel": (
        lambda: conv(4, 4, 1, 6, groups=3, kernel=5, pad=2),
        "conv",
        (2, 2),
    ),
    "pooling": (lambda: pool(9, 7, 5), "Y_cache", (2, 3)),
    "padded pooling": (lambda: pool(8, 8, 3, pad=1, batch=2), "Y_cache", (4, 2)),
}


def turned(a: int, b: int, c: int, *, both: bool = False) -> PrimFunc:
    """Y[i, j, k] = X[i, k, j] + bias[k]; both: X[i, j, k] more."""
    x = te.placeholder((a, c, b), "float32", name="X")
    bias = te.placeholder((c,), "float32", name="bias")

    def element(i: Expr, j: Expr, k: Expr) -> Expr:
        found = x[i, k, j] + bias[k]
        return found + x[i, j, k] if both else found

    return te.func(x, bias, te.compute((a, b, c), element, name="Y"), name="turned")


ROWS: dict[str, Callable[[], PrimFunc]] = {
    "few rows": lambda: matmul(3, 9, 4),
    "softmax": lambda: softmax(3, 130),
    "softmax of short rows": lambda: softmax(5, 7),
    "sums": lambda: sums(4, 200),
    "short sums": lambda: sums(40, 5),
    "one sum": lambda: total(77),
    "one long sum": lambda: total(8200),
    "chain": lambda: chain(5, 7),
    "a transposition": lambda: turned(2, 40, 9),
    "sums over the first axes": lambda: sums_of_columns(9, 10, 12),
    "a symmetric sum": lambda: turned(2, 9, 9, both=True),
    "blur": lambda: blur(4, 9),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_run_in_tiles(name: str) -> None:
    func = PRODUCTS[name]()
    assert rule_for(func, A100).name == "grid products"
    check(func, A100)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_run_in_tiles_of_each_thread(name: str) -> None:
    make, block, tile = WINDOWS[name]
    func = make()
    assert rule_for(func, A100).name == "grid windows"
    check(func, A100)
    answered = Answered({f"tile of {block}": tile})
    check(func, A100, answered)
    assert answered.met


@pytest.mark.parametrize(
    ("rows", "places", "depth", "answers"),
    [
        (20, 20, 7, {"rows of a thread of Y_products": 4}),
        (9, 17, 20, {"rows of a thread of Y_products": 2}),
    ],
)
def test_attention_takes_its_keys_by_tiles(
    rows: int, places: int, depth: int, answers: dict[str, object]
) -> None:
    func = online_attention(rows, places, depth)
    assert rule_for(func, A100).name == "grid attention"
    answered = Answered(answers)
    check(func, A100, answered, rtol=2e-5, atol=1e-6)
    assert answered.met == set(answers)


@pytest.mark.parametrize("name", ROWS)
def test_everything_else_runs_by_rows_or_by_elements(name: str) -> None:
    func = ROWS[name]()
    assert rule_for(func, A100).name == "grid rows"
    check(func, A100)


@pytest.mark.parametrize("func", [total(8200), sums(2, 8193)], ids=["one", "few"])
def test_long_sums_are_cut_for_a_whole_grid(func: PrimFunc) -> None:
    answered = Answered({"parts of S": 2048})
    check(func, A100, answered)
    assert answered.met == {"parts of S"}


@pytest.mark.parametrize("tile", TILES[2:])
def test_every_tile_is_right(tile: tuple[int, ...]) -> None:
    answered = Answered({"tile of C": tile})
    check(matmul_relu(37, 41, 19), A100, answered)
    assert answered.met == {"tile of C"}


def test_vectors_of_several_axes_are_proved_without_quotients() -> None:
    """What threads count are whole vectors: their places along the axes are digits of a number."""
    shape = 4, 4, 49, 48
    x = te.placeholder(shape, "float32", name="X")
    p = te.compute(shape, lambda a, b, i, j: x[a, b, i, j] * 2.0, name="P")
    y = te.compute(shape, lambda a, b, i, j: p[a, b, i, j] + p[a, b, 48 - i, j], name="Y")
    sch = Schedule(te.func(x, y, name="mirrored"), A100)
    for name in sch.blocks():
        deal_out(sch, name, 256, 4)
    kernel = tw.build(sch, A100)
    assert kernel.proof.status == "proved"
    assert kernel.source.count("*(float4 *)") == 2


@pytest.mark.parametrize("seed", range(6))
def test_other_answers_are_right_too(seed: int) -> None:
    check(softmax(2, 150), A100, Random(seed))
    check(chain(9, 70), A100, Random(seed))


@pytest.mark.parametrize("name", ["softmax", "one long sum", "product"])
def test_strict_builds_keep_the_order_of_sums(name: str) -> None:
    func = {**PRODUCTS, **ROWS}[name]()
    constants = {b.name: np.ones(b.shape, np.float32) for b in func.constants}
    assert tw.build(func, A100, constants=constants, strict=True).proof.status == "proved"


def test_tensors_of_no_axes_and_none_at_all() -> None:
    x = te.placeholder((), "float32", name="X")
    check(te.func(x, te.compute((), lambda: x[()] * 2.0, name="Y"), name="one"), A100)
