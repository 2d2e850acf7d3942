"""Kernels and systems in interleaved rounds behind a gate, in operations and shares of the peak."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.cli.compare.peers import PeerSession
from tilewright.runtime.machine.timing import MIN_SAMPLE, calibrate, in_turn, sample
from tilewright.runtime.measure.rounds import Gate, Rounds, interleave

PATIENCE = 30.0  # seconds to wait for a machine that is shared
CALLS = 3  # of a system in a round, where the least time counts, each as many as last a millisecond


@dataclass(frozen=True)
class Paired:
    """One system: median seconds per call, the spread, and the median over rounds of peak seconds
    per second.
    """

    seconds: float
    low: float
    high: float
    gflops: float
    share: float


def paired_rounds(
    calls: Mapping[str, Callable[[], object]],
    flops: float,
    threads: int,
    rounds: int,
    *,
    part: float = MIN_SAMPLE,
) -> tuple[dict[str, Paired], Rounds]:
    """Measure all calls in turns, in each round as many of each as last `part` seconds, at least a
    millisecond.
    """
    counts = {name: calibrate(call) for name, call in calls.items()}
    if part > MIN_SAMPLE:
        for name, call in calls.items():
            counts[name] = max(1, math.ceil(part / sample(call, counts[name])))
    found = interleave(calls, counts, rounds, Gate.of(threads, PATIENCE))
    return {name: _summary(found, name, flops) for name in calls}, found


def _summary(found: Rounds, name: str, flops: float) -> Paired:
    times = found.timing(name)
    shares = [
        flops / seconds / 1e9 / peak
        for seconds, peak in zip(times.samples, found.peaks, strict=True)
    ]
    rate, share = flops / times.median / 1e9, statistics.median(shares)
    return Paired(times.median, min(times.samples), max(times.samples), rate, share)


def least_times(systems: Mapping[str, PeerSession], threads: int, rounds: int) -> dict[str, float]:
    """The least time of a call of each system, in milliseconds, for machines that other work
    shares: the systems run in turns, and of one thread CPU time counts, of which the time that
    others had the CPU is no part.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    least = dict.fromkeys(systems, math.inf)
    many = {system: calibrate(session.call) for system, session in systems.items()}
    for turn in range(rounds):
        for system in in_turn(list(systems), turn):
            for _ in range(CALLS):
                began = clock()
                for _ in range(many[system]):
                    systems[system].call()
                least[system] = min(least[system], (clock() - began) / many[system] * 1e3)
    return least
