"""tw.tuning_space: how large the space of a function's schedules is, and what is asked in it.

A space is a tree that nobody has written down: which questions follow depends on what was answered.
A small one is walked whole. The size of a large one is estimated from random points: the product of
the widths on the way to a point has the size as its mean (Knuth, "Estimating the Efficiency of
Backtrack Programs", 1975), and its deviation says how far the estimate may be off.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, stdev

from ...driver.resolve_target import resolve_target
from ...schedule.errors import ScheduleError
from ...schedule.trace.decisions import Question
from ...tir.func import PrimFunc
from ...tir.target import Target
from .decisions import key_of
from .space import Candidate, Drawn, RuleFunction, TuningSpace, Walk

DRAWN = 64  # points, whose widths give the size
MOST_WALKED = 128  # points, about, of a space that is walked whole
_SHOWN = 44  # characters of the candidates of a question


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a space.

    name: or its place where it has none. question: as it was asked first, by default before any
    other point; share: of the points that were seen, how many ask it.
    """

    name: str
    question: Question
    share: float

    @property
    def default(self) -> object:
        """What the rule would take."""
        return self.question.candidates[self.question.default]

    @property
    def told(self) -> str:
        """The candidates, as many as find room."""
        listed = [str(candidate) for candidate in self.question.candidates]
        fitting = len(listed)
        while fitting > 1 and len(", ".join(listed[:fitting])) > _SHOWN:
            fitting -= 1
        return ", ".join([*listed[:fitting], *(["..."] if fitting < len(listed) else [])])


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of a space.

    size: points, those that are refused among them; error: the standard error of the size, 0.0 for
    one that was counted. seen: points that were looked at; refused: why some of them were refused,
    with the number of times. legal: the share of the points whose steps all apply.
    """

    space: TuningSpace
    size: float
    error: float
    questions: tuple[Asked, ...]
    seen: int
    refused: tuple[tuple[str, int], ...]

    @property
    def is_counted(self) -> bool:
        """Whether every point was looked at."""
        return self.seen == self.size and not self.error

    @property
    def legal(self) -> float:
        """The share of the points that were seen whose steps all apply."""
        return 1 - sum(count for _, count in self.refused) / self.seen

    def __str__(self) -> str:
        func, rule = self.space.func.name, self.space.name
        lines = [f"'{func}', rule {rule}, {self.space.target}: {self._told_size()}"]
        lines += [f"  refused, {count} of {self.seen}: [{code}]" for code, count in self.refused]
        wide = max((len(asked.name) for asked in self.questions), default=0)
        for asked in self.questions:
            often = "" if asked.share == 1 else f"; in {asked.share:.0%} of the points"
            count = len(asked.question.candidates)
            what = f"{asked.default}, of {count}: {asked.told}{often}"
            lines.append(f"  {asked.name:{wide}}  {what}")
        return "\n".join(lines)

    __repr__ = __str__

    def _told_size(self) -> str:
        legal = f"{self.legal:.0%} of {self.seen} legal"
        if self.is_counted:
            return f"{self.size:.0f} points, {legal}"
        error = f" +- {self.error / self.size:.0%}" if self.error else ""
        return f"about {_rounded(self.size):,}{error} points, {legal}"


def tuning_space(
    func: PrimFunc,
    target: Target | str | None = None,
    *,
    rule: RuleFunction | None = None,
    seed: int = 0,
) -> Survey:
    """What a tuner may choose for a function: how many schedules there are, what is asked, what the
    rule itself takes, and which share of the points is legal.

    rule: a function of a Schedule that asks with sch.sample_*, a lambda too; by default the rule
    that fits. seed: of the points that are looked at.
    """
    return survey(TuningSpace(func, resolve_target(target), rule), seed)


def survey(space: TuningSpace, seed: int = 0) -> Survey:
    """Look at a space: at all of it, where it is small, else at random points."""
    first = Walk(())
    space.reached(first)
    source = random.Random(seed)
    drawn = [_drawn(space, source) for _ in range(DRAWN)]
    sizes = [float(math.prod(walk.widths)) for walk, _ in drawn]
    size, error = fmean(sizes), stdev(sizes) / math.sqrt(DRAWN)
    if size <= MOST_WALKED:
        every = list(islice(space.every(), 2 * MOST_WALKED + 1))
        if len(every) <= 2 * MOST_WALKED:
            return _surveyed(space, first, every, float(len(every)), 0.0)
    return _surveyed(space, first, drawn, size, error)


def _drawn(space: TuningSpace, source: random.Random) -> tuple[Walk, Candidate | ScheduleError]:
    walk = Drawn((), source=source)
    return walk, space.reached(walk)


def _surveyed(
    space: TuningSpace,
    first: Walk,
    seen: Sequence[tuple[Walk, Candidate | ScheduleError]],
    size: float,
    error: float,
) -> Survey:
    errors = (found for _, found in seen if isinstance(found, ScheduleError))
    refused = Counter(error.code for error in errors)
    return Survey(
        space,
        size,
        error,
        tuple(_asked([first, *(walk for walk, _ in seen)])),
        len(seen),
        tuple(refused.most_common()),
    )


def _asked(walks: Sequence[Walk]) -> Iterator[Asked]:
    """The questions of walks, each by its name once; the first of them is that of the default."""
    known: dict[str, Question] = {}
    times: Counter[str] = Counter()
    for walk in walks:
        keys = [key_of(question, place) for place, question in enumerate(walk.questions)]
        for key, question in zip(keys, walk.questions, strict=True):
            known.setdefault(key, question)
        times.update(keys if walk is not walks[0] else ())
    for key, question in known.items():
        yield Asked(key, question, times[key] / max(1, len(walks) - 1))


def _rounded(size: float) -> int:
    """A number with two digits that count."""
    return int(float(f"{size:.1e}"))
