from __future__ import annotations

import random
from collections.abc import Mapping

from tilewright.autotune.model.boosted_trees import fit_trees
from tilewright.autotune.search.mutation import LITTER, Breeder, child_of
from tilewright.autotune.space.decisions import Answer
from tilewright.autotune.space.space import Drawn, TuningSpace, Walk
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target import Target

from ..samples import scaled

SIZES = [1, 2, 4, 8, 16]


def four_questions(sch: Schedule) -> None:
    for name in ("rows", "columns", "depth", "unroll"):
        sch.sample_categorical(SIZES, name=name)


SPACE = TuningSpace(scaled(64), Target.parse("c:avx512"), four_questions)


def walked(*point: int) -> Walk:
    return SPACE.candidate(point).walk


def values(answers: Mapping[str, Answer]) -> tuple[object, ...]:
    return tuple(answer.value for answer in answers.values())


def test_a_child_differs_from_its_parent_in_one_to_three_answers() -> None:
    source, parent = random.Random(0), walked(2, 2, 2, 2)
    changed = [sum(value != 4 for value in values(child_of([parent], source))) for _ in range(100)]
    assert set(changed) == {1, 2, 3}


def test_a_child_of_two_has_answers_of_both() -> None:
    source, parents = random.Random(0), [walked(0, 0, 0, 0), walked(4, 4, 4, 4)]
    mixed = [values(child_of(parents, source)) for _ in range(100)]
    assert any(one.count(1) >= 1 and one.count(16) >= 2 for one in mixed)


def test_no_child_is_made_twice_and_none_that_exists() -> None:
    parent, breeder = walked(0, 0, 0, 0), Breeder(random.Random(0), fit_trees)
    breeder.know(parent)
    made = [values(breeder.child([parent])) for _ in range(50)]
    assert len(set(made)) == 50
    assert (1, 1, 1, 1) not in made


def test_of_a_litter_the_most_promising_is_made() -> None:
    """What counts are the rows; the fewer the better."""
    source, breeder = random.Random(0), Breeder(random.Random(1), fit_trees)
    known = [SPACE.walked(Drawn((), source=source)).walk for _ in range(40)]
    breeder.learn(known, [1.0 + walk.choices[0] for walk in known])
    parent = walked(3, 3, 3, 3)
    rows = [breeder.child([parent])["rows"].value for _ in range(LITTER // 2)]
    assert all(isinstance(row, int) and row < 8 for row in rows)
