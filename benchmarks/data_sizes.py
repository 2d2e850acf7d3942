"""Operators whose results are as large as data say, and TopK, which sorts, against onnxruntime in
the same rounds.

    python -m benchmarks.data_sizes [NAME ...] [--threads 1] [--rounds 7] [--write]

A name stands for all subjects that begin with it: nms, nonzero_10000. Each system has its inputs
bound beforehand, and makes its outputs in each call. Before anything is timed all outputs are
equal. "ahead" is onnxruntime's time over ours, the median of the rounds' own ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS, Tolerance, load_systems, output_reports
from tilewright.cli.compare.peers import OnnxRuntime
from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .rounds import PATIENCE
from .subjects.data_sizes import SUBJECTS

HEAD = ("subject", "threads", "us", "us, onnxruntime", "ahead")


@dataclass(frozen=True)
class Row:
    """One subject: microseconds of both, and the ratio with its interval."""

    subject: str
    threads: int
    ours: float
    theirs: float
    ahead: float
    low: float
    high: float

    @property
    def cells(self) -> tuple[object, ...]:
        """The row of the table."""
        ratio = report.ratio_text(self.ahead, self.low, self.high)
        return self.subject, self.threads, f"{self.ours:.1f}", f"{self.theirs:.1f}", ratio


def measure(name: str, threads: int, rounds: int) -> Row:
    """Both systems on one subject. Raises: VerifyError where outputs are not equal."""
    model, inputs = SUBJECTS[name]()
    engine, peer = tw.compile(model), OnnxRuntime()
    systems = load_systems(engine, model.SerializeToString(), inputs, (peer,), threads)
    for found in output_reports(systems, Tolerance()):
        found.raise_for_difference()
    calls = {system: session.call for system, session in systems.items()}
    many = {system: calibrate(call) for system, call in calls.items()}
    timed = interleave(calls, many, rounds, Gate.of(threads, PATIENCE))
    ratio = timed.ratio(peer.name, OURS)
    ours, theirs = (timed.timing(system).median * 1e6 for system in (OURS, peer.name))
    return Row(name, threads, ours, theirs, ratio.median, ratio.low, ratio.high)


def named(text: str) -> list[str]:
    """The subjects that begin with a text."""
    found = [name for name in SUBJECTS if name.startswith(text)]
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' begins none of {', '.join(SUBJECTS)}")
    return found


def measured(names: Sequence[str], threads: Sequence[int], rounds: int) -> list[Row]:
    """All rows, each printed as soon as it is known."""
    rows = []
    for name in names:
        for count in threads:
            rows.append(measure(name, count, rounds))
            print(report.table(HEAD, [rows[-1].cells]).splitlines()[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", type=named, default=[list(SUBJECTS)])
    parser.add_argument("--threads", type=counts, default=(1,))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    names = [name for found in options.subjects for name in found]
    print(report.table(HEAD, []))
    rows = measured(names, options.threads, options.rounds)
    if options.write:
        text = report.table(HEAD, [row.cells for row in rows])
        report.write("data_sizes", text, [asdict(row) for row in rows], (OnnxRuntime(),))


if __name__ == "__main__":
    main()
