"""How long work takes on a device, by the device's own clock.

A sample stands between two events of one stream, its calls recorded as one graph, so that the
host's time to launch is not in it. "warm": it is the mean of as many calls as last a millisecond.
"cold": it is one call, after memory of twice the second-level cache has been written, which also
keeps the device busy until the call has been put behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

from ...machine.timing import MIN_SAMPLE, MIN_SAMPLES, CacheState, Sampler, Timing, summarise
from .context import DeviceContext, Stream
from .graph import DeviceGraph, Recording

Work: TypeAlias = Callable[[Stream], object]  # what puts a call into a stream

_MOST_REPEATS = 1 << 14  # calls in a graph, each of which takes memory


def measure_on(
    context: DeviceContext, work: Work, seconds: float = 0.5, *, cache: CacheState = "warm"
) -> Timing:
    """Time a call for about `seconds`, at least five samples, after a warm-up.

    Raises: DeviceError, also for what the call does on the device.
    """
    sampler = sampler_on(context, work, cache)
    samples: list[float] = []
    deadline = perf_counter() + seconds
    while len(samples) < MIN_SAMPLES or perf_counter() < deadline:
        samples.append(sampler.take())
    return summarise(samples, sampler.repeats, cache)


def sampler_on(context: DeviceContext, work: Work, cache: CacheState) -> Sampler:
    """What takes samples of a call, which is warm by then. Raises: DeviceError."""
    stream = context.stream()
    work(stream)
    stream.synchronize()
    return _warm(context, work, stream) if cache == "warm" else _cold(context, work, stream)


def evicted_bytes(context: DeviceContext) -> int:
    """What is written before each call of a cold sample."""
    return 2 * context.device.l2_bytes


def _warm(context: DeviceContext, work: Work, stream: Stream) -> Sampler:
    """Samples of as many calls as last a millisecond."""
    repeats = 1
    while True:
        between = _between(context, stream, _recorded(work, stream, repeats))
        elapsed = between()
        if elapsed >= MIN_SAMPLE / 2 or repeats == _MOST_REPEATS:
            break
        repeats = min(repeats * 4, _MOST_REPEATS)
    if elapsed >= MIN_SAMPLE / 2:
        wanted = min(max(1, math.ceil(repeats * MIN_SAMPLE / elapsed)), _MOST_REPEATS)
        if wanted != repeats:
            repeats = wanted
            between = _between(context, stream, _recorded(work, stream, repeats))
    return Sampler(lambda: between() / repeats, repeats)


def _cold(context: DeviceContext, work: Work, stream: Stream) -> Sampler:
    evicting = context.allocate(evicted_bytes(context))

    def prepare() -> None:
        evicting.fill(0, stream)

    return Sampler(_between(context, stream, _recorded(work, stream, 1), prepare), 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Recorded:
    """Calls as one. work: kept, for it holds the modules whose kernels the graph launches."""

    work: Work
    graph: DeviceGraph
    stream: Stream

    def __call__(self) -> None:
        self.graph.launch(self.stream)


def _recorded(work: Work, stream: Stream, repeats: int) -> _Recorded:
    """So many calls as one."""
    recording = Recording(stream)
    with recording:
        for _ in range(repeats):
            work(stream)
    return _Recorded(work, recording.graph, stream)


def _between(
    context: DeviceContext,
    stream: Stream,
    run: Callable[[], object],
    prepare: Callable[[], None] = lambda: None,
) -> Callable[[], float]:
    """What gives the seconds of a run on the device."""
    begin, end = context.event(), context.event()

    def timed() -> float:
        prepare()
        begin.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        return end.seconds_since(begin)

    return timed
