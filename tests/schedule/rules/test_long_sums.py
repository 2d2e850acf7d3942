"""schedule/rules/long_sums.py: no sum of floats is a long chain of additions, whatever its axes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver.lower import lower_function
from tilewright.schedule.rules import long_sums
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.rules.gpu import rows as grid_rows
from tilewright.schedule.rules.products import split_products
from tilewright.tir.dim import Dim
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.stmt import Block, For, IterKind, Stmt
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.visit import free_vars

from ..rule_checks import check

TARGETS = ["c:scalar", "c:avx2", "c:avx512"]
LONG = 20_000_000


def reduced(
    shape: tuple[int, ...], axes: tuple[int, ...], *, dtype: str = "float32", scaled: bool = False
) -> PrimFunc:
    x = te.placeholder(shape, dtype, name="X")
    steps = {d: te.reduce_axis(shape[d], name=f"k{d}") for d in axes}
    kept = tuple(n for d, n in enumerate(shape) if d not in axes)

    def element(*at: Expr) -> Expr:
        own = iter(at)
        place = tuple(steps[d] if d in steps else next(own) for d in range(len(shape)))
        return te.sum(x[place], axis=tuple(steps.values()))

    s = te.compute(kept, element, name="S")
    if not scaled:
        return te.func(x, s, name="reduced")
    return te.func(x, te.compute(kept, lambda *at: s[at] * 0.5, name="Y"), name="reduced")


def normalised(rows: int, columns: int) -> PrimFunc:
    """Each row over its sum of squares, plus e to its elements: what is made of a row reads it."""
    x, k = te.placeholder((rows, columns), "float32", name="X"), te.reduce_axis(columns, name="k")
    e = te.compute((rows, columns), lambda i, j: x[i, j] + 1.0, name="e")
    s = te.compute((rows,), lambda i: te.sum(e[i, k] * e[i, k], axis=k), name="S")
    return te.func(
        x, te.compute((rows, columns), lambda i, j: e[i, j] / (s[i] + 1.0), name="Y"), name="normal"
    )


def product(m: int, n: int, k: int) -> PrimFunc:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=True)
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="product")


def chains(func: PrimFunc) -> dict[str, int]:
    """Of each block that reduces, how many terms it adds one after the other."""
    found: dict[str, int] = {}

    def visit(stmt: Stmt, loops: tuple[For, ...]) -> None:
        if isinstance(stmt, Block):
            pairs = zip(stmt.iters, stmt.bindings, strict=True)
            steps = [free_vars(b) for it, b in pairs if it.kind is IterKind.REDUCE]
            used = frozenset[object]().union(*steps)
            if steps:
                found[stmt.name] = math.prod(x.extent for x in loops if x.var in used)
        for child in stmt.children():
            if isinstance(child, Stmt):
                visit(child, (*loops, stmt) if isinstance(stmt, For) else loops)

    visit(func.body, ())
    return found


SUMS = {
    "all": reduced((LONG,), (0,)),
    "all, prime": reduced((LONG + 7,), (0,)),
    "all of two axes": reduced((4000, 5000), (0, 1)),
    "all of three axes": reduced((300, 200, 300), (0, 1, 2)),
    "few rows": reduced((7, 3_000_000), (1,)),
    "one row": reduced((1, LONG), (1,)),
    "first": reduced((1_000_000, 20), (0,)),
    "first of one column": reduced((1_000_000, 1), (0,)),
    "first, prime": reduced((1_000_003, 20), (0,)),
    "middle": reduced((3, 100_000, 5), (1,)),
    "first two": reduced((1000, 1000, 7), (0, 1)),
    "first and last": reduced((1000, 7, 1000), (0, 2)),
    "pixels": reduced((1, 500, 500, 64), (1, 2), scaled=True),
    "float64": reduced((LONG,), (0,), dtype="float64"),
    "a row that is read again": normalised(2, 5_000_000),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SUMS)
def test_no_sum_is_a_long_chain(name: str, target: str) -> None:
    found = chains(default_schedule(SUMS[name], Target.parse(target)).func)
    assert max(found.values()) <= 1.25 * max(
        long_sums.LONGEST_CHAIN, math.isqrt(SUMS[name].inputs[0].size)
    )


@pytest.mark.parametrize("name", SUMS)
def test_no_sum_of_a_gpu_is_a_long_chain(name: str) -> None:
    sch = default_schedule(SUMS[name], Target.parse("cuda:sm_90a"))
    assert max(chains(sch.func).values()) <= 2 * long_sums.LONGEST_CHAIN


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "sizes", [(64, 64, 1_000_000), (3, 5, 1_000_003), (1, 1, 4_000_000), (20, 30, 20_000_000)]
)
def test_no_product_is_a_long_chain(sizes: tuple[int, int, int], target: str) -> None:
    found = chains(default_schedule(product(*sizes), Target.parse(target)).func)
    assert max(found.values()) <= split_products.LONGEST_CHAIN


def test_integers_and_maxima_are_not_cut() -> None:
    x, k = te.placeholder((LONG,), "float32", name="X"), te.reduce_axis(LONG, name="k")
    largest = te.func(x, te.compute((), lambda: te.max(x[k], axis=k), name="Y"), name="largest")
    for func in (largest, reduced((LONG,), (0,), dtype="int32")):
        sch = default_schedule(func, Target.parse("c:avx2"))
        assert [block.name for block in sch.func.blocks] == [block.name for block in func.blocks]


@pytest.mark.parametrize("name", ["all", "first", "few rows", "pixels", "a row that is read again"])
def test_a_strict_build_keeps_the_order_of_its_definition(name: str) -> None:
    target = Target.parse("c:avx512")
    assert rule_for(SUMS[name], target, strict=True).name in ("reduction", "rows")
    lower_function(SUMS[name], target, strict=True)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of a few terms count as long."""
    monkeypatch.setattr(long_sums, "LONGEST_CHAIN", 6)
    monkeypatch.setattr(split_products, "LONGEST_CHAIN", 6)


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "func",
    [
        reduced((2000,), (0,)),
        reduced((1999,), (0,)),
        reduced((23, 29), (0, 1)),
        reduced((2, 7, 30), (0, 1, 2)),
        reduced((3, 1100), (1,)),
        reduced((41, 19), (0,)),
        reduced((36, 1), (0,), scaled=True),
        reduced((3, 40, 5), (1,)),
        reduced((9, 11, 7), (0, 1), scaled=True),
        reduced((12, 3, 21), (0, 2)),
        reduced((1, 9, 9, 16), (1, 2), scaled=True),
        normalised(2, 1500),
        product(5, 18, 47),
    ],
    ids=lambda func: f"{func.name} {func.inputs[0].shape}",
)
def test_what_is_cut_is_right(func: PrimFunc, target: str) -> None:
    sch = check(func, target, rtol=1e-5)
    assert len(sch.func.blocks) > len(func.blocks)


