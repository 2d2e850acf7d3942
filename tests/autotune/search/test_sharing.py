"""Functions share trials by what each of them promises, seen on a model of eight functions whose
times are formulas.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tilewright.autotune.search.expected_improvement import NOTHING_LEFT, ExpectedImprovement
from tilewright.autotune.search.search import Strategy
from tilewright.autotune.search.sharing import expected_saving
from tilewright.autotune.search.strategies import make_strategy
from tilewright.autotune.space.space import Candidate, TuningSpace
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target.target import Target

from ..samples import scaled


def test_a_saving_is_count_times_seconds_times_gain() -> None:
    assert expected_saving(3, 2.0, ExpectedImprovement(1.0, 0.1)) == 3 * 2.0 * 0.1
    assert expected_saving(3, 2.0, NOTHING_LEFT) == 0.0
    assert expected_saving(9, None, ExpectedImprovement(1.0, 0.1)) == 0.0


def five_questions(sch: Schedule) -> None:
    for name in ("rows", "columns", "depth", "order", "unroll"):
        sch.sample_categorical([1, 2, 4, 8, 16], 0, name=name)


TURNS, BATCH = 28, 4
SPACE = TuningSpace(scaled(64), Target.parse("c:avx512"), five_questions)


@dataclass
class Function:
    """A function of a model: how often it runs, the least that it takes, by how much answers
    matter.
    """

    count: int
    least: float
    slope: float
    wanted: tuple[int, ...]
    search: Strategy[Candidate]
    took: list[float | None] = field(default_factory=list)

    def seconds(self, candidate: Candidate) -> float:
        far = sum(abs(a - b) for a, b in zip(candidate.point, self.wanted, strict=True))
        return self.least * math.exp(self.slope * far)

    def step(self) -> None:
        for candidate in self.search.propose(BATCH):
            self.took.append(self.seconds(candidate))
            self.search.tell(candidate, self.took[-1])

    @property
    def best(self) -> float:
        return min((s for s in self.took if s is not None), default=math.inf)


def model(seed: int) -> list[Function]:
    """Two functions take most of the time, of one of them nothing can be gained."""
    source = random.Random(seed)
    shapes = [(20, 1.0, 0.1), (20, 1.0, 0.0), *[(2, 0.5, 0.1)] * 3, *[(1, 0.05, 0.2)] * 3]
    return [
        Function(
            count,
            least,
            slope,
            tuple(source.randrange(5) for _ in range(5)),
            make_strategy(SPACE, seed=source.randrange(1000)),
        )
        for count, least, slope in shapes
    ]


def tuned(functions: Sequence[Function], turns: int, choose: Callable[[int], Function]) -> float:
    """How much longer than need be the model runs after so many turns."""
    for turn in range(turns):
        choose(turn).step()
    least = sum(one.count * one.least for one in functions)
    return sum(one.count * one.best for one in functions) / least - 1.0


def promising(functions: Sequence[Function]) -> Function:
    def saving(one: Function) -> float:
        best = one.best if one.took else 1e9
        return expected_saving(one.count, best, one.search.expected_improvement())

    return max(functions, key=saving)


@pytest.mark.slow
def test_trials_by_promise_save_more_than_trials_in_turn() -> None:
    """A function of which nothing can be gained, and which counts as much, gets few of them."""
    shared, in_turn = 0.0, 0.0
    for seed in range(3):
        functions, others = model(seed), model(seed)
        shared += tuned(functions, TURNS, lambda turn, those=functions: promising(those))  # type: ignore[misc]
        in_turn += tuned(others, TURNS, lambda turn, those=others: those[turn % len(those)])  # type: ignore[misc]
        trials = [len(one.took) for one in functions]
        assert trials[0] > 1.5 * TURNS * BATCH / len(functions)
        assert trials[1] < 0.7 * trials[0]
        assert min(trials) == BATCH
    assert shared < 0.6 * in_turn
