"""The spaces that benchmarks.search records: odd sizes, one of each kind of kernel that a tuner
meets most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.autotune.space import RuleFunction
from tilewright.tir import te
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc


@dataclass(frozen=True)
class Recipe:
    """A space: of what, by which rule (the one that fits, if None).

    only: for questions by name, the answers that are tried beside the rule's own, where all of them
    would be too many points.
    """

    func: Callable[[], PrimFunc]
    only: Mapping[str, Sequence[object]] = field(default_factory=dict)
    rule: RuleFunction | None = None


def matmul() -> PrimFunc:
    """A product of odd sizes whose weights stay in the level-2 cache."""
    a = te.placeholder((99, 215), "float32", name="A")
    b = te.placeholder((215, 333), "float32", name="B", constant=True)
    k = te.reduce_axis(215, name="k")
    c = te.compute((99, 333), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="matmul")


def convolution() -> PrimFunc:
    """3x3 of stride 1 over an odd image, 40 to 72 channels, with its border."""
    x = te.placeholder((1, 29, 29, 40), "float32", name="X")
    w = te.placeholder((3, 3, 40, 72), "float32", name="W", constant=True)
    p, q, c = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q"), te.reduce_axis(40, name="c")

    def padded(n: Expr, i: Expr, j: Expr, k: Expr) -> Expr:
        inside = te.all_of(i >= 1, i < 30, j >= 1, j < 30)
        return te.select(inside, x[n, i - 1, j - 1, k], 0.0)

    image = te.compute((1, 31, 31, 40), padded, name="image")
    y = te.compute(
        (1, 29, 29, 72),
        lambda n, i, j, o: te.sum(image[n, i + p, j + q, c] * w[p, q, c, o], axis=(p, q, c)),
        name="Y",
    )
    return te.func(x, w, y, name="convolution")


def softmax() -> PrimFunc:
    """Rows of odd length, each divided by the sum of its exponentials."""
    x = te.placeholder((157, 777), "float32", name="X")
    k, n = te.reduce_axis(777, name="k"), te.reduce_axis(777, name="n")
    top = te.compute((157,), lambda i: te.max(x[i, k], axis=k), name="M")
    e = te.compute((157, 777), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((157,), lambda i: te.sum(e[i, n], axis=n), name="S")
    y = te.compute((157, 777), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="softmax")


def few_rows() -> PrimFunc:
    """Eleven rows times weights that come from memory; drawn when the search was done."""
    a = te.placeholder((11, 1029), "float32", name="A")
    b = te.placeholder((1029, 517), "float32", name="B", constant=True)
    k = te.reduce_axis(1029, name="k")
    c = te.compute((11, 517), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="few_rows")


SPACES = {
    "matmul": Recipe(matmul, {"copies of the body of C": (1, 2, 4)}),
    "convolution": Recipe(convolution),
    "few_rows": Recipe(few_rows),
    "softmax": Recipe(
        softmax,
        {"copies of the body of M_rf": (1, 2, 4), "copies of the body of S_rf": (1, 4)},
    ),
}
