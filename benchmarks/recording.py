"""Timing every point of a space, once (benchmarks.search --record).

Both cores build; then one worker checks and times, in groups that take turns, each with the rule's
own choice among it: what is kept is the ratio to that one's time in the same rounds, the lesser of
two groups of other neighbours, times its median. Points with equal code are timed once.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median
from time import perf_counter

from tilewright.autotune.building import Written, write
from tilewright.autotune.features import features
from tilewright.autotune.machine import Machine
from tilewright.autotune.measurement import Subject
from tilewright.autotune.record import Workload
from tilewright.autotune.space import Candidate, Point, RuleFunction, TuningSpace, Walk
from tilewright.cli.conditions import conditions
from tilewright.runtime.compile import compile_shared
from tilewright.runtime.host import host_target
from tilewright.schedule.decisions import Question
from tilewright.schedule.errors import ScheduleError
from tilewright.tir.errors import TilewrightError
from tilewright.tir.func import PrimFunc

from .recorded_space import Asked, RecordedSpace, Timed
from .spaces import SPACES

PROCESSES = 2
GROUP = 24  # points that take turns
ROUNDS = 3
PASSES = 2  # of all points, in other groups


@dataclass
class _Few(Walk):
    """Decisions that take the listed answers of a question alone, by their places in that list."""

    only: Mapping[str, Sequence[object]] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def choose(self, question: Question) -> int:
        number = len(self.places)
        wanted = self.only.get(question.name, question.candidates)
        listed = [
            n
            for n, candidate in enumerate(question.candidates)
            if candidate in wanted or n == question.default
        ]
        self.places.append(self.start[number] if number < len(self.start) else 0)
        self.counts.append(len(listed))
        self.choices.append(listed[self.places[-1]])
        self.questions.append(question)
        return self.choices[-1]


def points_of(space: TuningSpace, only: Mapping[str, Sequence[object]]) -> Iterator[Candidate]:
    """Every legal point with the listed answers, in order. The rule's own answers always count."""
    start: Point | None = ()
    while start is not None:
        walk = _Few(start, only=only)
        with suppress(ScheduleError):
            yield space.walked(walk)
        open_ = [n for n, count in enumerate(walk.counts) if walk.places[n] + 1 < count]
        start = (*walk.places[: open_[-1]], walk.places[open_[-1]] + 1) if open_ else None


def record(name: str) -> RecordedSpace:
    """Walk, build and time a space."""
    recipe = SPACES[name]
    func, target = recipe.func(), replace(host_target(), threads=1)
    space, began = TuningSpace(func, target, recipe.rule), perf_counter()
    found = list(points_of(space, recipe.only))
    _tell(f"{name}: {len(found)} legal points in {perf_counter() - began:.0f} s")
    default = space.candidate()
    built = _all_built(space, [candidate.point for candidate in found])
    _tell(f"built in {perf_counter() - began:.0f} s")
    seconds = _all_timed(space, default, [one for one in built if isinstance(one, Written)])
    _tell(f"timed in {perf_counter() - began:.0f} s")
    questions: dict[tuple[str, str, int], int] = {}
    asked: list[Asked] = []
    timed = []
    for candidate, one in zip(found, built, strict=True):
        path = []
        for question, choice in zip(candidate.walk.questions, candidate.walk.choices, strict=True):
            key = (question.name, repr(question.candidates), question.default)
            if key not in questions:
                questions[key] = len(asked)
                asked.append(Asked(question.name, question.candidates, question.default))
            path.append((questions[key], choice))
        took = seconds.get(one.source) if isinstance(one, Written) else None
        outcome = one if isinstance(one, str) else "ok" if took is not None else "wrong"
        told = features(candidate.schedule, target)
        timed.append(Timed(tuple(path), took, outcome, told))
    about = {
        "func": str(func),
        "rule": space.name,
        "only": {key: list(answers) for key, answers in recipe.only.items()},
        "threads": 1,
        **conditions(()),
    }
    return RecordedSpace(about, tuple(asked), tuple(timed))


def _built_point(job: tuple[Callable[[], PrimFunc], RuleFunction | None, Point]) -> Written | str:
    make, rule, point = job
    space = TuningSpace(make(), replace(host_target(), threads=1), rule)
    try:
        written = write(space.candidate(point), space.target)
        artifact = written.artifact
        compile_shared(artifact.source, artifact.target, name=artifact.name)  # into the cache
        return written
    except TilewrightError as error:
        return error.code


def _all_built(space: TuningSpace, points: Sequence[Point]) -> list[Written | str]:
    recipe = next(one for one in SPACES.values() if str(one.func()) == str(space.func))
    jobs = [(recipe.func, recipe.rule, point) for point in points]
    with ProcessPoolExecutor(PROCESSES) as pool:
        return list(pool.map(_built_point, jobs, chunksize=8))


def _all_timed(
    space: TuningSpace, default: Candidate, built: Sequence[Written]
) -> dict[str, float | None]:
    """What each code takes; nothing for what is wrong."""
    distinct = list({one.source: one for one in built}.values())
    first = write(default, space.target)
    ratios: dict[str, list[float]] = {}
    own: list[float] = []
    with Machine() as machine:
        subject = Subject(space.func, space.target, space.name, Workload.of(space.func).key)
        for turn in range(PASSES):
            random.Random(turn).shuffle(distinct)
            for start in range(0, len(distinct), GROUP):
                group = [first, *distinct[start : start + GROUP]]
                for trial, ratio, seconds in _group(machine, subject, group):
                    own.append(seconds)
                    ratios.setdefault(trial, []).append(ratio)
    return {source: min(found) * median(own) for source, found in ratios.items()}


def _group(
    machine: Machine, subject: Subject, group: Sequence[Written]
) -> Iterator[tuple[str, float, float]]:
    """The ratio of each point to the default in the same rounds, and the default's time."""
    results = machine.measure(subject.job(group, ROUNDS, bar=None)).results
    if len(group) > 2 and any(result.outcome == "crashed" for result in results):
        for one in group[1:]:  # they did not take turns
            yield from _group(machine, subject, [group[0], one])
        return
    first = results[0].samples
    for one, result in zip(group[1:], results[1:], strict=True):
        if first and result.samples:
            pairs = zip(result.samples, first, strict=True)
            yield one.source, median(mine / own for mine, own in pairs), median(first)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
