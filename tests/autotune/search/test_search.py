from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable

import pytest

from tilewright.autotune.search.search import Strategy
from tilewright.autotune.search.strategies import make_strategy
from tilewright.autotune.space.space import Candidate, Point, TuningSpace, Walk
from tilewright.driver.tuning.errors import TuneError
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target.target import Target

from ..samples import scaled

TARGET = Target.parse("c:avx512")
FACTORS = [2, 4, 8, 16, 3]


def split_twice(sch: Schedule) -> None:
    """The second question is asked only behind some answers to the first; 3 is refused."""
    (loop,) = sch.loops("y")
    factor = int(sch.sample_categorical(FACTORS, 1))
    outer, _ = sch.split(loop, (None, factor), tail="exact" if factor == 3 else "guard")
    if factor > 4:
        sch.split(outer, (None, int(sch.sample_categorical([1, 2]))))


SPACE = TuningSpace(scaled(64), TARGET, split_twice)


def test_a_space_without_a_rule_is_that_of_the_rule_that_fits() -> None:
    assert TuningSpace(scaled(), TARGET).name == "elementwise"
    assert SPACE.name == "split_twice"


def test_every_point_is_walked_once_in_order() -> None:
    found = list(SPACE.points())
    legal = [one.point for one in found if not isinstance(one, ScheduleError)]
    assert legal == [(0,), (1,), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert len(found) == 7


def test_the_point_without_choices_is_the_default() -> None:
    candidate = SPACE.candidate()
    assert candidate.point == (1,)
    assert candidate.is_default
    assert not SPACE.candidate((2, 1)).is_default


def test_a_point_gives_the_same_schedule_again() -> None:
    drawn = SPACE.draw(random.Random(3))
    assert SPACE.candidate(drawn.point).schedule.trace == drawn.schedule.trace


Seconds = Callable[[Candidate], float | None]


def walk_of(search: Strategy[Candidate], seconds: Seconds, most: int = 10_000) -> list[Point]:
    """The points that a search tries, at most so many, told what they take."""
    points: list[Point] = []
    while len(points) < most and (proposed := search.propose(min(4, most - len(points)))):
        for candidate in proposed:
            points.append(candidate.point)
            search.tell(candidate, seconds(candidate))
    return points


@pytest.mark.parametrize("name", ["evolutionary", "random"])
def test_a_search_proposes_the_default_first_and_each_point_once(name: str) -> None:
    search = make_strategy(SPACE, name)
    points = walk_of(search, lambda candidate: 1.0 + sum(candidate.point))
    assert points[0] == (1,)
    assert sorted(points) == [(0,), (1,), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert search.expected_improvement().is_negligible
    assert str(search.expected_improvement()) == "the space is exhausted"


def test_the_best_are_those_that_took_least_and_failures_are_none() -> None:
    search = make_strategy(SPACE)
    for point, seconds in (((0,), 3.0), ((1,), 1.0), ((2, 0), None), ((3, 1), 2.0)):
        search.tell(SPACE.candidate(point), seconds)
    assert [candidate.point for candidate in search.fastest(2)] == [(1,), (3, 1)]


def test_early_candidates_are_tried_behind_the_default() -> None:
    search = make_strategy(SPACE, early=(Walk((2, 1)), Walk((4,)), Walk((3, 0))))
    assert [candidate.point for candidate in search.propose(3)] == [(1,), (2, 1), (3, 0)]


PARTS = ["rows", "columns", "depth", "order", "unroll", "ahead"]


def six_questions(sch: Schedule) -> None:
    for name in PARTS:
        sch.sample_categorical([1, 2, 4, 8, 16, 32], 0, name=name)


WIDE = TuningSpace(scaled(64), TARGET, six_questions)  # 46,656 points


def landscape(candidate: Candidate) -> float:
    """Two answers must fit each other, three have a best, one means nothing."""
    rows, columns, depth, order, unroll, _ = candidate.point
    fit = abs(rows + columns - 6) + 0.5 * abs(rows - columns)
    return 1e-3 * math.exp(0.2 * fit + 0.15 * abs(depth - 3) + 0.1 * order + 0.1 * abs(unroll - 2))


def tried(name: str, seed: int, trials: int) -> float:
    """How much more than the best the best of some trials takes."""
    search = make_strategy(WIDE, name, seed=seed)
    walk_of(search, landscape, trials)
    return landscape(search.fastest(1)[0]) / 1e-3 - 1.0


@pytest.mark.slow
def test_an_evolution_finds_what_a_random_search_misses() -> None:
    evolved = [tried("evolutionary", seed, 48) for seed in range(5)]
    drawn = [tried("random", seed, 48) for seed in range(5)]
    assert sum(evolved) < 0.75 * sum(drawn)
    assert sorted(evolved)[2] < 0.6 * sorted(drawn)[2]


def test_a_search_is_over_when_nothing_better_is_likely() -> None:
    """Half of all points fail or take equally long; once the best was found, trials are in vain."""

    def flat(candidate: Candidate) -> float | None:
        rows, depth = candidate.point[0], candidate.point[2]
        return None if depth == 5 else 2.0 if rows else 1.0

    search = make_strategy(WIDE)
    walk_of(search, flat, 12)
    assert not search.expected_improvement().is_negligible
    walk_of(search, flat, 100)
    assert search.expected_improvement().is_negligible
    assert str(search.expected_improvement()).startswith(
        "an improvement of 1% is unlikely: its chance within the next 16 trials is "
    )


def test_a_search_that_goes_on_finding_is_not_over() -> None:
    search = make_strategy(WIDE)
    for trial in range(20):
        for candidate in search.propose(4):
            search.tell(candidate, 1.0 - 0.02 * trial)
        assert not search.expected_improvement().is_negligible


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["evolutionary", "random"])
def test_equal_seeds_and_answers_give_equal_points(name: str) -> None:
    one, other = (walk_of(make_strategy(WIDE, name, seed=5), landscape, 30) for _ in range(2))
    assert one == other
    assert one != walk_of(make_strategy(WIDE, name, seed=6), landscape, 30)


def test_a_strategy_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(TuneError) as refused:
        make_strategy(WIDE, "evolutionary-xgboost")
    assert str(refused.value) == (
        "TuneError: tune: the strategy 'evolutionary-xgboost' needs the package xgboost, which is "
        "not there. [tune-xgboost]\n"
        "  Hint: pip install tilewright[cost], or take 'evolutionary', whose trees are ours."
    )


def test_strategies_are_known_by_name() -> None:
    with pytest.raises(TuneError) as refused:
        make_strategy(SPACE, "evolution")
    assert str(refused.value) == (
        "TuneError: tune: there is no strategy 'evolution'; expected 'evolutionary', "
        "'evolutionary-xgboost', 'random'. [tune-strategy]"
    )


def test_the_peer_of_the_trees_ranks_as_they_do() -> None:
    pytest.importorskip("xgboost", reason="the extra 'cost' is not installed")
    search, drawn = (make_strategy(WIDE, n, seed=1) for n in ("evolutionary-xgboost", "random"))
    walk_of(search, landscape, 36)
    walk_of(drawn, landscape, 36)
    assert landscape(search.fastest(1)[0]) < 0.95 * landscape(drawn.fastest(1)[0])
