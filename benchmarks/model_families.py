"""Small models of the families that people export, against peers: values, then times.

    python -m benchmarks.model_families [NAME ...] [--exporters dynamo,script] [--opset 18]
        [--folder FOLDER] [--open] [--threads 1] [--rounds 30] [--no-times] [--write]

Needs `pip install -e ".[models]"`; each peer that is installed takes part, `pip install onnxruntime
openvino` brings them. The networks stand in `benchmarks/subjects/families.py`. A model is exported
by torch.onnx into FOLDER, by default a temporary one, unless its file is there; with --open for
any batch and length. Then: it is compiled without checks, its outputs are compared with those of
onnxruntime and of torch (the largest difference over the largest magnitude), and `Engine.verify`
compares them with float64. A refusal is a row of its own.

Times are for machines that other work shares: the systems run in turns, and the least time of a
call counts, on one thread of CPU time, of which the time that others had the CPU is no part, on
several of wall time, since the kernel tells late what other threads used. For latencies on a quiet
machine give the files to `benchmarks.models` through TILEWRIGHT_MODELS.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS, load_systems
from tilewright.cli.compare.peers import Peer, installed
from tilewright.runtime.arrays import Array
from tilewright.tir.errors import TilewrightError

from . import report
from .export import EXAMPLES, Exported, open_shapes
from .rounds import least_times
from .subjects.exported import one_of
from .subjects.families import FAMILIES

Exporter = Literal["dynamo", "script"]
EXPORTERS: tuple[Exporter, ...] = ("dynamo", "script")


@dataclass
class Row:
    """One model of one exporter. errors: by what it is compared with; milliseconds: by threads and
    system; refusal: why there is nothing else.
    """

    model: str
    exporter: str
    launches: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    verified: bool = False
    milliseconds: dict[int, dict[str, float]] = field(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True)
class Example:
    """A file with inputs, and what torch computes of them."""

    path: Path
    inputs: dict[str, Array]
    outputs: dict[str, Array]


def example_of(name: str, exporter: Exporter, opset: int, folder: Path, *, opened: bool) -> Example:
    """A model's file, exported where there is none."""
    torch.manual_seed(0)
    made = FAMILIES[name](torch.Generator().manual_seed(0), EXAMPLES if opened else 1)
    path = folder / f"{name}_{exporter}{opset}{'_open' if opened else ''}.onnx"
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a trace holds for sizes like these alone
        given = tuple(made.inputs.values())
        result = made.network(*given)
        if not path.exists():
            export(made, path, exporter, opset, opened=opened)
    tensors = (result,) if isinstance(result, torch.Tensor) else result
    outputs = {key: one.numpy() for key, one in zip(made.outputs, tensors, strict=True)}
    return Example(path, {key: one.numpy() for key, one in made.inputs.items()}, outputs)


def export(made: Exported, path: Path, exporter: Exporter, opset: int, *, opened: bool) -> None:
    """Write a network by one of torch's two exporters."""
    names = {"input_names": list(made.inputs), "output_names": list(made.outputs)}
    given = tuple(made.inputs.values())
    if exporter == "script":
        axes = made.axes if opened else None
        torch.onnx.export(
            made.network,
            given,
            path,
            dynamo=False,
            opset_version=opset,
            dynamic_axes=axes,
            **names,
        )
        return
    program = torch.onnx.export(
        made.network,
        given,
        dynamo=True,
        opset_version=opset,
        dynamic_shapes=open_shapes(made) if opened else None,
        verbose=False,
        **names,
    )
    program.optimize()
    program.save(path, external_data=False)


def compare(
    row: Row, example: Example, peers: Sequence[Peer], threads: Sequence[int], rounds: int
) -> None:
    """Fill in a row. Raises: TilewrightError."""
    model = str(example.path)
    engine = tw.compile(model, verify="off")
    inputs = {spec.name: example.inputs[spec.name] for spec in engine.inputs}
    row.launches = len(engine.explain().order)
    row.verified = bool(engine.verify(inputs))
    ours: Mapping[str, Array] = {}
    for count in threads:
        systems = load_systems(engine, model, inputs, peers, count)
        ours = systems[OURS].outputs()
        if rounds:
            row.milliseconds[count] = least_times(systems, count, rounds)
        if not row.errors:
            found = {system: one.outputs() for system, one in systems.items() if system != OURS}
            row.errors = {
                system: difference(ours, other)
                for system, other in {**found, "torch": example.outputs}.items()
            }


def difference(ours: Mapping[str, Array], other: Mapping[str, Array]) -> float:
    """The largest difference of any output over the largest magnitude of that output."""
    return max(
        float(np.abs(ours[name] - other[name]).max() / np.abs(other[name]).max()) for name in ours
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = ("model", "exporter", "launches", "difference", "verify", "threads", "ms, times ours")
    cells: list[tuple[object, ...]] = []
    for row in rows:
        if row.refusal:
            cells.append((row.model, row.exporter, "", row.refusal.splitlines()[0], "", "", ""))
            continue
        errors = ", ".join(f"{name} {error:.1e}" for name, error in row.errors.items())
        told = (row.model, row.exporter, row.launches, errors, "ok" if row.verified else "off")
        cells += [(*told, count, _times(least)) for count, least in row.milliseconds.items()]
        if not row.milliseconds:
            cells.append((*told, "", ""))
    return report.table(head, cells)


def _times(least: Mapping[str, float]) -> str:
    ours = least[OURS]
    others = (f"{name} {ms / ours:.2f}" for name, ms in least.items() if name != OURS)
    return ", ".join([f"{ours:.2f}", *others])


def main() -> None:
    """Export, compare, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=one_of(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--exporters", type=lambda text: text.split(","), default=EXPORTERS)
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--threads", type=counts, default=(1,))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--times", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    peers, rows = installed(), list[Row]()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.models:
            for exporter in options.exporters:
                row = Row(name, exporter)
                example = example_of(name, exporter, options.opset, folder, opened=options.open)
                try:
                    compare(row, example, peers, options.threads, options.rounds * options.times)
                except TilewrightError as error:
                    row.refusal = str(error)
                print(table([row]), flush=True)
                rows.append(row)
    if options.write:
        kept = "model_families_open" if options.open else "model_families"
        report.write(kept, table(rows), [asdict(row) for row in rows], peers)


if __name__ == "__main__":
    main()
