"""schedule/rules/gpu/row_reduction.py: rows on warps and blocks of a GPU are right, read once,
written once, with no barrier that nothing needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import resources
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.dtype import dtype
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import farthest
from ...rule_checks import Answered, check
from .test_rules import softmax, sums

pytestmark = pytest.mark.sampled(5)

A100 = Target.parse("cuda:sm_80")


def normalised(rows: int, columns: int, kind: str = "float32") -> PrimFunc:
    """A layer normalisation, with its weights."""
    x = te.placeholder((rows, columns), kind, name="X")
    g, b = (te.placeholder((columns,), "float32", name=name) for name in ("G", "B"))
    k, n = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="n")
    share = 1 / columns
    s = te.compute((rows,), lambda i: te.sum(te.cast(x[i, k], "float32"), axis=k), name="S")
    d = te.compute(
        (rows, columns), lambda i, j: te.cast(x[i, j], "float32") - s[i] * share, name="D"
    )
    q = te.compute((rows,), lambda i: te.sum(d[i, n] * d[i, n], axis=n), name="Q")
    r = te.compute((rows,), lambda i: 1.0 / te.sqrt(q[i] * share + 1e-5), name="R")
    y = te.compute(
        (rows, columns), lambda i, j: te.cast(d[i, j] * r[i] * g[j] + b[j], kind), name="Y"
    )
    return te.func(x, g, b, y, name="layer_norm")


def scaled(rows: int, columns: int) -> PrimFunc:
    """A root mean square normalisation."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    q = te.compute((rows,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), name="Q")
    y = te.compute(
        (rows, columns), lambda i, j: x[i, j] / te.sqrt(q[i] * (1 / columns) + 1e-5), name="Y"
    )
    return te.func(x, y, name="rms_norm")


def keys(heads: int, queries: int, columns: int) -> PrimFunc:
    """A softmax of rows that lie along two axes."""
    shape = heads, queries, columns
    x = te.placeholder(shape, "float32", name="X")
    k, n = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="n")
    top = te.compute(shape[:2], lambda h, i: te.max(x[h, i, k], axis=k), name="M")
    e = te.compute(shape, lambda h, i, j: te.exp(x[h, i, j] - top[h, i]), name="E")
    total = te.compute(shape[:2], lambda h, i: te.sum(e[h, i, n], axis=n), name="S")
    y = te.compute(shape, lambda h, i, j: e[h, i, j] / total[h, i], name="Y")
    return te.func(x, y, name="keys")


