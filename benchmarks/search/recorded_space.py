"""A space of which every point was timed once: strategies search it again and again without a
machine that measures.

A file under results/spaces/ holds the questions, the points as paths through them, what each took,
and the features that a cost model is told, so that a table stays what it is when rules change.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.autotune.model.features import Features
from tilewright.autotune.space.space import Point, Walk
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.trace.decisions import Question

FOLDER = Path(__file__).parents[1] / "results" / "spaces"
VERSION = 1


@dataclass(frozen=True)
class Timed:
    """A point: its path, what it took (None: it failed, and how), what a cost model is told."""

    path: tuple[tuple[int, int], ...]  # number of a question, choice
    seconds: float | None
    outcome: str
    told: Features

    @property
    def point(self) -> Point:
        """What was chosen."""
        return tuple(choice for _, choice in self.path)


@dataclass(frozen=True)
class Asked:
    """A question of the space, as often as it is asked."""

    name: str
    candidates: tuple[object, ...]
    default: int

    @staticmethod
    def of(question: Question) -> Asked:
        """A question without its place."""
        return Asked(question.name, _plain_tuple(question.candidates), question.default)


@dataclass(frozen=True)
class Found:
    """A timed point that a walk led to."""

    timed: Timed
    walk: Walk

    @property
    def point(self) -> Point:
        """What was chosen."""
        return self.timed.point


@dataclass(frozen=True)
class RecordedSpace:
    """The points of a space. about: what it is of, where and how it was timed.

    defaults: for the points so far, the choice that stands for the rule's own; the recorded one
    where there is none.
    """

    about: Mapping[str, Any]
    questions: tuple[Asked, ...]
    timed: tuple[Timed, ...]
    defaults: Mapping[Point, int] = field(default_factory=dict)
    _below: dict[Point, list[Timed]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self._below:
            for one in self.timed:
                for length in range(len(one.point) + 1):
                    self._below.setdefault(one.point[:length], []).append(one)

    def candidate_at(self, walk: Walk) -> Found:
        """The point that decisions lead to. Raises: ScheduleError where none was recorded."""
        point: Point = ()
        while True:
            below = self._below.get(point)
            if below is None:
                raise ScheduleError(f"there is no point {point}", code="no-point")
            if len(below[0].path) == len(point):
                return Found(below[0], walk)
            asked = self.questions[below[0].path[len(point)][0]]
            default = self.defaults.get(point, asked.default)
            question = Question(len(point), asked.name, asked.candidates, default)
            point = (*point, walk.choose(question))

    def points(self) -> Iterator[Found | ScheduleError]:
        """Every point in order."""
        for one in self.timed:
            yield self.candidate_at(Walk(one.point))

    def from_random_default(self, seed: int) -> RecordedSpace:
        """The space as it would be if the rule knew nothing: its own choices are drawn, so that
        they lead to a point that runs.
        """
        source = random.Random(seed)
        start = source.choice([one for one in self.timed if one.seconds is not None]).point
        drawn = {point: below for point, below in self._below.items() if point != below[0].point}
        defaults = {point: source.choice(below).point[len(point)] for point, below in drawn.items()}
        defaults |= {start[:length]: choice for length, choice in enumerate(start)}
        return RecordedSpace(self.about, self.questions, self.timed, defaults, self._below)

    def save(self, path: Path) -> None:
        """Write the table."""
        names = sorted({name for one in self.timed for name in one.told})
        body = {
            "version": VERSION,
            "about": dict(self.about),
            "questions": [[q.name, list(q.candidates), q.default] for q in self.questions],
            "paths": [[number for step in one.path for number in step] for one in self.timed],
            "seconds": [one.seconds and float(f"{one.seconds:.4g}") for one in self.timed],
            "failed": {str(n): o.outcome for n, o in enumerate(self.timed) if o.seconds is None},
            "features": {
                name: _column([one.told.get(name) for one in self.timed]) for name in names
            },
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))

    @staticmethod
    def load(path: Path) -> RecordedSpace:
        """Read a table."""
        body = json.loads(gzip.decompress(path.read_bytes()))
        if body["version"] != VERSION:
            raise ValueError(f"{path}: version {body['version']}; expected {VERSION}")
        questions = tuple(
            Asked(name, _plain_tuple(c), default) for name, c, default in body["questions"]
        )
        columns = {
            name: [None if place is None else values[place] for place in places]
            for name, (values, places) in body["features"].items()
        }
        timed = tuple(
            Timed(
                tuple(zip(path_[::2], path_[1::2], strict=True)),
                seconds,
                body["failed"].get(str(number), "ok"),
                {n: column[number] for n, column in columns.items() if column[number] is not None},
            )
            for number, (path_, seconds) in enumerate(
                zip(body["paths"], body["seconds"], strict=True)
            )
        )
        return RecordedSpace(body["about"], questions, timed)


def _plain(value: object) -> object:
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _plain_tuple(values: Sequence[object]) -> tuple[object, ...]:
    """JSON lists as tuples, which can be keys."""
    return tuple(map(_plain, values))


def _column(values: Sequence[float | None]) -> tuple[list[float], list[int | None]]:
    """A column as its distinct values and, for each point, the place among them."""
    rounded = [None if value is None else float(f"{value:.6g}") for value in values]
    distinct = sorted({value for value in rounded if value is not None})
    places = {value: place for place, value in enumerate(distinct)}
    return distinct, [None if value is None else places[value] for value in rounded]
