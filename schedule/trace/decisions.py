"""Decision sources: who answers when a rule samples. There is no other way for a schedule to
choose.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from ..errors import ScheduleError
from .trace import Trace


@dataclass(frozen=True, slots=True)
class Question:
    """What a rule leaves open.

    step: where in the trace the answer will stand. name: what is asked, as "tile of C"; empty where
    its author gave none. candidates: JSON values; default: the index of the one that the rule
    itself would take.
    """

    step: int
    name: str
    candidates: tuple[object, ...]
    default: int


class Decisions(Protocol):
    """Answers the questions of a rule."""

    def choose(self, question: Question) -> int:
        """The index of the candidate to take."""


@dataclass(frozen=True, slots=True)
class Default:
    """Takes the rule's own choice, which comes from its analytical model."""

    def choose(self, question: Question) -> int:
        """The rule's choice."""
        return question.default


class Random:
    """Takes each candidate with equal probability, from a seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, question: Question) -> int:
        """A random candidate."""
        return self._random.randrange(len(question.candidates))


@dataclass(frozen=True, slots=True)
class Replay:
    """Takes what a trace recorded."""

    trace: Trace

    def choose(self, question: Question) -> int:
        """The recorded candidate. Raises: ScheduleError when it is no longer among the
        candidates.
        """
        step, steps = question.step, self.trace.steps
        decision = steps[step].decision if step < len(steps) else None
        for position, candidate in enumerate(question.candidates):
            if candidate == decision:
                return position
        raise ScheduleError(
            f"replay: step {step} recorded the decision {decision!r}; expected one of "
            f"{list(question.candidates)!r}.",
            code="replay-decision",
            hints=("the trace belongs to another workload or another version of the rule.",),
        )
