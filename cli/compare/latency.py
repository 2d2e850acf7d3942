"""The latency of an engine at several thread counts, relative to the machine's limit.

All thread counts and the multiply-add probes are interleaved in the same rounds, so that drift of
the machine affects all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.machine.timing import MIN_SAMPLE, Timing, compare, sample, seconds_text
from ...runtime.measure.limits import Probe, fma_peak
from ...runtime.toolchain.compile import CompileFailed
from ...runtime.toolchain.compilers import CompilerNotFound
from ..text import bad, table

_FEWEST, _MOST = 5, 1000  # rounds
_VAGUE = 1.25  # times its lower end: an interval that reaches so far says little of the median
HEADS = ("threads", "median", "95 % interval", "runs/s", "GFLOP/s", "of the FMA limit")


@dataclass(frozen=True, slots=True)
class TimingBudget:
    """How long to time: `warmup` runs, then `rounds` rounds, or as many as fit `seconds`."""

    warmup: int = 3
    rounds: int | None = None
    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Runs at one number of threads.

    operations: of a run; None where unknown. peak: fp32 GFLOP/s of the probe on as many threads, in
    the best of the same rounds; None where it cannot be measured.
    """

    threads: int
    timing: Timing
    operations: int | None
    peak: float | None

    @property
    def gflops(self) -> float | None:
        """Operations per second, in 10**9."""
        return None if self.operations is None else self.operations / self.timing.median / 1e9

    @property
    def share(self) -> float | None:
        """The rate over the peak: 1 is the best that the machine can do."""
        gflops = self.gflops
        return None if gflops is None or not self.peak else gflops / self.peak

    @property
    def row(self) -> tuple[str, ...]:
        """The cells under HEADS."""
        timing, rate = self.timing, 1 / self.timing.median
        limit = "" if self.share is None else f"{_percent(self.share)} of {self.peak:.0f}"
        return (
            str(self.threads),
            seconds_text(timing.median),
            f"{seconds_text(timing.low)} to {seconds_text(timing.high)}",
            f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}",
            "" if self.gflops is None else f"{self.gflops:.3g}",
            limit,
        )

    def to_json(self) -> dict[str, object]:
        """Every figure, times in seconds."""
        timing = self.timing
        return {
            "threads": self.threads,
            "median": timing.median,
            "low": timing.low,
            "high": timing.high,
            "samples": list(timing.samples),
            "runs_per_sample": timing.repeats,
            "gflops": self.gflops,
            "peak_gflops": self.peak,
            "share_of_peak": self.share,
        }


def latencies(
    engine: Engine,
    inputs: Mapping[str, Array],
    threads: Sequence[int],
    budget: TimingBudget,
    operations: int | None = None,
) -> tuple[Latency, ...]:
    """Time warm runs on the inputs at each number of threads."""
    probes = _probes(engine, threads)
    calls: dict[str, Callable[[], object]] = {}
    length = 0.0  # seconds of a round
    for count in threads:
        context = engine.context(count).bind(inputs)
        for _ in range(budget.warmup):
            context.run()
        length += max(sample(context.run, 1), MIN_SAMPLE)
        calls[f"run {count}"] = context.run
        if count in probes:
            calls[f"peak {count}"] = probes[count]
            length += 2 * MIN_SAMPLE
    rounds = budget.rounds or min(_MOST, max(_FEWEST, int(budget.seconds / length)))
    timings = compare(calls, rounds)
    best = {count: min(timings[f"peak {count}"].samples) for count in probes}
    peaks = {count: probe.rate(best[count]) for count, probe in probes.items()}
    return tuple(
        Latency(count, timings[f"run {count}"], operations, peaks.get(count)) for count in threads
    )


def latency_table(found: Sequence[Latency], indent: int = 0) -> str:
    """One line per number of threads, without empty columns; and one where the machine did not let
    the median be known.
    """
    rows = [latency.row for latency in found]
    kept = [n for n in range(len(HEADS)) if any(row[n] for row in rows)]
    heads = [HEADS[n] for n in kept]
    shown = table(heads, [[row[n] for n in kept] for row in rows], indent)
    vague = [latency for latency in found if latency.timing.high > _VAGUE * latency.timing.low]
    if not vague:
        return shown
    threads = " and ".join(str(latency.threads) for latency in vague)
    said = f"unreliable on {threads} thread(s): the intervals are wide; is the machine busy?"
    return f"{shown}\n{' ' * indent}{bad(said)}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _probes(engine: Engine, threads: Sequence[int]) -> dict[int, Probe]:
    """A multiply-add probe for each number of threads; none for an interpreter or without a
    compiler.
    """
    if engine.parts.code.c_program is None:
        return {}
    try:
        return {count: fma_peak(count) for count in threads}
    except (CompileFailed, CompilerNotFound):
        return {}