def turned(rows: int, columns: int) -> PrimFunc:
    """Each row over its sum, the other way round: no thread has what it needs."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j]), name="E")
    s = te.compute((rows,), lambda i: te.sum(e[i, k], axis=k), name="S")

    def element(i: Expr, j: Expr) -> Expr:
        return e[i, columns - 1 - j] / s[i]

    return te.func(x, te.compute((rows, columns), element, name="Y"), name="turned")


FUNCTIONS: dict[str, Callable[[], PrimFunc]] = {
    "a warp": lambda: softmax(3, 64),
    "an odd number of elements": lambda: softmax(2, 77),
    "several warps": lambda: softmax(1, 520),
    "rows along two axes": lambda: keys(3, 17, 40),
    "a mean and what lies around it": lambda: normalised(3, 72),
    "the largest and where it is": lambda: farthest(5, 70),
    "what another thread has": lambda: turned(3, 96),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_are_right(name: str) -> None:
    check(FUNCTIONS[name](), A100)


@pytest.mark.parametrize("rows", [2, 8])
def test_a_block_may_have_any_number_of_rows(rows: int) -> None:
    answered = Answered({"warps of a row of Y": 1, "rows of a block of Y": rows})
    check(keys(2, 9, 33), A100, answered)
    assert len(answered.met) == 2


def test_a_row_may_have_more_threads_than_vectors() -> None:
    answered = Answered({"warps of a row of Y": 16})
    check(scaled(2, 200), A100, answered)
    assert answered.met


@pytest.mark.parametrize("seed", range(3))
def test_other_answers_are_right_too(seed: int) -> None:
    check(turned(2, 70), A100, Random(seed))
    check(scaled(9, 66), A100, Random(seed))


def gelu(rows: int, columns: int) -> PrimFunc:
    """A chain that ends in the function of a Gaussian: elements, no rows."""
    x = te.placeholder((rows, columns), "float32", name="X")
    b = te.placeholder((columns,), "float32", name="B")
    t = te.compute((rows, columns), lambda i, j: x[i, j] + b[j], name="T")
    y = te.compute(
        (rows, columns), lambda i, j: 0.5 * t[i, j] * (1.0 + te.erf(t[i, j] * 0.70710678)), name="Y"
    )
    return te.func(x, b, y, name="gelu")


SHAPES: dict[str, tuple[PrimFunc, int]] = {  # and barriers
    "softmax": (softmax(64, 256), 0),
    "softmax on blocks": (softmax(2, 768), 2),
    "layer norm": (normalised(16, 128), 0),
    "layer norm of halves": (normalised(4, 512, "float16"), 2),
    "rms norm": (scaled(16, 256), 0),
    "sums": (sums(64, 128), 0),
    "a long row": (scaled(1, 8192), 1),
    "gelu": (gelu(16, 256), 0),
}


@pytest.mark.needs_cxx
@pytest.mark.parametrize("name", SHAPES)
def test_rows_come_from_memory_once_and_go_there_once(name: str) -> None:
    """Sectors of 32 bytes of each tensor, as many as it has."""
    func, barriers = SHAPES[name]
    kernel = tw.build(func, A100)
    inputs = [p.buffer for p in func.parameters if p.role == "input"]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(b.shape).astype(dtype(str(b.type)).numpy) for b in inputs]
    emulated = tw.emulated(kernel, checked=True)
    emulated(*arrays)
    report = emulated.code.report
    sectors: dict[str, int] = {}
    for site in report.sites:
        if site.space == "global":
            sectors[site.buffer] = sectors.get(site.buffer, 0) + site.parts
    rows = func.parameters[0].buffer.shape[0]
    for p in func.parameters:
        again = rows if len(p.buffer.shape) == 1 and p.role == "input" else 1  # for each row
        least = -(-p.buffer.bytes // 32) * again
        whole = p.role == "input" or len(p.buffer.shape) > 1  # sums of rows are one element each
        assert sectors[p.name] == (least if whole else rows), p.name
    assert len(report.barriers) == barriers
    assert all(barrier.needed for barrier in report.barriers)


@pytest.mark.needs_cxx
def test_a_call_may_decide_how_many_rows_there_are() -> None:
    n, k = te.dim("n", 1, 600), te.reduce_axis(96, name="k")
    x = te.placeholder((n, 96), "float32", name="X")
    s = te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute((n, 96), lambda i, j: x[i, j] - s[i], name="Y")
    kernel = tw.build(te.func(x, y, name="centred"), A100)
    assert kernel.proof.status == "proved"
    for rows in (1, 6):
        data = np.random.default_rng(0).integers(-4, 5, (rows, 96)).astype(np.float32)
        result = tw.emulated(kernel, checked=True)(data)
        assert np.array_equal(result, data - data.sum(axis=1, keepdims=True))


def test_strict_builds_keep_the_order_of_sums() -> None:
    for func in (normalised(2, 72), softmax(3, 64)):
        assert tw.build(func, A100, strict=True).proof.status == "proved"


@pytest.mark.usefixtures("cubin_tools")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_what_a_thread_keeps_stays_in_its_registers(arch: str) -> None:
    for func in (softmax(2048, 1024), normalised(512, 4096, "float16")):
        source = tw.build(func, Target.parse(f"cuda:{arch}")).source
        (taken,) = resources(compile_cuda(source, arch, name="row")).values()
        assert taken.stack_bytes == taken.local_bytes == 0


def test_a_copy_that_several_blocks_read_is_made_once() -> None:
    text = str(default_schedule(softmax(4, 64), A100).func)
    assert text.count("= X[v0, v1]") == text.count(" X[") == 1
