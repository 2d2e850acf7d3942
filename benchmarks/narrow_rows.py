"""Rows of products and models in several precisions, measured in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .rounds import PATIENCE

PLAIN = "float32"
Call = Callable[[], object]


@dataclass(frozen=True)
class NarrowRow:
    """One way to compute a product or a model. error: relative root mean square beside float64."""

    subject: str
    threads: int
    system: str
    milliseconds: float
    times_float32: float
    error: float


def rows_of(
    subject: str, threads: int, calls: Mapping[str, Call], errors: Mapping[str, float], rounds: int
) -> list[NarrowRow]:
    """Time all calls in turn, among them that of PLAIN, beside which the others stand."""
    times = {name: calibrate(call) for name, call in calls.items()}
    found = interleave(dict(calls), times, rounds, Gate.of(threads, PATIENCE))
    plain = found.timing(PLAIN).samples
    return [
        NarrowRow(
            subject,
            threads,
            name,
            median(found.timing(name).samples) * 1e3,
            median(own / one for own, one in zip(plain, found.timing(name).samples, strict=True)),
            errors[name],
        )
        for name in calls
    ]


def shown(what: str, rows: Iterable[NarrowRow]) -> str:
    """The rows as Markdown."""
    return report.table(
        (what, "threads", "system", "ms", "times float32", "error"),
        [
            (
                *(row.subject, str(row.threads), row.system, f"{row.milliseconds:.3f}"),
                *(f"{row.times_float32:.2f}", f"{row.error:.1e}"),
            )
            for row in rows
        ],
    )
