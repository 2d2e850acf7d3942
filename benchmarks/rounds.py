"""Interleaved rounds with a gate: on shared machines two threads get one thread's throughput for
seconds at a time, and no counter shows it. So a probe of the multiply-add peak stands before and
after each round; a round that it finds slow is repeated, and shares are paired within a round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.runtime.limits import Probe, fma_peak
from tilewright.runtime.timing import calibrate, sample

GATE = 0.92  # of threads times the best single-thread rate
PATIENCE = 30.0  # seconds to wait for a machine that is shared
REST = 0.03  # seconds between one system and the next


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


def single_thread_peak() -> float:
    """The best GFLOP/s of one thread in some tries."""
    probe = fma_peak(1)
    return max(probe.rate(sample(probe, 3)) for _ in range(10))


def paired_rounds(
    calls: Mapping[str, Callable[[], object]], flops: float, threads: int, rounds: int
) -> tuple[dict[str, Paired], int]:
    """Measure all calls in turns; returns the results and how many rounds were repeated."""
    probe = fma_peak(threads)
    wanted = GATE * threads * single_thread_peak()
    repeats = {name: calibrate(call) for name, call in calls.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    deadline, repeated, done = time.perf_counter() + PATIENCE, 0, 0
    while done < rounds:
        names = list(calls)
        names = names[done % len(names) :] + names[: done % len(names)]
        before = _rate(probe)
        if before < wanted and time.perf_counter() < deadline:
            repeated += 1
            time.sleep(0.3)
            continue
        round_times = {name: _rested(calls[name], repeats[name]) for name in names}
        after = _rate(probe)
        if after < wanted and time.perf_counter() < deadline:
            repeated += 1
            continue
        peak = (before + after) / 2
        for name, seconds in round_times.items():
            found[name].append((seconds, flops / seconds / 1e9 / peak))
        done += 1
    return {name: _summary(samples, flops) for name, samples in found.items()}, repeated


def _rested(call: Callable[[], object], repeats: int) -> float:
    """A sample after the pools of other systems have stopped spinning."""
    time.sleep(REST)
    call()
    return sample(call, repeats)


def _rate(probe: Probe) -> float:
    return probe.rate(_rested(probe, 2))


def _summary(samples: list[tuple[float, float]], flops: float) -> Paired:
    times = sorted(seconds for seconds, _ in samples)
    median = statistics.median(times)
    share = statistics.median(share for _, share in samples)
    return Paired(median, times[0], times[-1], flops / median / 1e9, share)
