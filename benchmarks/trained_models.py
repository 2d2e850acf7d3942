"""Models fitted to data, of scikit-learn and of torch, against onnxruntime: labels and values on
rows that they have not seen, and the time of a row and of a thousand.

    python -m benchmarks.trained_models FOLDER [NAME ...] [--rows 1 1000] [--rounds 7] [--write]

FOLDER keeps what is fitted, NAME.onnx with the rows NAME.npz, and what it has is not fitted again.
To fit the others takes what `subjects/trained.py` says, and `pip install -e ".[models]"` for
the networks of torch. A name stands for all subjects that begin with it. Both systems run on one
thread. "labels equal" counts all integers of the outputs on the rows that were held out, "largest
error" is that of other outputs there as a share of their largest magnitude. "ahead" is
onnxruntime's time over ours, the median of the rounds' own ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx

import tilewright as tw
from tilewright.cli.compare.comparison import OURS, load_systems
from tilewright.cli.compare.peers import OnnxRuntime
from tilewright.graph.types import Array
from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .rounds import PATIENCE

HEAD = ("subject", "labels equal", "largest error", "rows", "us", "us, onnxruntime", "ahead")
MAKERS = ("trained", "trained_networks")  # modules of `subjects`, each with SUBJECTS and fitted()


@dataclass(frozen=True)
class Row:
    """One subject at a number of rows: how it agrees, microseconds of both, and their ratio."""

    subject: str
    equal: str
    error: float
    rows: int
    ours: float
    theirs: float
    ahead: float
    low: float
    high: float

    @property
    def cells(self) -> tuple[object, ...]:
        """The row of the table."""
        ratio = report.ratio_text(self.ahead, self.low, self.high)
        times = f"{self.ours:.1f}", f"{self.theirs:.1f}"
        return self.subject, self.equal, f"{self.error:.1e}", self.rows, *times, ratio


def kept(folder: Path, name: str) -> tuple[bytes, Array]:
    """A subject and its rows, from the folder, or fitted and put there."""
    model, rows = folder / f"{name}.onnx", folder / f"{name}.npz"
    if not (model.exists() and rows.exists()):
        for module in MAKERS:
            maker = import_module(f"{__package__}.subjects.{module}")
            if name in maker.SUBJECTS:
                made, array = maker.fitted(name)
                model.write_bytes(made.SerializeToString())
                np.savez_compressed(rows, rows=array)
                break
    return model.read_bytes(), np.load(rows)["rows"]


def resized(array: Array, rows: int) -> Array:
    """As many of the rows, over and over."""
    return np.ascontiguousarray(np.resize(array, (rows, *array.shape[1:])))


def agreement(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> tuple[str, float]:
    """How many of the integers are equal, and the largest error of the others as a share of their
    largest magnitude.
    """
    equal = count = 0
    error = 0.0
    for name, expected in wanted.items():
        if expected.dtype.kind in "iub":
            equal, count = equal + int((found[name] == expected).sum()), count + expected.size
        elif expected.size:
            largest = max(float(np.abs(expected).max()), 1e-30)
            error = max(error, float(np.abs(found[name] - expected).max()) / largest)
    return (f"{equal} of {count}" if count else "no labels"), error


def measure(folder: Path, name: str, counts: Sequence[int], rounds: int) -> list[Row]:
    """Both systems on one subject."""
    model, held_out = kept(folder, name)
    (own,) = onnx.load_from_string(model).graph.input
    most = max(*counts, len(held_out))
    sizes = {f"{own.name}[0]": (1, min(64, most), most)}
    dim = own.type.tensor_type.shape.dim[0].dim_param
    engine = tw.compile(model, shapes={dim: sizes[f"{own.name}[0]"]} if dim else sizes)
    peer, found = OnnxRuntime(), list[Row]()
    for count in (len(held_out), *counts):
        inputs = {own.name: resized(held_out, count)}
        systems = load_systems(engine, model, inputs, (peer,), 1)
        calls = {system: session.call for system, session in systems.items()}
        for call in calls.values():
            call()
        ours, theirs = systems[OURS].outputs(), systems[peer.name].outputs()
        if count == len(held_out) and not found:
            equal, error = agreement(ours, theirs)
            if count not in counts:
                continue
        many = {system: calibrate(call) for system, call in calls.items()}
        timed = interleave(calls, many, rounds, Gate.of(1, PATIENCE))
        ratio = timed.ratio(peer.name, OURS)
        own_time, other = (timed.timing(system).median * 1e6 for system in (OURS, peer.name))
        share = ratio.median, ratio.low, ratio.high
        found.append(Row(name, equal, error, count, own_time, other, *share))
    return found


def known_names(folder: Path) -> list[str]:
    """The subjects that are kept, and those that could be fitted here."""
    names = [path.stem for path in sorted(folder.glob("*.onnx"))]
    for module in MAKERS:
        try:
            maker = import_module(f"{__package__}.subjects.{module}")
        except ImportError as error:
            print(f"{module}: {error}; only what {folder} has of it is measured.")
            continue
        names += [name for name in maker.SUBJECTS if name not in names]
    return names


def main() -> None:
    """Fit, compare, measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("subjects", nargs="*", default=[""])
    parser.add_argument("--rows", type=int, nargs="+", default=(1, 1000))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = [n for n in known_names(options.folder) if n.startswith(tuple(options.subjects))]
    print(report.table(HEAD, []))
    rows: list[Row] = []
    for name in names:
        made = measure(options.folder, name, options.rows, options.rounds)
        for row in made:
            print(report.table(HEAD, [row.cells]).splitlines()[-1], flush=True)
        rows += made
    if options.write:
        text = report.table(HEAD, [row.cells for row in rows])
        report.write("trained_models", text, [asdict(row) for row in rows], (OnnxRuntime(),))


if __name__ == "__main__":
    main()
