"""Random legal steps on small random programs: the meaning is kept, the trace replays, the proof
holds.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tilewright.codegen.lower.first_half import contraction, lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target import Target
from tilewright.tir.verify import Stage, verify

from .programs import assert_replays, assert_same_values
from .random_steps import GATHERS, STEPS, random_schedule

TARGET = Target.parse("c:avx512")


def check(sch: Schedule) -> None:
    """The schedule, its nest and its canonical form mean what the original does."""
    verify(sch.func, Stage.SCHEDULED)
    assert_same_values(sch.func, sch.original)
    assert_replays(sch)
    contracted = contraction(sch.func, TARGET)
    nest = lower_to_nest(contracted)
    verify(nest, Stage.NEST)
    assert_same_values(nest, sch.original, barriers=True)
    canonical = canonical_form(contracted)
    assert_same_values(canonical, sch.original)
    verdict = prove(nest, canonical)
    assert verdict.status == "proved", f"{verdict}\n{sch.trace}\n{sch}"


@pytest.mark.parametrize(("first", "cases", "steps"), [(0, 160, 8), (10_000, 40, 20)])
def test_random_legal_steps_keep_the_meaning(first: int, cases: int, steps: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + cases):
        sch = random_schedule(seed, steps, counts)
        try:
            check(sch)
        except Exception:
            print(f"seed {seed}, after\n{sch.trace}\n{sch}")
            raise
    print(f"\n{cases} random schedules of up to {steps} steps: applied, refused")
    for name in sorted({name for name, _ in STEPS}):
        print(f"  {name:24}{counts[f'{name} applied']:6}{counts[f'{name} refused']:6}")
    missing = [name for name, _ in STEPS if not counts[f"{name} applied"]]
    assert cases < 100 or not missing


def test_random_legal_steps_keep_what_gathers_mean() -> None:
    counts: Counter[str] = Counter()
    for seed in range(50):
        sch = random_schedule(seed, 10, counts, GATHERS)
        try:
            check(sch)
        except Exception:
            print(f"seed {seed}, after\n{sch.trace}\n{sch}")
            raise
    assert sum(n for name, n in counts.items() if name.endswith("applied")) > 100


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 102_000, 500))
def test_many_random_legal_steps_keep_the_meaning(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 500):
        check(random_schedule(seed, 12, counts))
