"""One engine for all sizes of a model, at random ones: against our engines for one size each, and
against peers that take the same sizes in the same rounds.

    python -m benchmarks.open_sizes [NAME ...] [--sizes 40] [--timed 12] [--closed 8]
        [--threads 1,2] [--rounds 5] [--seed 0] [--write]

Files are those that `benchmarks.export --open` wrote to the folder that TILEWRIGHT_MODELS names.
Each system loads a model once and is bound anew for each size. At all sizes, before anything is
timed: the outputs of all systems agree within ten times the tolerance of `verify`, the first row
of a batch has the bits that it has alone, and no size after the first started a process, so none
compiled. The first `timed` sizes are timed; at the first `closed` an engine for that size alone is
one more system. "over closed" is our
time over that engine's, and "ahead of" a peer's time over ours: geometric means over the sizes of
the medians of the rounds' own ratios, and the worst of them.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS, Tolerance, load_systems, output_reports
from tilewright.cli.compare.peers import Peer, PeerSession, installed, load_peer
from tilewright.runtime.arrays import Array
from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .subjects.exported import FOLDER, one_of

BATCH, LENGTH = (1, 2, 4), (1, 128, 256)
SHAPES: dict[str, dict[str, tuple[int, int, int]]] = {
    "bert_base": {"batch": BATCH, "length": LENGTH},
    "minilm": {"batch": BATCH, "length": LENGTH},
    "gpt2_prefill128": {"batch": (1, 1, 2), "length": LENGTH},
    "gpt2_decode_past128": {"past": (1, 128, 1023)},
    "vit_base": {"batch": BATCH},
    "resnet50": {"batch": (1, 2, 8)},
}
CLOSED = "closed"
PATIENCE = 20.0  # seconds a size waits for a machine that is shared
Sizes = dict[str, int]


class Differs(ArithmeticError):
    """Two systems, or two sizes, give other numbers."""


@dataclass
class Row:
    """One model on a number of threads: by system, its time over ours at each size."""

    model: str
    threads: int
    sizes: list[Sizes] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    over_ours: dict[str, list[float]] = field(default_factory=dict)

    @property
    def cells(self) -> Iterator[tuple[object, ...]]:
        """The rows of the table."""
        for system, ratios in self.over_ours.items():
            told = [1 / ratio for ratio in ratios] if system == CLOSED else ratios
            mean = math.exp(sum(map(math.log, told)) / len(told))
            worst = max(told) if system == CLOSED else min(told)
            name = "over closed" if system == CLOSED else f"ahead of {system}"
            yield self.model, self.threads, name, len(told), f"{mean:.2f}", f"{worst:.2f}"


HEAD = ("model", "threads", "", "sizes", "geometric mean", "worst")


class Processes:
    """Counts the processes that this one starts."""

    def __init__(self) -> None:
        self.started = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: tuple[object, ...]) -> None:
        self.started += event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec")


def random_sizes(name: str, count: int, seed: int) -> list[Sizes]:
    """Sizes within the bounds of a model, each equally likely."""
    drawn = random.Random(seed)
    bounds = SHAPES[name].items()
    return [{key: drawn.randint(low, high) for key, (low, _, high) in bounds} for _ in range(count)]


def check_rows(engine: tw.Engine, inputs: Mapping[str, Array], whole: Mapping[str, Array]) -> None:
    """The first row of a batch has the bits that it has alone. Raises: Differs."""
    alone = engine.run({name: np.ascontiguousarray(array[:1]) for name, array in inputs.items()})
    for name, array in whole.items():
        if not np.array_equal(alone[name], array[:1]):
            raise Differs(f"output '{name}': the first row has other bits alone")


def check_outputs(systems: Mapping[str, PeerSession]) -> None:
    """All systems agree with ours. Raises: Differs."""
    for found in output_reports(systems, Tolerance()):
        if not found:
            raise Differs(str(found))


def measure(
    name: str,
    peers: Sequence[Peer],
    threads: Sequence[int],
    sizes: Sequence[Sizes],
    timed: int,
    closed: int,
    rounds: int,
) -> list[Row]:
    """All systems on one model, at all sizes. timed: how many of the sizes are timed; closed: how
    many of those have an engine of their own.
    """
    path = FOLDER / f"{name}_open.onnx"
    engine = tw.compile(path, shapes=SHAPES[name])
    inputs = engine.random_inputs(sizes=sizes[0])
    names = [spec.name for spec in engine.outputs]
    loaded = {
        n: {peer.name: load_peer(peer, str(path), inputs, names, n) for peer in peers}
        for n in threads
    }
    contexts = {n: engine.context(n) for n in threads}
    rows = [Row(name, count, list(sizes)) for count in threads]
    processes = Processes()
    for number, chosen in enumerate(sizes):
        inputs = engine.random_inputs(number, sizes=chosen)
        started = processes.started
        whole = engine.run(inputs)
        if processes.started > started:
            raise Differs(f"{chosen} started a process")
        if "batch" in chosen:
            check_rows(engine, inputs, whole)
        own = tw.compile(path, shapes=chosen) if number < min(timed, closed) else None
        for row in rows:
            systems = _bound(loaded[row.threads], contexts[row.threads], inputs)
            if own is not None:
                (systems[CLOSED],) = load_systems(own, b"", inputs, (), row.threads).values()
            check_outputs(systems)
            if number < timed:
                _time(row, systems, rounds)
        told = (f"{row.milliseconds[-1]:.1f} ms" for row in rows if number < timed)
        print(chosen, *told, flush=True)
    return rows


def _bound(
    loaded: Mapping[str, PeerSession], context: tw.Context, inputs: Mapping[str, Array]
) -> dict[str, PeerSession]:
    """The systems with inputs of other sizes, each run once; ours runs in the context."""
    ours = context.bind(inputs)
    systems = {OURS: PeerSession(ours.run, lambda: ours.outputs)}
    for system, session in loaded.items():
        assert session.bind is not None, "every installed peer takes other inputs"
        session.bind(inputs)
        systems[system] = session
    for session in systems.values():
        session.call()
    return systems


def _time(row: Row, systems: Mapping[str, PeerSession], rounds: int) -> None:
    calls = {system: session.call for system, session in systems.items()}
    many = {system: calibrate(call) for system, call in calls.items()}
    found = interleave(calls, many, rounds, Gate.of(row.threads, PATIENCE))
    row.milliseconds.append(found.timing(OURS).median * 1e3)
    for system in calls.keys() - {OURS}:
        row.over_ours.setdefault(system, []).append(found.ratio(system, OURS).median)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=one_of(SHAPES), default=list(SHAPES))
    parser.add_argument("--sizes", type=int, default=40)
    parser.add_argument("--timed", type=int, default=12)
    parser.add_argument("--closed", type=int, default=8)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    peers, rows = installed(), []
    for name in options.models:
        sizes = random_sizes(name, options.sizes, options.seed)
        counted = options.timed, options.closed, options.rounds
        found = measure(name, peers, options.threads, sizes, *counted)
        print(report.table(HEAD, [cells for row in found for cells in row.cells]), flush=True)
        rows += found
    if options.write:
        text = report.table(HEAD, [cells for row in rows for cells in row.cells])
        report.write("open_sizes", text, [asdict(row) for row in rows], peers)


if __name__ == "__main__":
    main()
