"""Single operators on usual sizes beside peers: values first, then the least time of a call.

    python -m benchmarks.operators [NAME ...] [--family FAMILY ...] [--threads 1] [--rounds 15]
                                   [--write]

A name stands for all subjects that begin with it: TopK, "NonZero 10000". The subjects stand in
`benchmarks/subjects/operators`. Each peer that is installed and runs a model takes part. A peer's
outputs equal ours before anything is timed, of drawn numbers their means and deviations; a row that
differs is an error. The systems run in turns, and the least time counts, of one thread in CPU time,
as `least_times` says. "ahead" is the better peer's time over ours; a row below 0.8 says why.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS, Tolerance, load_systems, output_reports
from tilewright.cli.compare.peers import Peer, PeerFailed, PeerSession, installed
from tilewright.runtime.arrays import Array
from tilewright.tir.errors import TilewrightError

from . import report
from .rounds import least_times
from .subjects.exported import one_of
from .subjects.operators import FAMILIES
from .subjects.operators.remarks import LEFT_OUT, WHY, remark
from .subjects.operators.subject import Subject

SLOW = 0.8  # of the better peer's speed
DRAWN = 0.05  # how far means and deviations of drawn numbers may be apart


@dataclass
class Row:
    """One subject: the least microseconds of a call by system, or the error that ended it."""

    family: str
    subject: str
    threads: int
    microseconds: dict[str, float] = field(default_factory=dict)
    error: str = ""

    @property
    def ahead(self) -> float | None:
        """The better peer's time over ours; None where no peer runs it."""
        peers = [us for system, us in self.microseconds.items() if system != OURS]
        return min(peers) / self.microseconds[OURS] if peers else None

    def cells(self, peers: Sequence[Peer]) -> tuple[object, ...]:
        """The row of the table."""
        systems = (OURS, *(peer.name for peer in peers))
        times = (f"{self.microseconds[s]:.1f}" if s in self.microseconds else "" for s in systems)
        ahead = "" if self.ahead is None else f"{self.ahead:.2f}"
        return self.family, self.subject, self.threads, *times, ahead, self.why

    @property
    def why(self) -> str:
        """Why it is slower than the better peer; "" where it is not by much."""
        is_slow = self.ahead is not None and self.ahead < SLOW
        return remark(WHY, self.subject) if is_slow else ""


def measure(family: str, subject: Subject, threads: int, rounds: int, peers: Sequence[Peer]) -> Row:
    """All systems on one subject. Raises: TilewrightError."""
    row = Row(family, subject.name, threads)
    model, inputs = subject.model()
    engine, given = tw.compile(model, verify="off"), model.SerializeToString()
    systems = load_systems(engine, given, inputs, (), threads)
    for peer in peers:
        if remark(LEFT_OUT.get(peer.name, {}), subject.name):
            continue
        try:
            systems |= load_systems(engine, given, inputs, (peer,), threads)
        except PeerFailed:
            continue
    if subject.is_random:
        check_drawn(systems)
    else:
        for found in output_reports(systems, Tolerance()):
            found.raise_for_difference()
    least = least_times(systems, threads, rounds)
    row.microseconds = {system: ms * 1e3 for system, ms in least.items()}
    return row


def check_drawn(systems: Mapping[str, PeerSession]) -> None:
    """Raises: ArithmeticError where means or deviations of two systems are not alike."""
    moments = {system: _moments(session.outputs()["y"]) for system, session in systems.items()}
    for system, found in moments.items():
        largest = max(map(abs, found), default=0.0)
        pairs = zip(found, moments[OURS], strict=True)
        if largest and any(abs(a - b) > DRAWN * largest for a, b in pairs):
            raise ArithmeticError(f"{system} has means and deviations {found}, {moments[OURS]}")


def _moments(drawn: Array) -> tuple[float, ...]:
    """The mean and the deviation, where there are enough to tell."""
    wide = drawn.astype(np.float64)
    return (float(wide.mean()), float(wide.std())) if drawn.size >= 100 else ()


def table(rows: Sequence[Row], peers: Sequence[Peer]) -> str:
    """The rows as Markdown, and the errors under it."""
    times = ("us", *(f"us, {peer.name}" for peer in peers))
    head = ("family", "subject", "threads", *times, "ahead", "why")
    shown = [row.cells(peers) for row in rows if not row.error]
    errors = [f"\n{row.subject}: {row.error}" for row in rows if row.error]
    return "\n".join([report.table(head, shown), *errors])


def chosen(names: Sequence[str], families: Sequence[str]) -> list[tuple[str, Subject]]:
    """The subjects of some families that begin with one of the names."""
    begins = tuple(names)
    return [(f, s) for f in families for s in FAMILIES[f] if s.name.startswith(begins)]


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", default=[""])
    parser.add_argument("--family", nargs="+", type=one_of(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--threads", type=counts, default=(1,))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    peers, rows = installed(), list[Row]()
    print(table(rows, peers))
    for family, subject in chosen(options.subjects, options.family):
        for threads in options.threads:
            try:
                row = measure(family, subject, threads, options.rounds, peers)
            except (TilewrightError, ArithmeticError) as error:
                row = Row(family, subject.name, threads, error=str(error).splitlines()[0])
            shown = report.table(row.cells(peers), []).splitlines()[0]
            print(f"{row.subject}: {row.error}" if row.error else shown, flush=True)
            rows.append(row)
    if options.write:
        kept = [{**asdict(row), "ahead": row.ahead, "why": row.why} for row in rows]
        report.write("operators", table(rows, peers), kept, peers)


if __name__ == "__main__":
    main()
