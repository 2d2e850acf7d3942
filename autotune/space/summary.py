"""tw.tuning_space: the size of the space of a function's schedules, and its questions.

A space is an implicit tree: which questions follow depends on earlier choices. A small one is
enumerated. The size of a large one is estimated from random points: the product of the widths along
a random path has the size as its mean (Knuth, "Estimating the Efficiency of Backtrack Programs",
1975); its standard error is reported too.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from statistics import fmean, stdev

from ...driver.resolve_target import resolve_target
from ...schedule.errors import ScheduleError
from ...schedule.trace.decisions import Question
from ...tir.func import PrimFunc
from ...tir.target.target import Target
from ...tir.text.html import html_table
from .decisions import key_of
from .space import Candidate, RandomWalk, RuleFunction, TuningSpace, Walk

SAMPLES = 64  # random points, from which the size is estimated
MAX_ENUMERATED = 128  # estimated points of a space that is enumerated
_SHOWN = 44  # characters for the candidates of a question


@dataclass(frozen=True, slots=True)
class QuestionSummary:
    """A question of a space.

    name: or its index where it has none. question: as it was asked first, at the default point
    where that asks it. share: of the points visited, those that ask it.
    """

    name: str
    question: Question
    share: float

    def __str__(self) -> str:
        count = len(self.question.candidates)
        return f"{self.name}: {self.default}, of {count}: {self.candidates_text}"

    __repr__ = __str__

    @property
    def default(self) -> object:
        """The rule's own choice."""
        return self.question.candidates[self.question.default]

    @property
    def candidates_text(self) -> str:
        """The candidates, as many as fit."""
        listed = [str(candidate) for candidate in self.question.candidates]
        fitting = len(listed)
        while fitting > 1 and len(", ".join(listed[:fitting])) > _SHOWN:
            fitting -= 1
        return ", ".join([*listed[:fitting], *(["..."] if fitting < len(listed) else [])])


@dataclass(frozen=True, slots=True)
class SpaceSummary:
    """Size, questions and refusals of a space.

    size: points, those that are refused included; error: the standard error of the size, 0.0 where
    it was counted. seen: points visited; refused: the codes of the refusals among them, with their
    counts.
    """

    space: TuningSpace
    size: float
    error: float
    questions: tuple[QuestionSummary, ...]
    seen: int
    refused: tuple[tuple[str, int], ...]

    @property
    def is_counted(self) -> bool:
        """Whether every point was visited."""
        return self.seen == self.size and not self.error

    @property
    def legal(self) -> float:
        """The share of the points visited whose steps all apply."""
        return 1 - sum(count for _, count in self.refused) / self.seen

    def __str__(self) -> str:
        func, rule = self.space.func.name, self.space.name
        lines = [f"'{func}', rule {rule}, {self.space.target}: {self._size_text()}"]
        lines += [f"  refused, {count} of {self.seen}: [{code}]" for code, count in self.refused]
        wide = max((len(asked.name) for asked in self.questions), default=0)
        for asked in self.questions:
            often = "" if asked.share == 1 else f"; in {asked.share:.0%} of the points"
            count = len(asked.question.candidates)
            what = f"{asked.default}, of {count}: {asked.candidates_text}{often}"
            lines.append(f"  {asked.name:{wide}}  {what}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *refusals = str(self).splitlines()[: 1 + len(self.refused)]
        rows = [
            (one.name, str(one.default), one.candidates_text, f"{one.share:.0%}")
            for one in self.questions
        ]
        table = html_table(("question", "default", "candidates", "asked in"), rows)
        return "".join(f"<p>{escape(line)}</p>" for line in (head, *refusals)) + table

    def _size_text(self) -> str:
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
) -> SpaceSummary:
    """The search space of a function: its size, its questions with their candidates and defaults,
    and the share of its points that is legal.

    rule: a function of a Schedule that asks with sch.sample_*, a lambda too; by default the rule
    that fits. seed: of the random points.
    """
    return summarise_space(TuningSpace(func, resolve_target(target), rule), seed)


def summarise_space(space: TuningSpace, seed: int = 0) -> SpaceSummary:
    """Summarise a space: enumerate a small one, sample a large one."""
    first = Walk(())
    space.try_walk(first)
    source = random.Random(seed)
    sampled = [_sample(space, source) for _ in range(SAMPLES)]
    sizes = [float(math.prod(walk.widths)) for walk, _ in sampled]
    size, error = fmean(sizes), stdev(sizes) / math.sqrt(SAMPLES)
    if size <= MAX_ENUMERATED:
        every = list(islice(space.walks(), 2 * MAX_ENUMERATED + 1))
        if len(every) <= 2 * MAX_ENUMERATED:
            return _summary(space, first, every, float(len(every)), 0.0)
    return _summary(space, first, sampled, size, error)


def _sample(space: TuningSpace, source: random.Random) -> tuple[Walk, Candidate | ScheduleError]:
    walk = RandomWalk((), source=source)
    return walk, space.try_walk(walk)


def _summary(
    space: TuningSpace,
    first: Walk,
    seen: Sequence[tuple[Walk, Candidate | ScheduleError]],
    size: float,
    error: float,
) -> SpaceSummary:
    errors = (point for _, point in seen if isinstance(point, ScheduleError))
    refused = Counter(error.code for error in errors)
    return SpaceSummary(
        space,
        size,
        error,
        tuple(_question_summaries([first, *(walk for walk, _ in seen)])),
        len(seen),
        tuple(refused.most_common()),
    )


def _question_summaries(walks: Sequence[Walk]) -> Iterator[QuestionSummary]:
    """The questions of walks, each name once. Requires: the first walk is the default's."""
    known: dict[str, Question] = {}
    times: Counter[str] = Counter()
    for walk in walks:
        keys = [key_of(question, n) for n, question in enumerate(walk.questions)]
        for key, question in zip(keys, walk.questions, strict=True):
            known.setdefault(key, question)
        times.update(keys if walk is not walks[0] else ())
    for key, question in known.items():
        yield QuestionSummary(key, question, times[key] / max(1, len(walks) - 1))


def _rounded(size: float) -> int:
    """A number rounded to two significant digits."""
    return int(float(f"{size:.1e}"))
