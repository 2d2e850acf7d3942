"""Fresh processes: seconds to the first result and the peak of resident memory, beside peers.

    python -m benchmarks.fresh [NAME ...] [--threads 2] [--processes 5] [--write]

Every process imports a system, loads a model from its file and runs it once. The two sides start
from unlike places: ours finds in its cache the engine that an earlier process compiled, and peers,
whose own caches are not turned on, make theirs of the model each time; `benchmarks.compiling` tells
what our compile costs. Both find the bytecode of what they import. Seconds are those of the whole
process, from its start to its end, the peak is VmHWM (Linux only); systems take turns, and the
medians count. Without a NAME: resnet50, and bert_base and gpt2_prefill128 where they are in
TILEWRIGHT_MODELS.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tilewright.cli.compare.comparison import OURS
from tilewright.cli.compare.peers import installed
from tilewright.runtime.machine.timing import in_turn

from . import report
from .startup import process
from .subjects.exported import NAMES, file_of, one_of, sample_of

DEFAULT = ("resnet50", "bert_base", "gpt2_prefill128")
PEAK = """
import re
from pathlib import Path
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
"""
RUNS = {
    OURS: """
import sys, numpy as np, tilewright as tw
inputs = dict(np.load(sys.argv[2]))
tw.compile(sys.argv[1]).run(inputs, threads=int(sys.argv[3]))
""",
    "onnxruntime": """
import json, sys, numpy as np, onnxruntime
inputs = dict(np.load(sys.argv[2]))
options = onnxruntime.SessionOptions()
for key, value in json.loads(sys.argv[4]).items():
    setattr(options, key, int(value))
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, inputs)
""",
    "openvino": """
import json, sys, numpy as np, openvino
inputs = dict(np.load(sys.argv[2]))
openvino.Core().compile_model(sys.argv[1], "CPU", json.loads(sys.argv[4]))(inputs)
""",
}


@dataclass(frozen=True)
class Row:
    """One system on one model: seconds of each process, bytes resident at the peak of each."""

    model: str
    threads: int
    system: str
    seconds: tuple[float, ...]
    peaks: tuple[int, ...]


def measure(name: str, threads: int, processes: int) -> list[Row]:
    """All systems on one model."""
    told = {peer.name: json.dumps(dict(peer.settings(threads))) for peer in installed()}
    systems = [OURS, *told]
    seconds: dict[str, list[float]] = {system: [] for system in systems}
    peaks: dict[str, list[int]] = {system: [] for system in systems}
    with tempfile.TemporaryDirectory() as folder:
        path, inputs = file_of(name, Path(folder)), Path(folder, "inputs.npz")
        np.savez(inputs, **sample_of(name).inputs)
        cache = Path(folder, "cache")
        cache.mkdir(mode=0o700)
        words = (str(path), str(inputs), str(threads))
        for system in systems:  # writes bytecode, and the engine
            process(RUNS[system], *words, told.get(system, ""), cache=cache)
        for turn in range(processes):
            for system in in_turn(systems, turn):
                taken, peak = process(
                    RUNS[system] + PEAK, *words, told.get(system, ""), cache=cache
                )
                seconds[system].append(taken)
                peaks[system].append(int(peak))
    return [Row(name, threads, s, tuple(seconds[s]), tuple(peaks[s])) for s in systems]


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = ("model", "threads", "system", "first result, s", "least", "resident peak, MB")
    cells = [
        (
            row.model,
            row.threads,
            row.system,
            f"{statistics.median(row.seconds):.3f}",
            f"{min(row.seconds):.3f}",
            f"{statistics.median(row.peaks) / 1e6:.0f}",
        )
        for row in rows
    ]
    return report.table(head, cells)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = [name for name in DEFAULT if name in NAMES]
    parser.add_argument("models", nargs="*", type=one_of(NAMES), default=here)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.models:
        found = measure(name, options.threads, options.processes)
        print(table(found), flush=True)
        rows += found
    if options.write:
        report.write("fresh", table(rows), [asdict(row) for row in rows], installed())


if __name__ == "__main__":
    main()
