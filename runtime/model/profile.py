"""Where a model's time goes: each launch timed alone, in the order of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from statistics import median
from time import perf_counter

from ...tir.output_file import writing
from ...tir.program.flow import Iterations, Taken
from ...tir.program.program import ACTION_TITLES, Action, Launch, action_title
from ...tir.svg.picture import Picture
from ...tir.text.html import details, html_table
from ..machine.timing import seconds_text
from .timeline import Bar, draw_timeline

MOVES = frozenset(ACTION_TITLES.values())  # how steps are called that compute nothing


@dataclass(frozen=True, slots=True)
class StepTime:
    """One launch: the nodes that it computes, the kernel that does, seconds (the median). limit:
    the seconds that the machine allows at best; None: not known. runs: how often a run of the model
    does it, in a loop or a branch; seconds and limit are of all of these together.
    """

    label: str
    kernel: str
    seconds: float
    limit: float | None = None
    runs: int = 1

    @property
    def title(self) -> str:
        """The nodes, and how often, where that is not once."""
        named = self.label or self.kernel
        return named if self.runs == 1 else f"{named} ({self.runs} times)"

    def __str__(self) -> str:
        return f"{self.title}: {seconds_text(self.seconds)} in {self.kernel}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Profile:
    """The launches of a run, in order, each timed as a call of its own.

    rounds: how often each was timed. whole: seconds of a run as one call (the median); the launches
    together take longer where a call's own cost counts.
    """

    engine: str
    threads: int
    rounds: int
    whole: float
    steps: tuple[StepTime, ...]

    @property
    def seconds(self) -> float:
        """All launches together."""
        return sum(step.seconds for step in self.steps)

    def __str__(self) -> str:
        total = self.seconds or 1.0
        lines = [
            f"{self.engine}: {seconds_text(self.whole)} a run on {self.threads} thread(s); "
            f"launches {seconds_text(self.seconds)}, medians of {self.rounds}"
        ]
        lines += [
            f"  {step.seconds / total:6.1%}  {seconds_text(step.seconds):>8}  {step.title}"
            for step in sorted(self.steps, key=lambda step: -step.seconds)
        ]
        return "\n".join(lines)

    def with_limits(self, limits: Sequence[float]) -> Profile:
        """The profile with what the machine allows each launch at best; copies have no limit."""
        known = iter(limits)
        steps = (
            step if step.kernel in MOVES else replace(step, limit=next(known) * step.runs)
            for step in self.steps
        )
        return replace(self, steps=tuple(steps))

    def picture(self) -> Picture:
        """The launches as bars from where they begin to where they end, the longest of many, with
        their shares of the run and of their limits.
        """
        bars, at = [], 0.0
        for step in self.steps:
            named = step.title if step.runs != 1 else step.label
            bars.append(Bar(named, step.kernel, at, step.seconds, step.limit))
            at += step.seconds
        return draw_timeline(bars, str(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        total = self.seconds or 1.0
        rows = [
            (
                s.label if s.runs == 1 else s.title,
                s.kernel,
                seconds_text(s.seconds),
                f"{s.seconds / total:.1%}",
            )
            for s in self.steps
        ]
        head, _, _ = str(self).partition("\n")
        table = html_table(("nodes", "kernel", "time", "share"), rows)
        return f"<p>{escape(head)}</p>{self.picture().svg}{details('every launch', table)}"

    def save(self, path: str | Path) -> Path:
        """Write a Chrome trace, which Perfetto shows; the file. Raises: OutputFileError."""
        events: list[dict[str, str | int | float | dict[str, str]]] = []
        at = 0.0
        for step in self.steps:
            events.append(
                {
                    "name": step.label or step.kernel,
                    "cat": "kernel",
                    "ph": "X",
                    "ts": at * 1e6,
                    "dur": step.seconds * 1e6,
                    "pid": 1,
                    "tid": 1,
                    "args": {"kernel": step.kernel},
                }
            )
            at += step.seconds
        file, trace = Path(path), {"traceEvents": events, "displayTimeUnit": "ms"}
        with writing(file):
            file.write_text(json.dumps(trace), encoding="utf-8")
        return file


def profile_steps(
    engine: str,
    calls: Sequence[tuple[Action, Callable[[Iterations], object]]],
    run: Callable[[], Iterable[Taken]],
    whole: Callable[[], object],
    threads: int,
    rounds: int,
) -> Profile:
    """Time the calls as a run takes them, `rounds` times after one round to warm up. calls: of each
    step; run: the steps of a run by their numbers, each called before the next one is asked for.
    """
    samples: list[list[float]] = [[] for _ in calls]
    runs, times, counts = list[float](), [0.0] * len(calls), [0] * len(calls)
    for turn in range(rounds + 1):
        times, counts = [0.0] * len(calls), [0] * len(calls)
        for item in run():
            call = calls[item.number][1]
            times[item.number] += _seconds(partial(call, item.iterations))
            counts[item.number] += 1
        seconds = _seconds(whole)
        if turn:
            runs.append(seconds)
            for sample, one in zip(samples, times, strict=True):
                sample.append(one)
    found = tuple(
        replace(step_time(step, median(sample)), runs=count)
        for (step, _), sample, count in zip(calls, samples, counts, strict=True)
    )
    return Profile(engine, threads, rounds, median(runs), found)


def step_time(step: Action, seconds: float) -> StepTime:
    """What a step took."""
    if isinstance(step, Launch):
        return StepTime(step.label, step.function, seconds)
    title = action_title(step)
    return StepTime(title, title, seconds)


def _seconds(call: Callable[[], object]) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began
