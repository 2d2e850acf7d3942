"""schedule/rules/gpu/warps.py: products that warps compute together are right, spill nothing and
meet few banks twice; who asks for an instruction gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.cuda.emulator.emulated_code import EmulatedCode
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import instruction_mix, resources
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.rules.gpu.warps import SLICE_STEPS, STAGES, TILES
from tilewright.schedule.trace.decisions import Decisions, Default
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.te.tensor import Tensor

from ...schedule.programs import assert_replays, integers
from ...schedule.rule_checks import Answered

pytestmark = pytest.mark.sampled(5)

A100 = Target.parse("cuda:sm_80")


def wide(value: Expr, kind: str) -> Expr:
    return te.cast(value, {"int8": "int32"}.get(kind, "float32")) if kind != "float32" else value


def product(
    m: int,
    n: int,
    k: int,
    kind: str = "float16",
    *,
    batch: int = 0,
    transposed: bool = False,
    weights: bool = False,
    finished: bool = False,
) -> PrimFunc:
    """The product of A and B; finished: a bias is added, what is below 0 is 0, and it is stored in
    the type of A.
    """
    front = (batch,) if batch else ()
    a = te.placeholder((*front, m, k), kind, name="A")
    shape = (n, k) if transposed else (k, n)
    b = te.placeholder((*front, *shape), kind, name="B", constant=weights)
    q = te.reduce_axis(k, name="k")

    def term(*at: Expr) -> Expr:
        *apart, i, j = at
        other = b[(*apart, j, q)] if transposed else b[(*apart, q, j)]
        return te.sum(wide(a[(*apart, i, q)], kind) * wide(other, kind), axis=q)

    c = te.compute((*front, m, n), term, name="C")
    if not finished:
        return te.func(a, b, c, name="product")
    bias = te.placeholder((n,), "float32", name="bias", constant=weights)
    y = te.compute((m, n), lambda i, j: te.maximum(c[i, j] + bias[j], 0.0), name="Y")
    z = te.compute((m, n), lambda i, j: te.cast(y[i, j], kind), name="Z")
    return te.func(a, b, bias, z, name="product")


def convolution(size: int, channels: int, outputs: int, *, widened_first: bool = False) -> PrimFunc:
    """Windows of 3 x 3 of a padded image, channels last; widened_first: it is padded in float32."""
    x = te.placeholder((1, size, size, channels), "float16", name="X")
    w = te.placeholder((3, 3, channels, outputs), "float16", name="W", constant=True)

    def padded(n: Expr, i: Expr, j: Expr, c: Expr) -> Expr:
        inside = te.all_of(i >= 1, i < size + 1, j >= 1, j < size + 1)
        element = x[n, i - 1, j - 1, c]
        return te.select(inside, te.cast(element, "float32") if widened_first else element, 0.0)

    p = te.compute((1, size + 2, size + 2, channels), padded, name="P")
    r, s, c = (te.reduce_axis(n, name=k) for n, k in zip((3, 3, channels), "rsc", strict=True))

    def term(n: Expr, i: Expr, j: Expr, o: Expr) -> Expr:
        data = p[n, i + r, j + s, c]
        data = data if widened_first else te.cast(data, "float32")
        return te.sum(data * te.cast(w[r, s, c, o], "float32"), axis=(r, s, c))

    y: Tensor = te.compute((1, size, size, outputs), term, name="Y")
    return te.func(x, w, y, name="convolution")


CASES: dict[str, Callable[[], PrimFunc]] = {
    "odd sizes": lambda: product(70, 50, 72),
    "whole tiles": lambda: product(64, 64, 64, transposed=True),
    "weights, and what follows": lambda: product(33, 70, 48, weights=True, finished=True),
    "many matrices": lambda: product(20, 17, 40, batch=3, transposed=True),
    "bfloat16": lambda: product(40, 33, 50, "bfloat16"),
    "bytes": lambda: product(40, 33, 70, "int8", weights=True),
    "bytes in rows of columns": lambda: product(40, 33, 70, "int8"),
    "convolution": lambda: convolution(7, 16, 24),
    "convolution that widens first": lambda: convolution(6, 8, 16, widened_first=True),
}


def emulated(
    func: PrimFunc, decisions: Decisions | None = None, allow: tuple[str, ...] = ()
) -> Kernel:
    """The kernel of the rule's schedule, emulated, is right. Returns it."""
    sch = default_schedule(func, A100, decisions, allow=allow)
    assert_replays(sch)
    arrays: Mapping[str, np.ndarray] = integers(func)
    constants = {b.name: arrays[b.name] for b in func.constants}
    kernel = tw.build(sch, A100, constants=constants)
    assert kernel.proof is not None
    assert kernel.proof.status == "proved"
    copy = tw.emulated(kernel, checked=True)
    inputs = [arrays[b.name] for b in func.inputs if b not in func.constants]
    expected = evaluate(func, arrays)[func.outputs[0].name]
    np.testing.assert_array_equal(copy(*inputs), expected)
    assert isinstance(copy.code, EmulatedCode)
    assert all(barrier.needed for barrier in copy.code.report.barriers)
    rows = [line for line in copy.code.report.table.splitlines() if "ldmatrix" in line]
    assert rows
    assert all("1 for the worst" in line for line in rows)
    return kernel


