"""Decisions by the names of their questions, transferred from one schedule to another, whose rule
may ask other questions or offer other candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from ...schedule.trace.decisions import Question
from ...schedule.trace.trace import Trace
from .space import Walk

INCOMPARABLE = 1e9  # a distance beyond that of any two numbers of one question


@dataclass(frozen=True, slots=True)
class Decision:
    """The value chosen for a question. is_default: the rule's own choice, whatever it was. index:
    among the candidates.
    """

    value: object
    is_default: bool = False
    index: int = field(default=0, compare=False)


@dataclass
class GuidedWalk(Walk):
    """Takes the candidate nearest to a given decision; the rule's own where none is given."""

    decisions: Mapping[str, Decision] = field(default_factory=dict)

    def beyond(self, question: Question) -> int:
        decision = self.decisions.get(key_of(question, len(self.questions)))
        if decision is None or decision.is_default:
            return question.default
        return nearest(question.candidates, decision.value, question.default)


def key_of(question: Question, index: int) -> str:
    """The name of a question, or its index where it has none."""
    return question.name or f"question {index}"


def decisions_of(trace: Trace) -> dict[str, Decision]:
    """The decisions that a trace recorded."""
    decisions: dict[str, Decision] = {}
    sampled = [step for step in trace.steps if step.decision is not None]
    for number, step in enumerate(sampled):
        arguments = dict(step.arguments)
        listed, default = arguments["candidates"], arguments["default"]
        assert isinstance(listed, Sequence)
        assert isinstance(default, int)
        key = str(arguments.get("name") or f"question {number}")
        candidates = [_as_tuples(candidate) for candidate in listed]
        chosen = _as_tuples(step.decision)
        index = candidates.index(chosen) if chosen in candidates else 0
        decisions[key] = Decision(step.decision, chosen == candidates[default], index)
    return decisions


def decisions_in(walk: Walk) -> dict[str, Decision]:
    """The decisions that a walk made."""
    pairs = zip(walk.questions, walk.choices, strict=True)
    return {
        key_of(question, number): Decision(question.candidates[choice], index=choice)
        for number, (question, choice) in enumerate(pairs)
    }


def encode(decisions: Mapping[str, Decision]) -> dict[str, float]:
    """Decisions as numbers: one for each part of a tuple; the index of the candidate for a value
    that is no number.
    """
    encoded: dict[str, float] = {}
    for name, decision in decisions.items():
        value = decision.value
        if isinstance(value, tuple | list) and all(isinstance(x, int | float) for x in value):
            encoded |= {f"{name}[{n}]": float(part) for n, part in enumerate(value)}
        else:
            encoded[name] = float(value if isinstance(value, int | float) else decision.index)
    return encoded


def value_text(value: object) -> str:
    """A value as short text: 8, true, 4 x 16."""
    if isinstance(value, tuple | list):
        return " x ".join(map(value_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def nearest(candidates: Iterable[object], value: object, default: int) -> int:
    """The index of the candidate nearest to a value, by logarithms; the default where none can be
    compared with it.
    """
    distances = [distance(candidate, value) for candidate in candidates]
    best = min(range(len(distances)), key=distances.__getitem__)
    return best if distances[best] < INCOMPARABLE else default


def distance(one: object, other: object) -> float:
    """The distance of two values: 0 for equal ones, `INCOMPARABLE` where there is none."""
    one, other = _as_tuples(one), _as_tuples(other)
    if one == other and type(one) is type(other):
        return 0.0
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return min(INCOMPARABLE, sum(distance(a, b) for a, b in zip(one, other, strict=True)))
    if _is_count(one) and _is_count(other):
        return abs(math.log((1 + one) / (1 + other)))
    return INCOMPARABLE


def _is_count(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _as_tuples(value: object) -> object:
    """JSON lists as tuples."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value
