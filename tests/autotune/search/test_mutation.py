from __future__ import annotations

import random
from collections.abc import Mapping

from tilewright.autotune.model.boosted_trees import fit_trees
from tilewright.autotune.search.mutation import BATCH, Mutator, mutate
from tilewright.autotune.space.decisions import Decision
from tilewright.autotune.space.space import RandomWalk, TuningSpace, Walk
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target.target import Target

from ..samples import scaled

SIZES = [1, 2, 4, 8, 16]


def four_questions(sch: Schedule) -> None:
    for name in ("rows", "columns", "depth", "unroll"):
        sch.sample_categorical(SIZES, name=name)


SPACE = TuningSpace(scaled(64), Target.parse("c:avx512"), four_questions)


def walked(*point: int) -> Walk:
    return SPACE.candidate(point).walk


def values(decisions: Mapping[str, Decision]) -> tuple[object, ...]:
    return tuple(one.value for one in decisions.values())


def test_a_mutant_differs_from_its_parent_in_one_to_three_decisions() -> None:
    source, parent = random.Random(0), walked(2, 2, 2, 2)
    changed = [sum(value != 4 for value in values(mutate([parent], source))) for _ in range(100)]
    assert set(changed) == {1, 2, 3}


def test_a_mutant_of_two_parents_has_decisions_of_both() -> None:
    source, parents = random.Random(0), [walked(0, 0, 0, 0), walked(4, 4, 4, 4)]
    mixed = [values(mutate(parents, source)) for _ in range(100)]
    assert any(one.count(1) >= 1 and one.count(16) >= 2 for one in mixed)


def test_no_mutant_is_made_twice_and_none_that_exists() -> None:
    parent, mutator = walked(0, 0, 0, 0), Mutator(random.Random(0), fit_trees)
    mutator.exclude(parent)
    made = [values(mutator.mutant([parent])) for _ in range(50)]
    assert len(set(made)) == 50
    assert (1, 1, 1, 1) not in made


def test_of_a_batch_the_most_promising_mutant_is_made() -> None:
    """What counts are the rows; the fewer the better."""
    source, mutator = random.Random(0), Mutator(random.Random(1), fit_trees)
    known = [SPACE.candidate_at(RandomWalk((), source=source)).walk for _ in range(40)]
    mutator.learn(known, [1.0 + walk.choices[0] for walk in known])
    parent = walked(3, 3, 3, 3)
    rows = [mutator.mutant([parent])["rows"].value for _ in range(BATCH // 2)]
    assert all(isinstance(row, int) and row < 8 for row in rows)
