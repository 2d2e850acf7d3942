"""What the proof says of every kernel of the nine light models, and of errors planted in nests; of
models with open sizes, which are proved for all of them at once.

    python -m benchmarks.proofs [NAME ...] [--open] [--target c:avx512] [--write]

--open: the models of `benchmarks.open_sizes` in place of the light ones. Run at the root of the
clone: the planted errors are those of tests/schedule/planted.py, which edits the text of nests
behind legality's back.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from tests.schedule.nests import canonical
from tests.schedule.planted import PLANTED
from tilewright.driver.lower import choose_schedule, prove_schedule
from tilewright.driver.resolve_target import resolve_target
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.samples.samples import LIGHT_MODELS, light_model
from tilewright.schedule.proof import prove
from tilewright.schedule.verdict import ASSUMING, PROVED, UNKNOWN
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.text.canonical import workload_key

from . import report
from .open_sizes import SHAPES
from .subjects.exported import FOLDER


@dataclass
class Row:
    """The distinct kernels of one model: how many have each verdict, and milliseconds of each."""

    model: str
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    milliseconds: list[float] = field(default_factory=list)

    @property
    def cells(self) -> tuple[object, ...]:
        """The row of the table."""
        times = self.milliseconds
        spread = [statistics.median(times), max(times), sum(times)]
        return self.model, *self.verdicts.values(), *(f"{value:.1f}" for value in spread)


STATUSES = (PROVED, ASSUMING, UNKNOWN)
HEAD = ("model", *STATUSES, "ms, median", "ms, most", "ms, all")


def kernels(name: str, target: Target) -> Iterable[PrimFunc]:
    """The distinct functions of a model's plan."""
    if name in SHAPES:
        graph = import_onnx(FOLDER / f"{name}_open.onnx", shapes=SHAPES[name])
    else:
        graph = import_onnx(light_model(name).model)
    planned = plan_model(graph, target, check=False)
    return {workload_key(func): func for func in planned.lowered.program.functions}.values()


def measure(name: str, target: Target) -> Row:
    """Prove every kernel of a model."""
    row = Row(name)
    for func in kernels(name, target):
        verdict = prove_schedule(choose_schedule(func, target)[0], target)
        row.verdicts[verdict.status] += 1  # a refuted one is a KeyError: there must be none
        row.milliseconds.append(verdict.milliseconds)
    return row


def planted() -> list[tuple[str, str, str]]:
    """Each planted error with the property that finds it and what is said, iterations and all."""
    rows = []
    for error, (nest, wrong, wanted, _) in PLANTED.items():
        failures = prove(wrong, canonical(nest)).failures
        found = next(failure for failure in failures if failure.property == wanted)
        rows.append((error, found.property, str(found).partition(": ")[2]))
    return rows


def main() -> None:
    """Prove, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="NAME", help=", ".join(LIGHT_MODELS))
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--target", help="this machine's by default")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    target = resolve_target(options.target)
    names = options.models or (SHAPES if options.open else LIGHT_MODELS)
    rows = [measure(name, target) for name in names]
    total = Row("all")
    for row in rows:
        for status, count in row.verdicts.items():
            total.verdicts[status] += count
        total.milliseconds += row.milliseconds
    errors = planted()
    text = "\n\n".join(
        (
            report.table(HEAD, [row.cells for row in (*rows, total)]),
            report.table(("planted error", "found by", "iterations"), errors),
        )
    )
    print(text)
    if options.write:
        report.write(
            "proofs_open" if options.open else "proofs", text, [*map(asdict, rows), *errors], ()
        )


if __name__ == "__main__":
    main()
