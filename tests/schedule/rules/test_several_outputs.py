"""Every rule on functions of several outputs: all of them are right, proved and stored."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.schedule.rules.default import rule_for
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..rule_checks import check

pytestmark = pytest.mark.sampled(5)

ROWS, COLUMNS = 13, 37
TARGETS = ("c:scalar", "c:avx2", "c:avx512", "c:neon", "cuda:sm_90a")


def input_() -> te.Tensor:
    return te.placeholder((ROWS, COLUMNS), "float32", name="X")


def two_maps() -> PrimFunc:
    x = input_()
    a = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="a")
    return te.func(x, a, te.compute(x.shape, lambda i, j: a[i, j] + 1.0, name="b"), name="maps")


def maps_of_one_block() -> PrimFunc:
    x = input_()
    both = te.compute(x.shape, lambda i, j: (x[i, j] * 2.0, x[i, j] + 1.0), name=("a", "b"))
    return te.func(x, *both, name="block")


def product_and_its_relu() -> PrimFunc:
    a, b = (
        te.placeholder((64, 32), "float32", name="A"),
        te.placeholder((32, 48), "float32", name="B"),
    )
    k = te.reduce_axis(32, name="k")
    c = te.compute((64, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(
        a,
        b,
        c,
        te.compute(c.shape, lambda i, j: te.maximum(c[i, j], 0.0), name="D"),
        name="product",
    )


def softmax_and_its_sums() -> PrimFunc:
    x = input_()
    r, q = (te.reduce_axis(COLUMNS, name=name) for name in "rq")
    m = te.compute((ROWS,), lambda i: te.max(x[i, r], axis=r), name="m")
    e = te.compute(x.shape, lambda i, j: te.exp(x[i, j] - m[i]), name="e")
    s = te.compute((ROWS,), lambda i: te.sum(e[i, q], axis=q), name="s")
    y = te.compute(x.shape, lambda i, j: e[i, j] / s[i], name="y")
    return te.func(x, y, m, s, name="softmax")


def sums_of_rows_and_columns() -> PrimFunc:
    x = input_()
    i, j = te.reduce_axis(ROWS, name="i"), te.reduce_axis(COLUMNS, name="j")
    rows = te.compute((ROWS,), lambda a: te.sum(x[a, j], axis=j), name="rows")
    columns = te.compute((COLUMNS,), lambda b: te.sum(x[i, b], axis=i), name="columns")
    return te.func(x, rows, columns, name="sums")


def largest_and_its_place() -> PrimFunc:
    x = input_()
    r = te.reduce_axis(COLUMNS, name="r")

    def element(i: Expr) -> Expr:
        return te.argmax(x[i, r], axis=r)

    return te.func(x, *te.compute((ROWS,), element, name=("best", "at")), name="largest")


FUNCTIONS = (
    two_maps,
    maps_of_one_block,
    product_and_its_relu,
    softmax_and_its_sums,
    sums_of_rows_and_columns,
    largest_and_its_place,
)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("make", FUNCTIONS)
def test_every_output_is_right_and_no_rule_gives_way(
    make: Callable[[], PrimFunc], name: str
) -> None:
    target = Target.parse(name)
    func = make()
    check(func, target)
    assert rule_for(func, target).name != "plain"
