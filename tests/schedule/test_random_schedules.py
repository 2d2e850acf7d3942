"""Random legal steps on random programs: the meaning is kept at every stage, the trace replays, the
proof holds; each primitive is met often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from tilewright.driver.fuzz.case import Case, draw
from tilewright.driver.fuzz.examine import UNDECIDED, examine
from tilewright.driver.fuzz.steps import STEPS, Tally, random_schedule, take_random
from tilewright.schedule.recorder import RECORDED
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.tensor_intrinsics import TENSOR_INTRINSICS, TensorIntrinsic

from .programs import bag, gathered, in_instructions, packed_dots

GATHERS: tuple[Callable[[Random], PrimFunc], ...] = (
    lambda rng: gathered(rng.randint(1, 5), rng.randint(1, 9), rng.randint(1, 7)),
    lambda rng: bag(rng.randint(1, 5), rng.randint(1, 9), rng.randint(1, 4)),
)
DECISIONS = {"sample_categorical"}
SELDOM = {"tensorize"}  # a random program is no instruction: drawn, refused, and met below


def run(first: int, cases: int, *, undecided: float = 0.0) -> None:
    """Examine cases; then each primitive, but for the seldom ones, has applied in 5 % of them, and
    half have 6 steps.

    undecided: the share of proofs that may be.
    """
    tally, present = Tally(Counter(), Counter()), Counter[str]()
    depths: list[int] = []
    proofs: Counter[str] = Counter()
    for seed in range(first, first + cases):
        before = Counter(tally.applied)
        drawn = draw(seed, tally)
        assert drawn.failed is None, f"case {seed}: {drawn.failed}"
        found = examine(drawn.case, ("avx512",))
        assert found.failure is None, f"case {seed}: {found.failure}\n{drawn.case.script('', '')}"
        proofs[found.proof] += 1
        present.update((tally.applied - before).keys())
        depths.append(len(drawn.case.trace.steps))
    print(f"\n{cases} random schedules: applied, refused, share of cases")
    for name in STEPS:
        share = 100 * present[name] / cases
        print(f"  {name:24}{tally.applied[name]:6}{tally.refused[name]:6}{share:6.1f} %")
    print(f"  proofs {dict(proofs)}")
    print(f"  depths {sorted(Counter(depths).items())}")
    assert set(proofs) <= {"proved", UNDECIDED}
    assert proofs[UNDECIDED] <= undecided * cases
    assert not [n for n in STEPS.keys() - SELDOM if present[n] < 0.05 * cases]
    assert sum(depth >= 6 for depth in depths) >= cases / 2


def test_random_legal_steps_keep_the_meaning() -> None:
    run(0, 200)


def test_random_legal_steps_keep_what_gathers_mean() -> None:
    tally = Tally(Counter(), Counter())
    for seed in range(50):
        rng = Random(seed)
        func = rng.choice(GATHERS)(rng)
        case = Case(func, random_schedule(rng, func, 10, tally).trace)
        found = examine(case, ("avx512",))
        assert found.failure is None, f"case {seed}: {found.failure}\n{case.script('', '')}"
        assert found.proof == "proved"
    assert tally.applied.total() > 100


@pytest.mark.parametrize("intrinsic", TENSOR_INTRINSICS.values(), ids=lambda x: x.name)
def test_random_legal_steps_keep_what_instructions_mean(intrinsic: TensorIntrinsic) -> None:
    tally, kept = Tally(Counter(), Counter()), 0
    for seed in range(50):
        rng = Random(seed)
        lanes = rng.choice((4, 8, 16))
        depth = intrinsic.points * rng.randint(1, 3)
        func = packed_dots(intrinsic, rng.randint(1, 4), lanes * rng.randint(1, 2), depth)
        sch = Schedule(func)
        in_instructions(sch, intrinsic, lanes)
        take_random(sch, rng, 8, tally)
        kept += "tensorized" in str(sch.func)
        case = Case(func, sch.trace)
        found = examine(case, (intrinsic.target,))
        assert found.failure is None, f"case {seed}: {found.failure}\n{case.script('', '')}"
        assert found.proof == "proved"
    assert tally.applied.total() > 100
    assert kept > 40


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 102_000, 500))
def test_many_random_legal_steps_keep_the_meaning(first: int) -> None:
    run(first, 500, undecided=0.005)


def test_every_primitive_is_drawn() -> None:
    assert set(STEPS) >= RECORDED - DECISIONS
