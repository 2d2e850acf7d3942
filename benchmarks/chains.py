"""What one layer costs in the middle of a model: the slope of a chain of layers.

A model with one layer and a model with several, each with weights of its own, run in the same
rounds on the same input. The difference of their times, over the number of layers that the long one
has more, is free of what a call, its inputs and its outputs cost; it is taken round by round, for
every system alike. First the outputs of all systems must be equal.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnx import ModelProto

import tilewright as tw
from tilewright.cli.compare.comparison import OURS, Tolerance, load_systems, output_reports
from tilewright.cli.compare.peers import Peer, PeerSession
from tilewright.runtime.arrays import Array
from tilewright.runtime.machine.timing import Call, Timing, sample, summarise
from tilewright.runtime.measure.rounds import Gate, Ratio, Rounds, interleave

from .rounds import PATIENCE

PART = 0.01  # seconds that a system's calls of one length last in a round, about
FEWEST, MOST = 5, 200  # calls of one length in a round
SHORT, LONG = "one layer", "several"


@dataclass(frozen=True)
class Chain:
    """A layer once and `layers` times in a row: our engines, and the models for peers."""

    name: str
    layers: int
    engines: Mapping[str, tw.Engine]
    models: Mapping[str, bytes]

    @staticmethod
    def of(
        name: str,
        build: Callable[[int], ModelProto],
        layers: int = 9,
        compiled: Callable[[ModelProto], tw.Engine] = tw.compile,
    ) -> Chain:
        """`build(1)` and `build(layers)`, which have the same inputs. compiled: our engine of a
        model.
        """
        models = {SHORT: build(1), LONG: build(layers)}
        return Chain(
            name,
            layers,
            {length: compiled(model) for length, model in models.items()},
            {length: model.SerializeToString() for length, model in models.items()},
        )

    def sessions(
        self, inputs: Mapping[str, Array], peers: Sequence[Peer], threads: int
    ) -> dict[tuple[str, str], PeerSession]:
        """Every system on both lengths, after a first run, by name and length.

        Raises: PeerFailed, PeerDiffers; VerifyError where outputs are not equal.
        """
        found: dict[tuple[str, str], PeerSession] = {}
        for length, engine in self.engines.items():
            systems = load_systems(engine, self.models[length], inputs, peers, threads)
            for report in output_reports(systems, Tolerance()):
                report.raise_for_difference()
            found |= {(system, length): session for system, session in systems.items()}
        return dict(sorted(found.items(), key=lambda item: item[0][0] != OURS))


@dataclass(frozen=True)
class Slopes:
    """Seconds of one layer of each system, in each round. peaks: GFLOP/s of the probe."""

    seconds: Mapping[str, tuple[float, ...]]
    peaks: tuple[float, ...]
    repeated: int

    def timing(self, system: str) -> Timing:
        """Seconds per layer: the median of the rounds and its interval."""
        return summarise(list(self.seconds[system]))

    def ratio(self, system: str, over: str = OURS) -> Ratio:
        """The time of one system over that of another, round by round."""
        pairs = zip(self.seconds[system], self.seconds[over], strict=True)
        found = summarise([mine / other for mine, other in pairs])
        return Ratio(found.median, found.low, found.high, found.samples)

    def best_peer(self) -> str:
        """The fastest system beside ours."""
        others = (system for system in self.seconds if system != OURS)
        return min(others, key=lambda system: self.ratio(system).median)

    def share(self, system: str, operations: float) -> float:
        """The share of the multiply-add peak that a layer of so many operations reaches."""
        pairs = zip(self.seconds[system], self.peaks, strict=True)
        return statistics.median(operations / time / 1e9 / peak for time, peak in pairs)


def slopes(
    chain: Chain,
    inputs: Mapping[str, Array],
    peers: Sequence[Peer],
    threads: int,
    rounds: int,
    ahead: Call | None = None,
) -> Slopes:
    """Time a chain in every system at a number of threads; each round times both lengths of a
    system one after the other. ahead: what runs before each call, untimed.

    Raises: PeerFailed, PeerDiffers; VerifyError where outputs are not equal.
    """
    sessions = chain.sessions(inputs, peers, threads)
    calls = {f"{system}, {length}": item.call for (system, length), item in sessions.items()}
    counts = {name: _calls(call) for name, call in calls.items()}
    gate = Gate.of(threads, PATIENCE)
    found = interleave(calls, counts, rounds, gate, ahead=ahead)
    systems = dict.fromkeys(system for system, _ in sessions)
    return Slopes(
        {system: _slope(found, system, chain.layers - 1) for system in systems},
        found.peaks,
        found.repeated,
    )


def _calls(call: Call) -> int:
    """How many calls last for a part of a round."""
    length = min(sample(call, 1) for _ in range(3))
    return max(FEWEST, min(MOST, int(PART / length)))


def _slope(found: Rounds, system: str, layers: int) -> tuple[float, ...]:
    """Seconds of a layer in each round."""
    short, long = (found.timing(f"{system}, {length}").samples for length in (SHORT, LONG))
    return tuple((several - one) / layers for one, several in zip(short, long, strict=True))