@pytest.mark.parametrize(
    "func",
    [reduced((23, 29), (0, 1)), reduced((41, 19), (0,)), reduced((9, 11, 7), (0, 1), scaled=True)],
    ids=lambda func: str(func.inputs[0].shape),
)
def test_what_is_cut_for_a_gpu_is_right(func: PrimFunc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_rows, "MOST_TERMS", 12)
    sch = check(func, "cuda:sm_90a", rtol=1e-5)
    assert len(sch.func.blocks) > len(func.blocks)


@pytest.mark.needs_cc
def test_more_ones_than_a_float_counts_are_counted() -> None:
    count = (1 << 24) + 1000
    kernel = tw.build(reduced((count,), (0,)))
    ones = np.ones(count, np.float32)
    one, two, three = (kernel(ones, threads=threads) for threads in (1, 2, 3))
    assert one == two == three == count


def test_windows_whose_size_a_call_decides_are_no_long_chain() -> None:
    """Parts of all that they may have would take memory for each; usually they are small."""
    for usual, is_cut in ((None, True), (2, False)):
        dims = [Dim(f"n{d}", low=0, high=300, typical=usual) for d in range(2)]
        blocks = default_schedule(_window(dims), Target.parse("c:avx512")).func.blocks
        assert any(block.name == "S_rf" for block in blocks) is is_cut


def _window(dims: list[Dim]) -> PrimFunc:
    x = te.placeholder((300, 300, 32), "float32", name="X")
    i, j = (te.reduce_axis(dim, name=f"k{d}") for d, dim in enumerate(dims))
    at = te.clamp_index(i, 300), te.clamp_index(j, 300)
    s = te.compute((32,), lambda c: te.sum(x[(*at, c)], axis=(i, j)), name="S")
    return te.func(x, s, name="window", sizes=dims)
