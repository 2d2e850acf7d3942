"""Timing every point of a space, once (benchmarks.search --record).

Two processes write and compile; then one worker checks and times, in groups that take turns, each
point in several groups of other neighbours. Kept is the least of its samples: other work on a
machine only ever makes a call slower. Points of equal code are timed once.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter

from tilewright.autotune.log.record import Workload
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.measure.machine import Machine
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.model.features import features
from tilewright.autotune.space.space import Candidate, Point, TuningSpace, Walk
from tilewright.cli.conditions import conditions
from tilewright.codegen.artifact import Artifact
from tilewright.runtime.machine.host import host_target
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.trace.decisions import Question
from tilewright.tir.errors import TilewrightError

from .recorded_space import Asked, RecordedSpace, Timed
from .spaces import SPACES

PROCESSES = 2
GROUP = 16  # points that take turns
ROUNDS = 4
PASSES = 3  # of all points, in other groups


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
            yield space.candidate_at(walk)
        open_ = [n for n, count in enumerate(walk.counts) if walk.places[n] + 1 < count]
        start = (*walk.places[: open_[-1]], walk.places[open_[-1]] + 1) if open_ else None


def record(name: str) -> RecordedSpace:
    """Walk, build and time a space."""
    space, began = _space(name), perf_counter()
    found = list(points_of(space, SPACES[name].only))
    _tell(f"{name}: {len(found)} legal points in {perf_counter() - began:.0f} s")
    with ProcessPoolExecutor(PROCESSES) as pool:
        jobs = [(name, candidate.point) for candidate in found]
        built = list(pool.map(_built, jobs, chunksize=8))
    compiled = [one for one in built if not isinstance(one, str)]
    codes = {artifact.source for artifact in compiled}
    _tell(f"{len(codes)} codes in {perf_counter() - began:.0f} s")
    seconds = _all_timed(space, compiled)
    _tell(f"timed in {perf_counter() - began:.0f} s")
    asked: dict[Asked, int] = {}
    timed = []
    for candidate, one in zip(found, built, strict=True):
        took = one if isinstance(one, str) else seconds[one.source]
        path = [
            (asked.setdefault(Asked.of(question), len(asked)), choice)
            for question, choice in zip(
                candidate.walk.questions, candidate.walk.choices, strict=True
            )
        ]
        told = features(candidate.schedule, space.target)
        failed = isinstance(took, str)
        timed.append(Timed(tuple(path), None if failed else took, took if failed else "ok", told))
    about = {
        "func": str(space.func),
        "rule": space.name,
        "only": {key: list(answers) for key, answers in SPACES[name].only.items()},
        "threads": space.target.threads,
        **conditions(()),
    }
    return RecordedSpace(about, tuple(asked), tuple(timed))


def _space(name: str) -> TuningSpace:
    """One thread: two would share the machine with whatever else runs there."""
    recipe = SPACES[name]
    return TuningSpace(recipe.func(), replace(host_target(), threads=1), recipe.rule)


def _built(job: tuple[str, Point]) -> Artifact | str:
    """The code of a point, compiled into the cache; or the error that it ends with."""
    name, point = job
    space = _space(name)
    try:
        artifact = write(space.candidate(point), space.target).artifact
        compile_shared(artifact.source, artifact.target, name=artifact.name)
    except TilewrightError as error:
        return error.code
    return artifact


def _all_timed(space: TuningSpace, built: Sequence[Artifact]) -> dict[str, float | str]:
    """What each code takes, or what is wrong with it."""
    left = list({artifact.source: artifact for artifact in built}.values())
    subject = Subject(space.func, space.target, space.name, Workload.of(space.func).key)
    first, found = write(space.candidate(), space.target), dict[str, float | str]()
    with Machine(tell=_tell) as machine:
        for turn in range(PASSES):
            random.Random(turn).shuffle(left)
            for start in range(0, len(left), GROUP):
                group = left[start : start + GROUP]
                written = [replace(first, artifact=artifact) for artifact in group]
                job = subject.job(written, ROUNDS, bar=None)
                for artifact, result in zip(group, machine.measure(job).results, strict=True):
                    before = found.get(artifact.source, float("inf"))
                    if result.samples and not isinstance(before, str):
                        found[artifact.source] = min(before, *result.samples)
                    elif not result.samples:
                        found[artifact.source] = result.outcome
    return found


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
