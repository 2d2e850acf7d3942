from __future__ import annotations

import random

from tilewright.autotune.search import Search
from tilewright.autotune.space import TuningSpace
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target import Target

from .samples import scaled

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
    drawn = SPACE.drawn(random.Random(3))
    assert SPACE.candidate(drawn.point).schedule.trace == drawn.schedule.trace


def test_a_search_proposes_the_default_first_and_each_point_once() -> None:
    search, points = Search(SPACE), []
    while (candidate := search.propose()) is not None:
        points.append(candidate.point)
        search.tell(candidate.point, float(len(points)))
    assert points[0] == (1,)
    assert sorted(points) == [(0,), (1,), (2, 0), (2, 1), (3, 0), (3, 1)]


def test_the_best_are_those_that_took_least_and_failures_are_none() -> None:
    search = Search(SPACE)
    for point, seconds in (((0,), 3.0), ((1,), 1.0), ((2, 0), None), ((3, 1), 2.0)):
        search.tell(point, seconds)
    assert [candidate.point for candidate in search.best(2)] == [(1,), (3, 1)]


def test_equal_seeds_and_answers_give_equal_points() -> None:
    def walk(seed: int) -> list[tuple[int, ...]]:
        search, points = Search(SPACE, seed), []
        while (candidate := search.propose()) is not None:
            points.append(candidate.point)
            search.tell(candidate.point, sum(candidate.point) + 1.0)
        return points

    assert walk(5) == walk(5)
