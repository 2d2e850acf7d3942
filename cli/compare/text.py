"""The output of `bench`, which reports losses like wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...runtime.machine.timing import seconds_text
from ...runtime.measure.rounds import Rounds
from ...runtime.model.verification import Report
from ..text import bad, good, paragraph, table
from .comparison import OURS, ThreadComparison, outcome
from .peers import Peer

HEADS = ("system", "median", "95 % interval")
RATIO_HEADS = ("over ours", "median", "95 % interval", "for us")
_PERCENTS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The results of all comparisons.

    model, target: of our engine, as text. inputs: their source. allowed: the tolerance, in words.
    conditions: the machine and the versions. precision: of our engine, in words.
    """

    model: str
    target: str
    inputs: str
    allowed: str
    conditions: Mapping[str, str]
    peers: tuple[Peer, ...]
    blocks: tuple[ThreadComparison, ...]
    precision: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether all systems agree at every number of threads."""
        return all(block.is_equal for block in self.blocks)

    def __str__(self) -> str:
        parts = [
            paragraph("model", self.model),
            paragraph("target", self.target),
            paragraph("machine", *_machine(self.conditions)),
            paragraph("systems", *self._systems()),
            *([paragraph("precision", *self.precision)] if self.precision else []),
            paragraph("inputs", self.inputs),
            paragraph("check", f"allowed: {self.allowed}", *self._checks()),
        ]
        parts += [
            paragraph("latency", *_latency(block.threads, block.rounds))
            for block in self.blocks
            if block.rounds is not None
        ]
        return "\n".join(parts)

    def to_json(self) -> dict[str, object]:
        """Every figure, times in seconds."""
        return {
            "conditions": dict(self.conditions),
            "inputs_from": self.inputs,
            "allowed": self.allowed,
            "equal": self.is_equal,
            "blocks": [self._block(block) for block in self.blocks],
        }

    def _systems(self) -> Iterator[str]:
        """Each system with its version and options; for several numbers of threads as 1/2."""
        yield f"{OURS} {self.conditions[OURS]}"
        for peer in self.peers:
            options = [peer.settings(block.threads) for block in self.blocks]
            values = {key: dict.fromkeys(one[key] for one in options) for key in options[0]}
            listed = ", ".join(f"{key} {'/'.join(each)}" for key, each in values.items())
            yield f"{peer.name} {self.conditions[peer.name]}: {listed}"

    def _checks(self) -> Iterator[str]:
        for block in self.blocks:
            for report in block.reports:
                check = _check if block.is_held else _difference
                yield from check(report, block.threads)
        if not self.is_equal:
            yield "`tilewright run MODEL --check` compares ours with the model in float64."

    def _block(self, block: ThreadComparison) -> dict[str, object]:
        return {
            "threads": block.threads,
            "settings": {peer.name: dict(peer.settings(block.threads)) for peer in self.peers},
            "held": block.is_held,
            "check": [_check_json(report) for report in block.reports],
            "timing": None if block.rounds is None else _rounds_json(block.rounds),
        }


def _machine(found: Mapping[str, str]) -> tuple[str, str]:
    return (
        f"{found['cpu']}, {found['isa']}",
        f"{found['compiler']}; Python {found['python']}, NumPy {found['numpy']}; {found['date']}",
    )


def _check(report: Report, threads: int) -> Iterator[str]:
    """The output with the largest difference; where some differ too much, all of those."""
    head = f"{report.engine}, {_threads(threads)}"
    if report:
        farthest = max(report.outputs, key=lambda output: output.share)
        yield f"{head}: {good('equal')}; {farthest}"
        return
    yield f"{head}: {bad('different')}"
    yield from (f"  {output}" for output in report.outputs if not output.share <= 1)


def _difference(report: Report, threads: int) -> Iterator[str]:
    """The output that is off by the largest share of its magnitude."""
    farthest = max(report.outputs, key=lambda output: output.share)
    yield (
        f"{report.engine}, {_threads(threads)}: {farthest.name} differs by {farthest.error:.3g}, "
        f"{farthest.share:.2g} of its largest magnitude"
    )


def _latency(threads: int, rounds: Rounds) -> Iterator[str]:
    count = max(len(calls) for parts in rounds.seconds.values() for calls in parts)
    number = len(rounds.seconds[OURS])
    again = f"; {rounds.repeated} slow ones repeated" if rounds.repeated else ""
    yield f"{_threads(threads)}: {number} rounds of {count} calls of each system in turns{again}"
    percents = [p for p in _PERCENTS if rounds.percentile(OURS, p) is not None]
    rows = [_row(rounds, system, percents) for system in rounds.seconds]
    yield from table((*HEADS, *(f"p{percent}" for percent in percents)), rows).splitlines()
    ratios = [_ratio_row(rounds, system) for system in rounds.seconds if system != OURS]
    yield from table(RATIO_HEADS, ratios).splitlines()
    first, *tied = rounds.fastest()
    yield f"fastest: {first}{', a tie with ' if tied else ''}{' and '.join(tied)}"


def _row(rounds: Rounds, system: str, percents: Sequence[int]) -> tuple[str, ...]:
    timing = rounds.timing(system)
    found = (rounds.percentile(system, percent) for percent in percents)
    return (
        system,
        seconds_text(timing.median),
        f"{seconds_text(timing.low)} to {seconds_text(timing.high)}",
        *("" if seconds is None else seconds_text(seconds) for seconds in found),
    )


def _ratio_row(rounds: Rounds, system: str) -> tuple[str, ...]:
    ratio = rounds.ratio(system, OURS)
    interval = f"{ratio.low:.3f} to {ratio.high:.3f}"
    median = "" if ratio.is_disturbed else f"{ratio.median:.3f}"
    return system, median, interval, outcome(ratio)


def _check_json(report: Report) -> dict[str, object]:
    return {
        "system": report.engine,
        "equal": bool(report),
        "outputs": [
            {"name": o.name, "error": o.error, "share": o.share, "place": list(o.place)}
            for o in report.outputs
        ],
    }


def _rounds_json(rounds: Rounds) -> dict[str, object]:
    return {
        "rounds": len(rounds.seconds[OURS]),
        "repeated": rounds.repeated,
        "peak_gflops": list(rounds.peaks),
        "barrier_seconds": list(rounds.barriers),
        "fastest": list(rounds.fastest()),
        "systems": [_system_json(rounds, system) for system in rounds.seconds],
    }


def _system_json(rounds: Rounds, system: str) -> dict[str, object]:
    timing, ratio = rounds.timing(system), rounds.ratio(system, OURS)
    return {
        "system": system,
        "median": timing.median,
        "low": timing.low,
        "high": timing.high,
        **{f"p{percent}": rounds.percentile(system, percent) for percent in _PERCENTS},
        "calls_per_round": len(rounds.seconds[system][0]),
        "round_medians": list(timing.samples),
        "over_ours": {
            "median": ratio.median,
            "low": ratio.low,
            "high": ratio.high,
            "rounds": list(ratio.samples),
        },
        "for_us": None if system == OURS else outcome(ratio),
    }


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"
