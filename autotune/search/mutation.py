"""Mutation: new decisions made from those of the best schedules, by crossover and by change.

Making a schedule takes 10 to 50 ms, drawing its decisions takes next to nothing. So mutants are
drawn in batches, and of each batch only the one that a cheap model of the decisions ranks first is
scheduled.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from ..model.cost_model import Fit, Regressor, matrix
from ..space.decisions import Decision, decisions_in, encode, key_of
from ..space.space import Walk

BATCH = 24  # mutants of which one is scheduled
CROSSOVER = 0.3  # the share of mutants that have two parents
MUTATIONS = (1, 1, 1, 2, 2, 3)  # decisions that change in a mutant, with equal probability


class Mutator:
    """Draws mutants of the best schedules, none of them twice while there are others."""

    def __init__(self, source: random.Random, fit: Fit) -> None:
        self._random = source
        self._fit = fit
        self._seen = set[str]()
        self._names: tuple[str, ...] = ()
        self._model: Regressor | None = None

    def learn(self, walks: Sequence[Walk], seconds: Sequence[float]) -> None:
        """Fit the model of the decisions to schedules that were timed."""
        rows = [encode(decisions_in(walk)) for walk in walks]
        self._names = tuple(sorted({name for row in rows for name in row}))
        self._model = self._fit(matrix(rows, self._names), np.log(np.array(seconds)))

    def exclude(self, walk: Walk) -> None:
        """Do not draw a schedule that exists."""
        self._seen.add(_text(decisions_in(walk)))

    def mutant(self, parents: Sequence[Walk]) -> dict[str, Decision]:
        """The decisions of the most promising mutant of a batch; parents in order, the best
        first.
        """
        batch = [mutate(parents, self._random) for _ in range(BATCH)]
        new = [mutant for mutant in batch if _text(mutant) not in self._seen] or batch[:1]
        rows = matrix([encode(mutant) for mutant in new], self._names)
        best = new[int(np.argmin(self._model.predict(rows)))] if self._model else new[0]
        self._seen.add(_text(best))
        return best


def _text(decisions: dict[str, Decision]) -> str:
    return repr(sorted((name, decision.value) for name, decision in decisions.items()))


def mutate(parents: Sequence[Walk], source: random.Random) -> dict[str, Decision]:
    """The decisions of a mutant; parents in order, better ones are drawn more often."""
    one, other = _parent(parents, source), _parent(parents, source)
    decisions = decisions_in(one)
    if one is not other and source.random() < CROSSOVER:
        taken = decisions_in(other).items()
        decisions |= {key: decision for key, decision in taken if source.random() < 0.5}
    for _ in range(source.choice(MUTATIONS)):
        _change(one, decisions, source)
    return decisions


def _parent(parents: Sequence[Walk], source: random.Random) -> Walk:
    return parents[int(len(parents) * source.random() ** 2)]


def _change(walk: Walk, decisions: dict[str, Decision], source: random.Random) -> None:
    """Change the decision of one question: to a neighbouring candidate, or to any other one."""
    open_ = [n for n, question in enumerate(walk.questions) if len(question.candidates) > 1]
    if not open_:
        return
    number = source.choice(open_)
    question, choice = walk.questions[number], walk.choices[number]
    neighbours = [n for n in (choice - 1, choice + 1) if 0 <= n < len(question.candidates)]
    others = [n for n in range(len(question.candidates)) if n != choice]
    taken = source.choice(neighbours if source.random() < 0.5 else others)
    decisions[key_of(question, number)] = Decision(question.candidates[taken], index=taken)
