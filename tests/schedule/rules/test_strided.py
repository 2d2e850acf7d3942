"""schedule/rules/strided.py: which windows it takes, and that what it makes of them is right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.rules.knobs.lanes import vector_lanes
from tilewright.schedule.rules.rows import RowsRule
from tilewright.schedule.rules.strided import GATHER_CYCLES
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.work.work import points_of

from ..rule_checks import check

pytestmark = pytest.mark.sampled(5)

TARGETS = ("c:scalar", "c:avx2", "c:avx512", "c:neon")


def pool(
    width: int,
    *,
    step: int = 2,
    taps: int = 3,
    pad: int = 0,
    kind: str = "float32",
    best: Callable[..., Expr] = te.max,
) -> PrimFunc:
    """Windows over channels of 7 rows, channels first. pad: a border of zeros; then what follows
    is scaled.
    """
    x = te.placeholder((3, 7, width), kind, name="X")
    r, s = te.reduce_axis(2, name="r"), te.reduce_axis(taps, name="s")
    data = x
    if pad:

        def padded(c: Expr, i: Expr, j: Expr) -> Expr:
            return te.select(
                te.all_of(j >= pad, j < width + pad), x[c, i, j - pad], te.const(0, kind)
            )

        data = te.compute((3, 7, width + 2 * pad), padded, name="P")
    count = (width + 2 * pad - taps) // step + 1
    y = te.compute(
        (3, 3, count),
        lambda c, i, j: best(data[c, i * 2 + r, j * step + s], axis=(r, s)),
        name="Y",
    )
    z = te.compute(y.shape, lambda *at: y[at] * te.const(3, kind), name="Z")
    return te.func(x, z if pad else y, name="pool")


def weighed(width: int) -> PrimFunc:
    """Depthwise sums of products, channels first."""
    x = te.placeholder((4, width), "float32", name="X")
    w = te.placeholder((4, 3), "float32", name="W", constant=True)
    s = te.reduce_axis(3, name="s")
    y = te.compute(
        (4, (width - 3) // 2 + 1),
        lambda c, j: te.sum(x[c, j * 2 + s] * w[c, s], axis=s),
        name="Y",
    )
    return te.func(x, w, y, name="weighed")


def farthest(width: int) -> PrimFunc:
    """The largest element of each window and which one it is."""
    x = te.placeholder((4, width), "float32", name="X")
    s = te.reduce_axis(3, name="s")
    best, at = te.compute(
        (4, (width - 3) // 2 + 1),
        lambda c, j: te.argmax(x[c, j * 2 + s], axis=s, dtype="int32"),
        name=("best", "at"),
    )
    return te.func(x, best, at, name="farthest")


def diagonal(width: int) -> PrimFunc:
    """Windows that go down a row as they go on."""
    x = te.placeholder((width, 2 * width + 1), "float32", name="X")
    s = te.reduce_axis(3, name="s")
    y = te.compute((width,), lambda j: te.max(x[j, j * 2 + s], axis=s), name="Y")
    return te.func(x, y, name="diagonal")


CASES: dict[str, Callable[[], PrimFunc]] = {
    "windows that overlap": lambda: pool(43),
    "windows side by side": lambda: pool(70, taps=2),
    "windows with gaps": lambda: pool(61, step=5, taps=2),
    "the longest rows and steps": lambda: pool(80, step=7, taps=7),
    "fewer than a vector": lambda: pool(9),
    "a border, and what follows": lambda: pool(40, pad=1),
    "sums": lambda: pool(43, best=te.sum),
    "doubles": lambda: pool(43, kind="float64"),
    "bytes": lambda: pool(43, kind="uint8"),
    "integers": lambda: pool(43, kind="int64", best=te.sum),
    "products": lambda: weighed(45),
    "where it is": lambda: farthest(45),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_what_the_rule_makes_is_right(name: str, target: str) -> None:
    func = CASES[name]()
    assert rule_for(func).name == "strided"
    sch = check(func, target)
    vectors = vector_lanes(func.blocks[-1], Target.parse(target)) > 1
    assert ("vectorized" in str(sch.func)) == vectors


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", ["windows that overlap", "a border, and what follows", "bytes"])
def test_a_kernel_is_that_of_its_definition(name: str) -> None:
    func = CASES[name]()
    (given,) = func.inputs
    data = np.random.default_rng(0).integers(0, 100, given.shape).astype(given.type.numpy)
    np.testing.assert_array_equal(tw.build(func)(data), tw.build(func, "python")(data))


@pytest.mark.slow
def test_random_decisions_stay_right() -> None:
    func, seen = pool(43, pad=1), set[str]()
    for seed in range(12):
        sch = default_schedule(func, Target.parse("c:avx512"), Random(seed))
        if str(sch) not in seen:
            check(func, "c:avx512", Random(seed))
        seen.add(str(sch))
    assert len(seen) > 4


@pytest.mark.parametrize(
    ("func", "rule"),
    [
        (pool(43, step=1), "reduction"),  # neighbours are neighbours in memory
        (pool(3, step=1), "rows"),  # one window to a row
        (diagonal(20), "rows"),  # what is next in memory is no window
        (pool(80, step=8, taps=2), "rows"),  # each lane would have a line of its own
        (pool(80, step=2, taps=8), "rows"),  # the window's own row fills a vector
    ],
)
def test_other_windows_go_to_other_rules(func: PrimFunc, rule: str) -> None:
    assert rule_for(func).name == rule


def test_its_price_has_gathers_beside_what_its_nest_costs() -> None:
    func = pool(4098)
    for target in (Target.parse(name) for name in ("c:avx2", "c:avx512")):
        nest = estimate(default_schedule(func, target), target)
        gathers = GATHER_CYCLES * points_of(func.blocks[0]) / (target.clock_ghz * 1e9)
        assert nest < estimate(func, target) < nest + 1.3 * gathers


def test_without_vectors_it_is_the_schedule_of_rows() -> None:
    func, target = pool(43), Target.parse("c:scalar")
    assert str(default_schedule(func, target)) == str(RowsRule().schedule(func, target))


def test_a_strict_build_takes_it_too() -> None:
    assert rule_for(pool(43, best=te.sum), strict=True).name == "strided"
