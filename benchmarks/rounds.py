"""Kernels and systems in interleaved rounds behind a gate, in operations and shares of the peak."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.runtime.machine.timing import MIN_SAMPLE, calibrate, sample
from tilewright.runtime.measure.rounds import Gate, Rounds, interleave

PATIENCE = 30.0  # seconds to wait for a machine that is shared


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
