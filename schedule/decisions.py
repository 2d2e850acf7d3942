"""Decision sources: who answers when a rule samples. There is no other way for a schedule to
choose.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .errors import ScheduleError
from .trace import Trace


class Decisions(Protocol):
    """Answers the questions of a rule."""

    def choose(self, step: int, candidates: Sequence[object], default: int) -> int:
        """The index of the candidate to take at `step` of the trace; `default` is what the rule
        would take.
        """


@dataclass(frozen=True, slots=True)
class Default:
    """Takes the rule's own choice, which comes from its analytical model."""

    def choose(self, step: int, candidates: Sequence[object], default: int) -> int:
        """The rule's choice."""
        return default


class Random:
    """Takes each candidate with equal probability, from a seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, step: int, candidates: Sequence[object], default: int) -> int:
        """A random candidate."""
        return self._random.randrange(len(candidates))


@dataclass(frozen=True, slots=True)
class Replay:
    """Takes what a trace recorded."""

    trace: Trace

    def choose(self, step: int, candidates: Sequence[object], default: int) -> int:
        """The recorded candidate. Raises: ScheduleError when it is no longer among the
        candidates.
        """
        decision = self.trace.steps[step].decision if step < len(self.trace.steps) else None
        for position, candidate in enumerate(candidates):
            if candidate == decision:
                return position
        raise ScheduleError(
            f"replay: step {step} recorded the decision {decision!r}; expected one of "
            f"{list(candidates)!r}.",
            code="replay-decision",
            hints=("the trace belongs to another workload or another version of the rule.",),
        )
