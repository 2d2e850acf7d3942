"""Matrix products with constant weights, by the default rule, against the FMA peak and peers.

    python -m benchmarks.matmul [M x N x K ...] [--threads 1,2] [--rounds 7] [--write]

Shapes are written 128x768x3072: rows, columns, terms of each sum. Every system's product is
compared with one in float64 before it is timed. "warm": one set of weights; "cold": sets that are
used in turn, 80 MB of them at least, which is timed where the data has 128 rows and one set is
smaller. A probe of the multiply-add peak stands in every round, and where there is one row, a loop
that reads as many bytes as the weights have. --write keeps the rows of other shapes and numbers of
threads that are there already.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS
from tilewright.cli.compare.peers import Peer, installed
from tilewright.runtime.measure.limits import read_peak
from tilewright.runtime.measure.rounds import Rounds, is_disturbed

from . import report
from .peers.matmul import NumPy, OneDnn, onnx_matmul
from .rounds import paired_rounds
from .subjects.functions import product

Shape = tuple[int, int, int]
Call = Callable[[], object]

LAYERS: tuple[Shape, ...] = (
    (128, 768, 768),
    (127, 509, 1021),
    (128, 3072, 768),
    (128, 768, 3072),
)
CUBES: tuple[Shape, ...] = tuple((size, size, size) for size in (512, 1024, 1536, 2048))
LANGUAGE: tuple[Shape, ...] = tuple(
    (rows, columns, inner)
    for columns, inner in ((4096, 4096), (11008, 4096), (4096, 11008))
    for rows in (1, 16, 128)
)
SUITE = (*LAYERS, *CUBES, *LANGUAGE)
ROTATED_BYTES = 80 << 20
COLD_ROWS = 128
PART = 0.02  # seconds of a system in a round: of several calls the median is no accident
READ = "read loop"
TOLERANCE = 1e-5  # of the largest magnitude of a product


@dataclass(frozen=True)
class Row:
    """One system on one shape.

    gflops: at the median; share: of the multiply-add peak beside it, or, of a read loop, its GB/s.
    over_ours, low, high: its time over ours, the median of the rounds and its 95 % interval.
    error: max|y - ref64| / max|ref64|.
    """

    shape: str
    threads: int
    cache: str
    system: str
    gflops: float
    share: float
    over_ours: float
    low: float
    high: float
    error: float
    repeated_rounds: int


def weights(columns: int, inner: int, seed: int) -> np.ndarray:
    """Random weights; the products have a standard deviation of 1."""
    made = np.random.default_rng(seed).standard_normal((inner, columns), dtype=np.float32)
    made *= np.float32(inner**-0.5)
    return made


def rotating(calls: Sequence[Call]) -> Call:
    """One call that takes the next of `calls` each time."""
    turn = itertools.cycle(calls)
    return lambda: next(turn)()


class Systems:
    """Every system on so many sets of weights at one number of threads, with its error."""

    def __init__(self, shape: Shape, peers: Sequence[Peer], threads: int, sets: int) -> None:
        rows, columns, inner = shape
        x = np.random.default_rng(99).standard_normal((rows, inner), dtype=np.float32)
        func = product(*shape)
        self.calls: dict[str, list[Call]] = {name: [] for name in (OURS, *(p.name for p in peers))}
        self.errors: dict[str, float] = {}
        for seed in range(sets):
            b = weights(columns, inner, seed)
            kernel = tw.build(func, constants={"B": b}, verify="off")
            self.calls[OURS].append(kernel.bind_copies(x, threads=threads))
            model = onnx_matmul(rows, b)
            sessions = {p.name: p.load(model, {"A": x}, ("C",), threads) for p in peers}
            for name, session in sessions.items():
                self.calls[name].append(session.call)
            if seed == 0:
                wanted = x.astype(np.float64) @ b
                self._check(OURS, kernel(x, threads=threads), wanted)
                for name, session in sessions.items():
                    session.call()
                    self._check(name, session.outputs()["C"], wanted)

    def _check(self, name: str, found: np.ndarray, wanted: np.ndarray) -> None:
        error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        if not error < TOLERANCE:
            raise ArithmeticError(f"{name} is wrong: {error:.1e} of the largest magnitude")
        self.errors[name] = error


def measure(shape: Shape, peers: Sequence[Peer], threads: int, rounds: int) -> list[Row]:
    """All systems on one shape, in the same rounds; warm, and cold where it is asked for."""
    rows, columns, inner = shape
    size = 4 * columns * inner
    sets = -(-ROTATED_BYTES // size) if rows == COLD_ROWS else 1
    systems = Systems(shape, peers, threads, sets)
    found = []
    for cache in ("warm", "cold")[: min(sets, 2)]:
        calls = {
            name: made[0] if cache == "warm" else rotating(made)
            for name, made in systems.calls.items()
        }
        found += _timed(shape, calls, systems.errors, (threads, rounds), cache)
    return found


def _timed(
    shape: Shape,
    calls: dict[str, Call],
    errors: Mapping[str, float],
    effort: tuple[int, int],
    cache: str,
) -> list[Row]:
    rows, columns, inner = shape
    threads, rounds = effort
    flops, size = 2.0 * math.prod(shape), 4 * columns * inner
    probe = read_peak(threads, size) if rows == 1 else None
    if probe is not None:
        calls = {**calls, READ: probe}
    results, timed = paired_rounds(calls, flops, threads, rounds, part=PART)
    label = "x".join(map(str, shape))
    found = []
    for name, result in results.items():
        passes = probe.work / size if probe is not None and name == READ else 1.0
        ratio = _over_ours(timed, name, passes)
        rate = result.gflops * passes
        share = size / result.seconds * passes / 1e9 if name == READ else result.share
        error = errors.get(name, 0.0)
        found.append(Row(label, threads, cache, name, rate, share, *ratio, error, timed.repeated))
    return found


def _over_ours(timed: Rounds, name: str, passes: float) -> tuple[float, float, float]:
    """The time of a system, for one of its passes, over ours: median, low, high."""
    ratio = timed.ratio(name, OURS)
    return ratio.median / passes, ratio.low / passes, ratio.high / passes


def table(rows: Sequence[Row]) -> str:
    """One line for each shape, number of threads and state of the cache, the best peer beside us;
    the geometric mean of its ratios, but for those of disturbed rounds, at the end.
    """
    groups: dict[tuple[str, int, str], dict[str, Row]] = {}
    for row in rows:
        groups.setdefault((row.shape, row.threads, row.cache), {})[row.system] = row
    head = ("M x N x K", "threads", "weights", "GFLOP/s", "of FMA peak", "of read loop")
    head += ("best peer", "its time over ours", "interval")
    lines, ratios = [], {}
    for (shape, threads, cache), systems in groups.items():
        ours, read = systems[OURS], systems.get(READ)
        line = [shape, threads, cache, f"{ours.gflops:.1f}", f"{ours.share:.1%}"]
        line.append("" if read is None else f"{read.over_ours:.1%}")
        peers = [row for name, row in systems.items() if name not in (OURS, READ)]
        if peers:
            best = min(peers, key=lambda row: row.over_ours)
            told = report.ratio_text(best.over_ours, best.low, best.high)
            line += [best.system, told, f"{best.low:.2f} to {best.high:.2f}"]
            if not is_disturbed(best.low, best.high):
                ratios.setdefault((threads, cache), []).append(best.over_ours)
        lines.append(line + [""] * (len(head) - len(line)))
    for (threads, cache), group in sorted(ratios.items(), key=str):
        mean = math.exp(sum(map(math.log, group)) / len(group))
        line = [f"geometric mean of {len(group)}", threads, cache, *[""] * 4, f"{mean:.3f}", ""]
        lines.append(line)
    return report.table(head, lines)


def kept(rows: Sequence[Row]) -> list[Row]:
    """The rows, and those of matmul.json whose shape or number of threads is another."""
    path = report.folder() / "matmul.json"
    measured = {(row.shape, row.threads) for row in rows}
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    others = [r for r in (Row(**held) for held in before) if (r.shape, r.threads) not in measured]
    order = ["x".join(map(str, shape)) for shape in SUITE]
    known = [row for row in (*rows, *others) if row.shape in order]
    return sorted(known, key=lambda row: (row.threads, order.index(row.shape)))


def _shape(text: str) -> Shape:
    rows, columns, inner = map(int, text.split("x"))
    return rows, columns, inner


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", type=_shape, default=SUITE, help="128x768x3072")
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    peers = (*installed(), *(peer for peer in (OneDnn(), NumPy()) if peer.is_installed()))
    rows: list[Row] = []
    for threads in options.threads:
        for shape in options.shapes:
            found = measure(shape, peers, threads, options.rounds)
            print(table(found), flush=True)
            rows += found
    print(table(rows))
    if options.write:
        every = kept(rows)
        report.write("matmul", table(every), [asdict(row) for row in every], peers)


if __name__ == "__main__":
    main()
