"""A small function for each rule and each kind of kernel, for tests that look at all of them."""

from __future__ import annotations

from collections.abc import Callable

from tilewright import te
from tilewright.graph.kernels.joined_groups import JoinedConv
from tilewright.graph.kernels.winograd import Winograd
from tilewright.graph.ops.attention import Attention, Heads
from tilewright.graph.ops.block_matmul import BlockMatMul
from tilewright.graph.ops.convolution import Conv, IntegerConv
from tilewright.graph.ops.rounded_blocks import RoundedBlockMatMul
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.suppression import SIDES


def elementwise() -> PrimFunc:
    x = te.placeholder((7, 37), "float32", name="X")
    y = te.compute(
        (7, 37), lambda i, j: te.tanh(x[i, j]) + te.exp(x[i, j]) * te.erf(x[i, j]), name="Y"
    )
    return te.func(x, y, name="elementwise")


def transpose() -> PrimFunc:
    x = te.placeholder((19, 33), "float32", name="X")
    return te.func(x, te.compute((33, 19), lambda i, j: x[j, i], name="Y"), name="transpose")


def matmul() -> PrimFunc:
    a = te.placeholder((13, 70), "float32", name="A")
    b = te.placeholder((70, 51), "float32", name="B", constant=True)
    bias = te.placeholder((51,), "float32", name="bias", constant=True)
    k = te.reduce_axis(70, name="k")
    c = te.compute((13, 51), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    y = te.compute((13, 51), lambda i, j: te.maximum(c[i, j] + bias[j], 0.0), name="Y")
    return te.func(a, b, bias, y, name="matmul")


def convolution() -> PrimFunc:
    """3x3, stride 2, padding 1; the borders are a Select of 0."""
    x = te.placeholder((1, 11, 11, 5), "float32", name="X")
    w = te.placeholder((18, 5, 3, 3), "float32", name="W", constant=True)
    c, p, q = (te.reduce_axis(n, name=name) for n, name in ((5, "c"), (3, "p"), (3, "q")))

    def padded(n: Expr, i: Expr, j: Expr, channel: Expr) -> Expr:
        inside = te.all_of(i >= 1, i < 12, j >= 1, j < 12)
        return te.select(inside, x[n, i - 1, j - 1, channel], 0.0)

    held = te.compute((1, 13, 13, 5), padded, name="P")
    y = te.compute(
        (1, 6, 6, 18),
        lambda n, i, j, o: te.sum(held[n, i * 2 + p, j * 2 + q, c] * w[o, c, p, q], axis=(c, p, q)),
        name="Y",
    )
    return te.func(x, w, y, name="convolution")


def long_convolution() -> PrimFunc:
    """The same of many channels, whose sum is taken in parts."""
    x = te.placeholder((2, 4, 4, 128), "float32", name="X")
    w = te.placeholder((3, 3, 128, 6), "float32", name="W", constant=True)
    op = Conv(strides=(2, 2), pads=(1, 1, 1, 1), layout="NHWC")
    return te.func(x, w, *op.express(x, w, name="Y"), name="long_convolution")


def dots() -> PrimFunc:
    """A product of bytes in int32, scaled to float32."""
    a = te.placeholder((7, 22), "uint8", name="A")
    b = te.placeholder((22, 37), "int8", name="B", constant=True)
    scale = te.placeholder((37,), "float32", name="scale", constant=True)
    k = te.reduce_axis(22, name="k")
    c = te.compute(
        (7, 37),
        lambda i, j: te.sum(te.cast(a[i, k], "int32") * te.cast(b[k, j], "int32"), axis=k),
        name="C",
    )
    y = te.compute((7, 37), lambda i, j: te.cast(c[i, j], "float32") * scale[j], name="Y")
    return te.func(a, b, scale, y, name="dots")


def grouped_dots() -> PrimFunc:
    """Groups of bytes, a vector and a half of outputs each, scaled to float32."""
    x = te.placeholder((1, 5, 6, 14), "uint8", name="X")
    w = te.placeholder((3, 3, 7, 48), "int8", name="W", constant=True)
    scale = te.placeholder((48,), "float32", name="scale", constant=True)
    op = IntegerConv(pads=(1, 1, 1, 1), groups=2, layout="NHWC", zero=3)
    (c,) = op.express(x, w, name="C")
    y = te.compute(
        (1, 5, 6, 48), lambda n, h, v, o: te.cast(c[n, h, v, o], "float32") * scale[o], name="Y"
    )
    return te.func(x, w, scale, y, name="grouped_dots")


def joined_dots() -> PrimFunc:
    """Eight groups of two outputs of bytes, four of them as one."""
    x = te.placeholder((1, 4, 5, 16), "uint8", name="X")
    w = te.placeholder((1, 1, 2, 16), "int8", name="W", constant=True)
    (y,) = JoinedConv(groups=8, layout="NHWC", joined=4).express(x, w, name="Y")
    return te.func(x, w, y, name="joined_dots")


def blocks() -> PrimFunc:
    """Three rows times weights of 4 bits in blocks of 16, the last one longer than the data."""
    return block_matmul(BlockMatMul(4, 16), 3, 40, 37, "uint8")


def block_panels() -> PrimFunc:
    """Seventeen rows of it, for which weights become numbers, a panel at a time."""
    return block_matmul(BlockMatMul(4, 16), 17, 40, 100, "")


def block_matmul(op: BlockMatMul, rows: int, steps: int, columns: int, zeros: str) -> PrimFunc:
    """A BlockMatMul of a matrix, and a bias. zeros: their type, or none."""
    count = -(-steps // op.group)
    given = {
        "X": ((rows, steps), "float32"),
        "W": ((count * op.group // op.in_word, columns), "int32"),
        "S": ((count, columns), "float32"),
        **({"Z": ((count, columns), zeros)} if zeros else {}),
    }
    tensors = [
        te.placeholder(shape, kind, name=name, constant=name != "X")
        for name, (shape, kind) in given.items()
    ]
    bias = te.placeholder((columns,), "float32", name="bias", constant=True)
    (product,) = op.express(*tensors, name="blocks")
    y = te.compute((rows, columns), lambda i, j: product[i, j] + bias[j], name="Y")
    return te.func(*tensors, bias, y, name="blocks")


def block_dots() -> PrimFunc:
    """Three rows of bytes times weights of 4 bits in blocks of 16."""
    return rounded_block_matmul(RoundedBlockMatMul(4, 16), 3, 3, 37, "int8", zeros=True)


def rounded_block_matmul(
    op: RoundedBlockMatMul, rows: int, blocks: int, columns: int, kind: str, *, zeros: bool
) -> PrimFunc:
    """A RoundedBlockMatMul of a matrix of levels of a type, and a bias."""
    steps = blocks * op.group
    given = {
        "X": ((rows, steps), kind),
        "XS": ((rows, blocks), "float32"),
        "XT": ((rows, blocks), "float32"),
        "W": ((steps // op.in_word, columns), "int32"),
        "S": ((blocks, columns), "float32"),
        **({"Z": ((blocks, columns), "float32")} if zeros else {}),
    }
    tensors = [
        te.placeholder(shape, kind, name=name, constant=not name.startswith("X"))
        for name, (shape, kind) in given.items()
    ]
    bias = te.placeholder((columns,), "float32", name="bias", constant=True)
    (product,) = op.express(*tensors, name="dots")
    y = te.compute((rows, columns), lambda i, j: product[i, j] + bias[j], name="Y")
    return te.func(*tensors, bias, y, name="block_dots")


def depthwise() -> PrimFunc:
    x = te.placeholder((1, 9, 9, 20), "float32", name="X")
    w = te.placeholder((20, 3, 3), "float32", name="W", constant=True)
    p, q = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q")
    y = te.compute(
        (1, 7, 7, 20),
        lambda n, i, j, c: te.sum(x[n, i + p, j + q, c] * w[c, p, q], axis=(p, q)),
        name="Y",
    )
    return te.func(x, w, y, name="depthwise")


def depthwise_padded() -> PrimFunc:
    """Channels last in the weights too; the borders are inside the sum."""
    x = te.placeholder((1, 7, 9, 20), "float32", name="X")
    w = te.placeholder((3, 3, 1, 20), "float32", name="W", constant=True)
    op = Conv(pads=(1, 1, 1, 1), groups=20, layout="NHWC")
    return te.func(x, w, *op.express(x, w, name="Y"), name="depthwise_padded")


def winograd() -> PrimFunc:
    x = te.placeholder((1, 7, 6, 20), "float32", name="X")
    w = te.placeholder((3, 3, 20, 18), "float32", name="W", constant=True)
    op = Winograd(pads=(1, 1, 1, 1), layout="NHWC")
    return te.func(x, w, *op.express(x, w, name="Y"), name="winograd")


def winograd_4x4() -> PrimFunc:
    x = te.placeholder((1, 7, 6, 20), "float32", name="X")
    w = te.placeholder((3, 3, 20, 18), "float32", name="W", constant=True)
    op = Winograd(pads=(1, 1, 1, 1), layout="NHWC", results=4)
    return te.func(x, w, *op.express(x, w, name="Y"), name="winograd_4x4")


def attention() -> PrimFunc:
    """Two heads, side by side in one array, with a mask."""
    x = te.placeholder((1, 18, 6, 8), "float32", name="X")
    mask = te.placeholder((18,), "float32", name="M")
    op = Attention(2, 0.35, Heads(0), Heads(2), Heads(4), guarded=True)
    return te.func(x, mask, *op.express(x, x, x, mask, name="Y"), name="attention")


def pooling() -> PrimFunc:
    x = te.placeholder((1, 9, 9, 20), "float32", name="X")
    p, q = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q")
    y = te.compute(
        (1, 4, 4, 20),
        lambda n, i, j, c: te.max(x[n, i * 2 + p, j * 2 + q, c], axis=(p, q)),
        name="Y",
    )
    return te.func(x, y, name="pooling")


def strided() -> PrimFunc:
    """Pooling with channels first: 3x3 windows that move two elements along the rows."""
    x = te.placeholder((1, 5, 9, 43), "float32", name="X")
    p, q = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q")
    y = te.compute(
        (1, 5, 4, 21),
        lambda n, c, i, j: te.max(x[n, c, i * 2 + p, j * 2 + q], axis=(p, q)),
        name="Y",
    )
    return te.func(x, y, name="strided")


def softmax() -> PrimFunc:
    x = te.placeholder((6, 101), "float32", name="X")
    k, r = te.reduce_axis(101, name="k"), te.reduce_axis(101, name="r")
    top = te.compute((6,), lambda i: te.max_any(x[i, k], axis=k), name="M")
    e = te.compute((6, 101), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((6,), lambda i: te.sum(e[i, r], axis=r), name="S")
    y = te.compute((6, 101), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="softmax")


def norm() -> PrimFunc:
    """Across neighbouring channels, as LRN: x / (1 + a sum x^2)^0.75."""
    x = te.placeholder((1, 5, 5, 24), "float32", name="X")
    d = te.reduce_axis(5, name="d")
    held = te.compute(
        (1, 5, 5, 28),
        lambda n, i, j, c: te.select(te.all_of(c >= 2, c < 26), x[n, i, j, c - 2], 0.0),
        name="P",
    )
    s = te.compute(
        (1, 5, 5, 24),
        lambda n, i, j, c: te.sum(held[n, i, j, c + d] * held[n, i, j, c + d], axis=d),
        name="S",
    )
    y = te.compute(
        (1, 5, 5, 24),
        lambda n, i, j, c: x[n, i, j, c] / te.pow(1.0 + 0.1 * s[n, i, j, c], 0.75),
        name="Y",
    )
    return te.func(x, y, name="norm")


def network() -> PrimFunc:
    """Comparators of eight lines in three steps, row by row; the least of each column goes off."""
    x = te.placeholder((3, 80), "float32", name="X")
    state = te.state((4, 3, 8, 10), "float32", name="S")

    def compared(t: Expr, b: Expr, i: Expr, c: Expr) -> Expr:
        one, other = state[t - 1, b, i // 2, c], state[t - 1, b, i // 2 + 4, c]
        return te.select(te.eq(i % 2, 0), te.minimum(one, other), te.maximum(one, other))

    first = te.compute((1, 3, 8, 10), lambda t, b, i, c: x[b, i * 10 + c], name="first")
    made = te.scan(first, te.compute((4, 3, 8, 10), compared, name="step"), state)
    r = te.reduce_axis(8, name="r")
    least = te.compute((3, 10), lambda b, c: te.min(made[3, b, r, c], axis=r), name="L")
    y = te.compute((3, 80), lambda b, k: made[3, b, k % 8, k // 8] - least[b, k // 8], name="Y")
    return te.func(x, y, name="network")


def scatter() -> PrimFunc:
    """Rows are added to others; places outside are moved to the nearest row."""
    x = te.placeholder((9, 21), "float32", name="X")
    u = te.placeholder((12, 21), "float32", name="U")
    p = te.placeholder((12,), "int32", name="P")
    y = te.scatter(x, u, p, axis=0, combining="add", name="Y")
    return te.func(x, u, p, y, name="scatter")


def suppression() -> PrimFunc:
    """Boxes that overlap no better one, of two rows."""
    sides = [te.placeholder((2, 75), "float32", name=name) for name in SIDES]
    count = te.placeholder((2,), "int32", name="count")
    share = te.placeholder((), "float32", name="share")
    left, top, right, bottom, area = sides
    kept, number = te.suppress(
        (left, top, right, bottom, area), count, share, most=9, name=("kept", "number")
    )
    return te.func(*sides, count, share, kept, number, name="suppression")


def doubles() -> PrimFunc:
    x = te.placeholder((5, 29), "float64", name="X")
    k = te.reduce_axis(29, name="k")
    y = te.compute(
        (5,), lambda i: te.sum(te.exp(x[i, k]) * te.sqrt(te.abs(x[i, k])), axis=k), name="Y"
    )
    return te.func(x, y, name="doubles")


KERNELS: dict[str, Callable[[], PrimFunc]] = {
    made.__name__: made
    for made in (
        elementwise,
        transpose,
        matmul,
        convolution,
        long_convolution,
        dots,
        grouped_dots,
        joined_dots,
        blocks,
        block_panels,
        block_dots,
        depthwise,
        depthwise_padded,
        winograd,
        winograd_4x4,
        attention,
        pooling,
        strided,
        softmax,
        norm,
        network,
        scatter,
        suppression,
        doubles,
    )
}
