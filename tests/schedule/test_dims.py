"""Schedules of functions of which a call decides sizes: values at many of them, proof, replay.

Each schedule is judged after every stage of lowering, at sizes around its tiles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.lower.lower import contraction, lower, lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import Array, evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import difference
from tilewright.tir.verify.verify import Stage, verify

pytestmark = pytest.mark.sampled(5)

MOST = 11
SIZES = (1, 2, 3, 4, 5, 8, 9, MOST)
TARGETS = [Target.parse("c:scalar"), Target.parse("c:avx2"), Target.parse("c:avx512")]
Steps = Callable[[Schedule], object]


def matmul() -> PrimFunc:
    """D = max(A @ B, 0) of n rows."""
    n = te.dim("n", 1, MOST)
    a = te.placeholder((n, 6), "float32", name="A")
    b = te.placeholder((6, 10), "float32", name="B")
    k = te.reduce_axis(6, name="k")
    c = te.compute((n, 10), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, 10), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    return te.func(a, b, d, name="matmul")


def chain() -> PrimFunc:
    """Two pointwise tensors of n elements, the second of which reads a neighbour of the first."""
    n = te.dim("n", 1, MOST)
    x = te.placeholder((n,), "float32", name="X")
    y = te.compute((n,), lambda i: x[i] * 2.0, name="Y")
    z = te.compute((n,), lambda i: y[i] + te.select(i + 1 < n, y[i + 1], 0.0), name="Z")
    return te.func(x, z, name="chain")


def clamped() -> PrimFunc:
    """As `chain`, where the last element is its own neighbour."""
    n = te.dim("n", 1, MOST)
    x = te.placeholder((n,), "float32", name="X")
    y = te.compute((n,), lambda i: x[i] * 2.0, name="Y")
    z = te.compute((n,), lambda i: y[i] + y[te.minimum(i + 1, n - 1)], name="Z")
    return te.func(x, z, name="clamped")


def normalised() -> PrimFunc:
    """Each of n rows over its sum."""
    n = te.dim("n", 1, MOST)
    x = te.placeholder((n, 6), "float32", name="X")
    k = te.reduce_axis(6, name="k")
    s = te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute((n, 6), lambda i, j: x[i, j] / s[i], name="Y")
    return te.func(x, y, name="normalised")


def columns() -> PrimFunc:
    """The sums over n rows."""
    n = te.dim("n", 0, MOST)
    x = te.placeholder((n, 6), "float32", name="X")
    k = te.reduce_axis(MOST, name="k")
    s = te.compute((6,), lambda j: te.sum(x[k, j], axis=k, where=k < n), name="S")
    return te.func(x, s, name="columns")


def two() -> PrimFunc:
    """Outer sums of n rows and m rows, side by side."""
    n, m = te.dim("n", 1, MOST), te.dim("m", 2, 7)
    x = te.placeholder((n, 3), "float32", name="X")
    w = te.placeholder((m, 3), "float32", name="W")
    y = te.compute((n, 3), lambda i, j: x[i, j] + 1.0, name="Y")
    v = te.compute((m, 3), lambda i, j: w[i, j] * x[0, j], name="V")
    return te.func(x, w, y, v, name="two")


def product() -> PrimFunc:
    """D = max(A @ B, 0), whose three sizes a call decides."""
    m, n, terms = te.dim("m", 1, MOST), te.dim("n", 1, 19), te.dim("terms", 0, 6)
    a = te.placeholder((m, terms), "float32", name="A")
    b = te.placeholder((terms, n), "float32", name="B")
    k = te.reduce_axis(terms, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((m, n), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    return te.func(a, b, d, name="product")


def shares() -> PrimFunc:
    """Each of some rows over its sum, of as many columns as a call decides."""
    m, n = te.dim("m", 1, MOST), te.dim("n", 1, 9)
    x = te.placeholder((m, n), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    s = te.compute((m,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute((m, n), lambda i, j: x[i, j] / s[i], name="Y")
    return te.func(x, y, name="shares")


def turned() -> PrimFunc:
    """Some matrices, each of them transposed: the middle and the last axis have dims."""
    m, n = te.dim("m", 1, MOST), te.dim("n", 2, 9)
    x = te.placeholder((3, m, n), "float32", name="X")
    y = te.compute((3, n, m), lambda b, i, j: x[b, j, i] * 2.0, name="Y")
    return te.func(x, y, name="turned")


def plain(sch: Schedule) -> None:
    """Nothing."""


def register_tile(tail: str) -> Steps:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        i0, i1 = sch.split(i, (None, 4), tail=tail)  # type: ignore[arg-type]
        j0, j1 = sch.split(j, (None, 8), tail="mask")
        sch.reorder(i0, j0, k, i1, j1)
        sch.unroll(i1)
        sch.vectorize(j1)
        sch.parallel(i0)
        sch.stage("C", "C", j0, "register")

    return steps


def epilogue_on_the_tile(sch: Schedule) -> None:
    register_tile("partition")(sch)
    *_, row, column = sch.reverse_compute_at("D", sch.loops("C")[1])
    sch.unroll(row)
    sch.vectorize(column)


def blocked_sum(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    i0, i1 = sch.split(i, (None, 4), tail="guard")
    k0, k1 = sch.split(k, (None, 2), tail="partition")
    sch.reorder(i0, k0, i1, k1, j)
    sch.vectorize(j)
    sch.stage("C", "C", k0, "thread")
    sch.parallel(i0)


def fused_rows(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    outer, _ = sch.split(sch.fuse(i, j), (None, 16), tail="guard")
    sch.parallel(outer)
    a, b = sch.loops("D")
    sch.parallel(sch.fuse(a, b))


def packed(sch: Schedule) -> None:
    sch.pack("B", 8)
    block = sch.cache_read("C", "A")
    sch.vectorize(sch.loops(block)[-1])
    register_tile("mask")(sch)


def written_apart(sch: Schedule) -> None:
    out = sch.cache_write("D")
    sch.parallel(sch.loops(out)[0])
    sch.decompose_reduction("C", sch.loops("C")[2])


def in_parts(sch: Schedule) -> None:
    k = sch.loops("C")[2]
    k0, _ = sch.split(k, (2, 3), tail="guard")
    sch.rfactor("C", k0)


def tiles_of_both(sch: Schedule) -> None:
    b, i, j = sch.loops("Y")
    i0, i1 = sch.split(i, (None, 4), tail="partition")
    j0, j1 = sch.split(j, (None, 4), tail="mask")
    sch.reorder(j0, i0, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    sch.parallel(b)


def read_by_its_own_axes(sch: Schedule) -> None:
    sch.reindex("S", "X")


def rows_apart(sch: Schedule) -> None:
    sch.storage_align(sch.cache_read("S", "X"), 0, 4, 1)


def closer(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    i0, i1 = sch.split(i, (None, 4), tail="guard")
    sch.reorder(i0, j, i1)
    sch.compute_at(sch.cache_read("C", "B"), j)
    sch.parallel(i0)


def inlined(sch: Schedule) -> None:
    sch.compute_inline("Y")
    lane = sch.split(sch.loops("Z")[0], (None, 4), tail="mask")[1]
    sch.vectorize(lane)


def computed_at(sch: Schedule) -> None:
    outer, _ = sch.split(sch.loops("Z")[0], (None, 4), tail="guard")
    sch.compute_at("Y", outer)
    sch.parallel(outer)


def rolling(sch: Schedule) -> None:
    outer, _ = sch.split(sch.loops("Z")[0], (None, 4), tail="guard")
    sch.compute_at("Y", outer)
    sch.rolling_buffer("Y", outer)


def row_by_row(sch: Schedule) -> None:
    row = sch.loops("Y")[0]
    sch.compute_at("S", row)
    sch.set_scope("S", "register")
    sch.vectorize(sch.loops("Y")[1])
    sch.parallel(row)


def columns_tiled(sch: Schedule) -> None:
    j, k = sch.loops("S")
    k0, k1 = sch.split(k, (None, 4), tail="partition")
    sch.reorder(k0, j, k1)


def two_in_parallel(sch: Schedule) -> None:
    for name in ("Y", "V"):
        outer, _ = sch.split(sch.loops(name)[0], (None, 3), tail="partition")
        sch.parallel(outer)


CASES: list[tuple[Callable[[], PrimFunc], Steps]] = [
    (matmul, plain),
    (matmul, register_tile("guard")),
    (matmul, register_tile("partition")),
    (matmul, register_tile("mask")),
    (matmul, epilogue_on_the_tile),
    (matmul, blocked_sum),
    (matmul, fused_rows),
    (matmul, packed),
    (matmul, written_apart),
    (matmul, in_parts),
    (chain, plain),
    (chain, inlined),
    (chain, computed_at),
    (chain, rolling),
    (clamped, plain),
    (clamped, computed_at),
    (normalised, plain),
    (normalised, row_by_row),
    (columns, plain),
    (columns, columns_tiled),
    (product, plain),
    (product, register_tile("guard")),
    (product, register_tile("partition")),
    (product, register_tile("mask")),
    (product, epilogue_on_the_tile),
    (product, blocked_sum),
    (product, fused_rows),
    (product, written_apart),
    (product, in_parts),
    (product, closer),
    (shares, plain),
    (shares, row_by_row),
    (shares, read_by_its_own_axes),
    (shares, rows_apart),
    (columns, read_by_its_own_axes),
    (turned, plain),
    (turned, tiles_of_both),
    (two, plain),
    (two, two_in_parallel),
]


def arrays(func: PrimFunc, size: int) -> list[Array]:
    """Whole numbers, so that no order of a sum changes its value; other dims take what fits."""
    rng = np.random.default_rng(size)
    values = {d: min(max(size - n, d.low), d.high) for n, d in enumerate(func.dims)}
    shapes = (
        tuple(values.get(e, e) if not isinstance(e, int) else e for e in p.buffer.extents)
        for p in func.parameters
        if p.role != "output"
    )
    return [rng.integers(1, 5, shape).astype(np.float32) for shape in shapes]


def check(func: PrimFunc, given: list[Array], wanted: dict[str, Array], **how: bool) -> None:
    for expected, found in zip(wanted.values(), interpret(func, *given, **how), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("make", "steps"), CASES, ids=lambda x: getattr(x, "__name__", "steps"))
def test_every_stage_computes_every_size(make: Callable[[], PrimFunc], steps: Steps) -> None:
    func = make()
    sch = Schedule(func).apply(steps)
    verify(sch.func, Stage.SCHEDULED)
    assert difference(parse(str(sch.func)), sch.func) is None
    replayed = Schedule.replay(func, Trace.from_json(sch.trace.to_json()))
    assert difference(replayed.func, sch.func) is None
    scheduled = contraction(sch.func, TARGETS[1])
    nest, canon = lower_to_nest(scheduled), canonical_form(scheduled)
    verify(nest, Stage.NEST)
    verdict = prove(nest, canon)
    assert verdict.status == "proved", f"{verdict}\n{nest}"
    plain_answer = prove(nest, canon, shortcuts=False)
    assert plain_answer.status == "proved", str(plain_answer)
    lowered = [lower(nest, target) for target in TARGETS]
    for stage in lowered:
        verify(stage, Stage.LOWERED)
        assert str(parse(str(stage))) == str(stage)
    for size in SIZES:
        given = arrays(func, size)
        wanted = evaluate(func, given)
        check(func, given, wanted, checked=True)
        check(sch.func, given, wanted, checked=True)
        check(nest, given, wanted, checked=True, barriers=True)
        for stage in lowered:
            check(stage, given, wanted, checked=True, barriers=True)


def test_digits_of_a_size_that_a_call_decides_read_beyond_it() -> None:
    n = te.dim("n", 0, 6)
    x = te.placeholder((n, 4), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    s = te.compute((4,), lambda j: te.sum(x[k, j], axis=k), name="S")
    sch = Schedule(te.func(x, s, name="sums"))
    sch.split_axis("S", 1, 2)
    with pytest.raises(ScheduleError, match=r"'X' beyond its edges: .*\[reindex-access\]"):
        sch.reindex("S", "X")


def test_a_tensor_whose_size_a_call_decides_keeps_its_layout() -> None:
    sch = Schedule(chain())
    block = sch.cache_write("Z")
    assert block == "Z"
    with pytest.raises(ScheduleError) as caught:
        sch.transform_layout("Z_cache", "lambda i: (i // 4, i % 4)")
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: transform_layout: a call decides the size 'n' of 'Z_cache'; expected a "
        "tensor whose size is a number. [layout-dim]"
    )
    assert str(caught.value).splitlines()[-1] == (
        "  Hint: transform_layout a tensor without 'n', such as the weights."
    )
    with pytest.raises(ScheduleError, match=r"pad: a call decides .*\[layout-dim\]"):
        sch.pad("Z_cache", (4,))


@pytest.mark.parametrize("make", [matmul, chain, normalised, columns, product, shares, turned, two])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_rules_schedule_every_size(make: Callable[[], PrimFunc], target: Target) -> None:
    func = make()
    scheduled = contraction(default_schedule(func, target).func, target)
    nest = lower_to_nest(scheduled)
    assert prove(nest, canonical_form(scheduled)).status == "proved"
    lowered = lower(nest, target)
    for size in (1, 4, MOST):
        given = arrays(func, size)
        check(lowered, given, evaluate(func, given), checked=True, barriers=True)
