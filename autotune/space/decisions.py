"""Answers by the name of a question: what was chosen in one schedule, taken over into another one,
of which questions may be missing and candidates be others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from ...schedule.trace.decisions import Question
from ...schedule.trace.trace import Trace
from .space import Walk

FAR = 1e9  # farther apart than any two numbers of one question


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question was answered; is_default: as the rule would have, whatever that was. place:
    among the candidates.
    """

    value: object
    is_default: bool = False
    place: int = field(default=0, compare=False)


@dataclass
class Answering(Walk):
    """Decisions that take the candidate nearest to a known answer, else the rule's own."""

    answers: Mapping[str, Answer] = field(default_factory=dict)

    def beyond(self, question: Question) -> int:
        answer = self.answers.get(key_of(question, len(self.questions)))
        if answer is None or answer.is_default:
            return question.default
        return nearest(question.candidates, answer.value, question.default)


def key_of(question: Question, place: int) -> str:
    """The name of a question, or its place where it has none."""
    return question.name or f"question {place}"


def answers_of(trace: Trace) -> dict[str, Answer]:
    """What was chosen in a schedule."""
    found: dict[str, Answer] = {}
    asked = [step for step in trace.steps if step.decision is not None]
    for number, step in enumerate(asked):
        told = dict(step.arguments)
        listed, default = told["candidates"], told["default"]
        assert isinstance(listed, Sequence)
        assert isinstance(default, int)
        key = str(told.get("name") or f"question {number}")
        plain = [_plain(candidate) for candidate in listed]
        chosen = _plain(step.decision)
        place = plain.index(chosen) if chosen in plain else 0
        found[key] = Answer(step.decision, chosen == plain[default], place)
    return found


def chosen_in(walk: Walk) -> dict[str, Answer]:
    """What was chosen in a walk."""
    pairs = zip(walk.questions, walk.choices, strict=True)
    return {
        key_of(question, number): Answer(question.candidates[choice], place=choice)
        for number, (question, choice) in enumerate(pairs)
    }


def numbers(answers: Mapping[str, Answer]) -> dict[str, float]:
    """Answers as numbers: the parts of one that holds several each by itself; of one that is no
    number its place among the candidates.
    """
    found: dict[str, float] = {}
    for name, answer in answers.items():
        value = answer.value
        if isinstance(value, tuple | list) and all(isinstance(x, int | float) for x in value):
            found |= {f"{name}[{place}]": float(part) for place, part in enumerate(value)}
        else:
            found[name] = float(value if isinstance(value, int | float) else answer.place)
    return found


def value_text(value: object) -> str:
    """An answer as short as it can be said: 8, true, 4 x 16."""
    if isinstance(value, tuple | list):
        return " x ".join(map(value_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def nearest(candidates: Iterable[object], value: object, default: int) -> int:
    """The candidate that is equal to a value, else the one of the nearest numbers, else the
    default. Nearness is that of logarithms.
    """
    far = [distance(candidate, value) for candidate in candidates]
    best = min(range(len(far)), key=far.__getitem__)
    return best if far[best] < FAR else default


def distance(one: object, other: object) -> float:
    """How far apart two answers are: 0 for equal ones, `FAR` for those that cannot be compared."""
    one, other = _plain(one), _plain(other)
    if one == other and type(one) is type(other):
        return 0.0
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return min(FAR, sum(distance(a, b) for a, b in zip(one, other, strict=True)))
    if _is_count(one) and _is_count(other):
        return abs(math.log((1 + one) / (1 + other)))
    return FAR


def _is_count(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _plain(value: object) -> object:
    """JSON lists as tuples."""
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