@pytest.mark.needs_cxx
@pytest.mark.parametrize("name", CASES)
def test_warps_compute_products_together(name: str) -> None:
    func = CASES[name]()
    assert rule_for(func, A100).name == "grid warps"
    emulated(func)


@pytest.mark.usefixtures("cubin_tools")
@pytest.mark.parametrize("name", CASES)
def test_the_gpu_gets_its_instructions_and_nothing_spills(name: str) -> None:
    func = CASES[name]()
    arrays = integers(func)
    constants = {b.name: arrays[b.name] for b in func.constants}
    source = tw.build(func, A100, constants=constants).source
    for arch in ("sm_80", "sm_90a"):
        cubin = compile_cuda(source, arch, name=func.name)
        assert not any(used.local_bytes for used in resources(cubin).values())
        mixes = [mix.counts for mix in instruction_mix(cubin).values()]
        assert any(one.startswith(("HMMA", "IMMA")) for counts in mixes for one in counts)


@pytest.mark.needs_cxx
@pytest.mark.parametrize("tile", TILES)
def test_every_tile_is_right(tile: tuple[int, ...]) -> None:
    steps = SLICE_STEPS[TILES.index(tile) % len(SLICE_STEPS)]
    stages = STAGES[TILES.index(tile) % len(STAGES)]
    answers = {"tile of C": tile, "steps of a slice of C": steps, "stages of C": stages}
    answered = Answered(answers)
    emulated(product(70, 69, 40, finished=True), answered)
    assert answered.met == set(answered.answers)


@pytest.mark.needs_cxx
def test_sums_are_cut_as_hardware_cuts_them() -> None:
    func = product(16, 8, 1 << 10, transposed=True)
    x, y = (np.full(b.shape, np.float16(1 / 3)) for b in func.inputs)
    total = rounded = np.float32(0)
    for _ in range((1 << 10) // 16):
        exact = float(total) + 16 * float(x[0, 0]) ** 2
        rounded = np.float32(float(rounded) + 16 * float(x[0, 0]) ** 2)
        near = np.float32(exact)
        total = np.nextafter(near, np.float32(0)) if float(near) > exact else near
    whole = default_schedule(func, A100, Answered({"parts of the terms of C_cache": 1}))
    kernel = tw.emulated(tw.build(whole, A100))
    np.testing.assert_array_equal(kernel(x, y), np.full((16, 8), total))
    assert total < rounded


@pytest.mark.needs_cxx
def test_who_asks_for_rounded_factors_gets_them() -> None:
    func = product(40, 33, 50, "float32")
    assert rule_for(func, A100).name == "grid products"
    kernel = emulated(func, Default(), allow=("mma_m16n8k8_tf32",))
    assert "tw_mma_m16n8k8_tf32(" in kernel.source


def test_a_strict_build_takes_none_that_rounds_in_its_own_way() -> None:
    halves, numbers = product(40, 33, 50), product(40, 33, 50, "int8")
    assert rule_for(halves, A100, strict=True).name == "grid products"
    assert rule_for(numbers, A100, strict=True).name == "grid warps"
    assert tw.build(numbers, A100, strict=True).proof.status == "proved"
