"""From a model as imported to a checked Program: passes, fusion, choice by price, lowering. One function, top to bottom."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..schedule.source import ScheduleSource
from ..tir.target import Target
from .choose import Decision, choose, chosen_parts
from .fusion import Fusion, fuse
from .ir import Graph
from .lowering import LoweredModel, lower
from .passes.pipeline import PIPELINE, Pass, PassReport, optimise
from .pricing import Pricer


@dataclass(frozen=True, slots=True)
class Planned:
    """A model, planned.

    imported: as it was read; graph: after the passes; passes: what each did. decisions: for each group of the fusion, what
    was priced and what was taken. seconds: what each stage took.
    """

    imported: Graph
    graph: Graph
    passes: tuple[PassReport, ...]
    fusion: Fusion
    decisions: tuple[Decision, ...]
    lowered: LoweredModel
    seconds: tuple[tuple[str, float], ...]


def plan_model(
    imported: Graph,
    target: Target,
    source: ScheduleSource | None = None,
    *,
    passes: tuple[Pass, ...] | None = None,
    check: bool = True,
) -> Planned:
    """Optimise a graph and lower it to a Program.

    source: times and schedules that are known. passes: PIPELINE by default. check: compare the graph before and after each
    pass on random numbers. Raises: InternalError where an invariant does not hold.
    """
    clock = [time.perf_counter()]
    graph, reports = optimise(imported, PIPELINE if passes is None else passes, check=check)
    clock.append(time.perf_counter())
    fusion = fuse(graph)
    decisions = choose(graph, fusion.groups, Pricer(target, source))
    clock.append(time.perf_counter())
    lowered = lower(graph, chosen_parts(graph, decisions))
    clock.append(time.perf_counter())
    laps = (b - a for a, b in zip(clock, clock[1:], strict=False))
    seconds = tuple(zip(("passes", "fusion", "plan"), laps, strict=True))
    return Planned(imported, graph, reports, fusion, decisions, lowered, seconds)
