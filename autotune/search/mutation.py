"""Children of schedules: the answers of one, mixed with those of another or changed.

Making a schedule takes 10 to 50 ms, making up its answers takes none. So of each litter that one
alone is made into a schedule which a first model, of the answers alone, expects to be fastest.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from ..model.cost_model import Fit, Regressor, matrix
from ..space.decisions import Answer, chosen_in, key_of, numbers
from ..space.space import Walk

LITTER = 24  # children of which one is made
MIXED = 0.3  # the share of children that have two parents
CHANGES = (1, 1, 1, 2, 2, 3)  # answers that are changed, with equal probability


class Breeder:
    """Makes up children of the best schedules, none of them twice where there are others."""

    def __init__(self, source: random.Random, fit: Fit) -> None:
        self._random = source
        self._fit = fit
        self._bred = set[str]()
        self._names: tuple[str, ...] = ()
        self._model: Regressor | None = None

    def learn(self, walks: Sequence[Walk], seconds: Sequence[float]) -> None:
        """What schedules took."""
        told = [numbers(chosen_in(walk)) for walk in walks]
        self._names = tuple(sorted({name for one in told for name in one}))
        self._model = self._fit(matrix(told, self._names), np.log(np.array(seconds)))

    def know(self, walk: Walk) -> None:
        """A schedule that exists needs not be made again."""
        self._bred.add(_text(chosen_in(walk)))

    def child(self, parents: Sequence[Walk]) -> dict[str, Answer]:
        """The answers of a child that promises most; parents stand in order, the best first."""
        litter = [child_of(parents, self._random) for _ in range(LITTER)]
        new = [child for child in litter if _text(child) not in self._bred] or litter[:1]
        told = matrix([numbers(child) for child in new], self._names)
        found = new[int(np.argmin(self._model.predict(told)))] if self._model else new[0]
        self._bred.add(_text(found))
        return found


def _text(answers: dict[str, Answer]) -> str:
    return repr(sorted((name, answer.value) for name, answer in answers.items()))


def child_of(parents: Sequence[Walk], source: random.Random) -> dict[str, Answer]:
    """The answers of a child; parents stand in order, the better the more often taken."""
    one, other = _parent(parents, source), _parent(parents, source)
    answers = chosen_in(one)
    if one is not other and source.random() < MIXED:
        taken = chosen_in(other).items()
        answers |= {key: answer for key, answer in taken if source.random() < 0.5}
    for _ in range(source.choice(CHANGES)):
        _change(one, answers, source)
    return answers


def _parent(parents: Sequence[Walk], source: random.Random) -> Walk:
    return parents[int(len(parents) * source.random() ** 2)]


def _change(walk: Walk, answers: dict[str, Answer], source: random.Random) -> None:
    """Answer one question of a walk in another way: beside the answer, or anyhow."""
    wide = [n for n, question in enumerate(walk.questions) if len(question.candidates) > 1]
    if not wide:
        return
    number = source.choice(wide)
    question, choice = walk.questions[number], walk.choices[number]
    beside = [n for n in (choice - 1, choice + 1) if 0 <= n < len(question.candidates)]
    others = [n for n in range(len(question.candidates)) if n != choice]
    taken = source.choice(beside if source.random() < 0.5 else others)
    answers[key_of(question, number)] = Answer(question.candidates[taken], place=taken)
