from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.runtime.machine.host import default_threads, host
from tilewright.runtime.machine.timing import compare, summarise
from tilewright.runtime.measure.limits import (
    FmaLimit,
    Limits,
    ReadLimit,
    barrier_probe,
    dot_peak,
    fma_peak,
    limits,
    read_peak,
    region_probe,
)
from tilewright.tir.errors import TargetError
from tilewright.tir.instructions.tensor_intrinsics import (
    TENSOR_INTRINSICS,
    tensor_intrinsic,
)
from tilewright.tir.target.target import Target, covers

FOUND = Limits(
    isa="avx2",
    fma=(FmaLimit(1, 100.0), FmaLimit(8, 720.0)),
    reads=tuple(
        ReadLimit(threads, size, speed * threads)
        for threads in (1, 8)
        for size, speed in ((1000, 90.0), (50_000, 40.0), (10**6, 10.0))
    ),
    region_seconds=1e-6,
    barrier_seconds=1e-7,
)


@pytest.mark.parametrize(("threads", "gflops"), [(1, 100.0), (2, 200.0), (6, 540.0), (8, 720.0)])
def test_a_thread_count_that_was_not_measured_is_in_proportion(threads: int, gflops: float) -> None:
    assert FOUND.gflops(threads) == pytest.approx(gflops)


@pytest.mark.parametrize(
    ("size", "speed"), [(10, 90.0), (1001, 40.0), (10**6, 10.0), (10**9, 10.0)]
)
def test_the_bandwidth_is_that_of_the_level_that_holds_the_bytes(size: int, speed: float) -> None:
    assert FOUND.gb_per_s(1, size) == speed
    assert FOUND.gb_per_s(7, size) == speed * 8


@pytest.mark.needs_cc
def test_limits_are_measured_once_per_machine(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = limits()
    rounds = {"probe": summarise([1e-3])}
    monkeypatch.setattr(
        "tilewright.runtime.measure.limits.compare", lambda calls, count, seconds: rounds
    )
    assert limits() == found
    assert found.isa == host().isa
    assert {limit.threads for limit in found.fma} == {1, default_threads()}
    assert found.gflops(1) > 1
    assert found.gb_per_s(1, 1000) > found.gb_per_s(1, 10**9) > 0.1
    assert 0 < found.barrier_seconds < 1e-3
    assert 0 < found.region_seconds < 1e-3
    assert limits(refresh=True).fma != found.fma


@pytest.mark.needs_cc
def test_a_limit_is_what_the_best_round_saw(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = {"probe": summarise([3e-3, 1e-3, 2e-3, 9e-3, 9e-3])}
    monkeypatch.setattr(
        "tilewright.runtime.measure.limits.compare", lambda calls, count, seconds: rounds
    )
    assert limits().gflops(1) == pytest.approx(fma_peak(1).rate(1e-3))


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_every_probe_runs_on_every_instruction_set_of_this_machine(isa: str) -> None:
    if isa not in host().isas:
        pytest.skip(f"this machine has no {isa}")
    target = Target.parse(f"c:{isa}")
    probes = (
        fma_peak(2, target),
        read_peak(2, 1 << 14, target),
        region_probe(2, target),
        barrier_probe(2, target),
    )
    assert [probe() for probe in probes] == [2, 2, 1, 2]
    assert all(probe.rate(1e-3) > 0 for probe in probes)


@pytest.mark.bench
@pytest.mark.needs_cc
def test_wider_vectors_have_a_higher_peak() -> None:
    isas = [isa for isa in ("scalar", "avx2") if isa in host().isas]
    probes = {isa: fma_peak(1, Target.parse(f"c:{isa}")) for isa in isas}
    found = compare(dict(probes), rounds=5)
    rates = [probes[isa].rate(found[isa].median) for isa in isas]
    assert rates == sorted(rates)


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("unit", "on"), [(unit, on) for unit, i in TENSOR_INTRINSICS.items() for on in i.targets]
)
def test_an_instruction_of_products_has_a_probe_of_its_own(unit: str, on: str) -> None:
    target = Target.parse(f"c:{on}")
    if not covers(host().instructions, target.instructions):
        pytest.skip(f"this machine has no {target.instructions}")
    probe, beside = dot_peak(unit, 1, target), fma_peak(1, target)
    assert probe() == 1
    assert probe.work == beside.work * tensor_intrinsic(unit).points


def test_a_probe_of_an_instruction_that_is_not_there_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        dot_peak("vpdpbusd", 1, Target.parse("c:avx2"))
    assert str(caught.value) == (
        "TargetError: dot_peak: target 'c:avx2' lacks 'vpdpbusd'; expected c:avx512+vnni "
        "or c:avx2+vnni. [probe-target]"
    )
