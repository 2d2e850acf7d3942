"""Products of float32 whose weights, or both operands, are floats of 16 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.types import numpy_type
from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.rules.knobs.tiles import Narrow, candidates, step_cycles
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import CpuTarget, Target
from tilewright.tir.te import te

from ....isas import HERE
from ...programs import assert_meaning_kept, assert_replays

AVX2, AVX512 = (CpuTarget.of(Target.parse(name)) for name in ("c:avx2", "c:avx512"))
BF16 = CpuTarget.of(Target.parse("c:avx512+bf16"))
ALLOWED = ("vdpbf16ps",)


def product(m: int, n: int, k: int, data: str = "float32", weights: str = "bfloat16") -> PrimFunc:
    """C[i, j] = the sum of A[i, k] * B[k, j] in float32."""
    a = te.placeholder((m, k), data, name="A")
    b = te.placeholder((k, n), weights, name="B", constant=True)
    q = te.reduce_axis(k, name="k")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        left, right = te.cast(a[i, q], "float32"), te.cast(b[q, j], "float32")
        return te.sum(left * right, axis=q)

    return te.func(a, b, te.compute((m, n), element, name="C"), name="product")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("data", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("target", [AVX2, AVX512])
def test_weights_are_packed_and_converted_where_they_are_read(
    target: CpuTarget, data: str, kind: str
) -> None:
    func = product(7, 50, 37, data, kind)
    assert rule_for(func, target).name == "contraction"
    sch = default_schedule(func, target)
    assert f"B_packed = alloc({kind}[" in str(sch.func)
    assert_meaning_kept(sch)
    assert_replays(sch)


@pytest.mark.parametrize("seed", range(3))
def test_every_tile_that_a_tuner_may_take_is_right(seed: int) -> None:
    assert_meaning_kept(default_schedule(product(11, 50, 18), AVX512, Random(seed)))


def test_a_strict_build_keeps_the_order_of_the_sum() -> None:
    func = product(3, 20, 520)
    rule = rule_for(func, AVX512, strict=True)
    assert rule.name == "contraction"
    assert_meaning_kept(rule.schedule(func, AVX512))


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("target", HERE)
def test_values_are_those_of_the_rounded_weights(target: str, kind: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((3, 600), (600, 130)))
    half = b.astype(numpy_type(kind))
    kernel = tw.build(product(3, 130, 600, weights=kind), target, constants={"B": half})
    wanted = a.astype(np.float64) @ half.astype(np.float64)
    assert np.abs(kernel(a) - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_weights_that_stream_past_one_tile_of_rows_are_asked_for_early() -> None:
    def asks(func: PrimFunc) -> bool:
        return "prefetch" in "\n".join(default_schedule(func, AVX512).steps)

    assert asks(product(1, 2048, 2048))
    assert asks(product(8, 2048, 2048))
    assert not asks(product(1, 64, 64))  # they stay in a cache
    assert not asks(product(1, 2048, 2048, weights="float32"))


def test_few_rows_are_cheaper_with_weights_of_16_bits_and_many_are_not() -> None:
    def price(m: int, n: int, k: int, weights: str, target: CpuTarget) -> float:
        return estimate(product(m, n, k, weights=weights), target)

    for target in (AVX2, AVX512):
        few, many = (1, 4096, 4096), (128, 768, 3072)
        assert price(*few, "float16", target) < 0.6 * price(*few, "float32", target)
        assert price(*many, "float16", target) > 1.05 * price(*many, "float32", target)


def test_each_conversion_is_two_instructions() -> None:
    plain = step_cycles(8, 3, AVX512)
    assert step_cycles(8, 3, AVX512, narrow=Narrow(weights=True)) == plain + 3
    assert step_cycles(8, 3, AVX512, narrow=Narrow(data=True, weights=True)) == plain + 11
    tiles = [
        candidates(1, 128, 768, 3072, FLOAT32, AVX512, 1, narrow)[0]
        for narrow in (Narrow(), Narrow(weights=True))
    ]
    assert tiles[1].rows >= tiles[0].rows  # which share a conversion


def test_pairs_of_bfloat16_cost_what_the_processor_has_for_them() -> None:
    func = product(128, 768, 3072, "bfloat16")
    slow = replace(BF16, bf16_per_cycle=0.5)
    fast, halved = (estimate(func, target, allow=ALLOWED) for target in (BF16, slow))
    assert rule_for(func, BF16, allow=ALLOWED).name == "dots"
    assert halved > 3 * fast
    assert fast < estimate(product(128, 768, 3072, weights="float32"), BF16) / 1.6
    assert halved > estimate(product(128, 768, 3072, weights="float32"), slow)
