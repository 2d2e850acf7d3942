"""Draw what kernels reach under the limits of the machine, from the results that are kept.

    python -m benchmarks.roofline [--threads 1]

Needs what `pip install -e ".[plots]"` brings. Along: operations for each byte of the tensors, read
or written once. Up: GFLOP/s. The roofs are the multiply-add peak of the measurements themselves,
and what a loop that only reads gets from each level of memory (runtime/measure/limits.py), measured
now. Writes roofline.svg beside the results of this machine.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from tilewright.cli.compare.comparison import OURS
from tilewright.runtime.machine.host import host_target
from tilewright.runtime.measure.limits import limits

from . import report
from .convolutions import MODELS, Layer, cases

FLOAT_BYTES = 4
RANGE = (0.25, 512.0)  # operations per byte that are shown
MEMORY_BYTES = 1 << 28  # which no cache holds


@dataclass(frozen=True)
class Point:
    """One kernel: its kind, operations per byte, GFLOP/s, and the multiply-add peak beside it."""

    kind: str
    intensity: float
    gflops: float
    peak: float


def products(threads: int) -> Iterator[Point]:
    """Of matmul.json."""
    for row in _rows("matmul"):
        if row["system"] == OURS and row["threads"] == threads and row["cache"] == "warm":
            m, n, k = map(int, row["shape"].split("x"))
            moved = FLOAT_BYTES * (m * k + k * n + m * n)
            peak = row["gflops"] / row["share"]
            yield Point("matrix products, warm", 2.0 * m * n * k / moved, row["gflops"], peak)


def convolutions(threads: int) -> Iterator[Point]:
    """Of convolutions.json; Winograd's algorithm counts as many operations as the direct
    one, and so may pass the roof.
    """
    known = {(case.model, str(case)): case for case in cases(list(MODELS), [])}
    for row in _rows("convolutions"):
        case = known.get((row["model"], row["layer"]))
        if case is not None and row["threads"] == threads:
            kind = "depthwise convolutions" if row["depthwise"] else "convolutions, cold weights"
            moved = sum(map(_bytes, case.layers))
            yield Point(kind, case.operations / moved, row["gflops"], row["gflops"] / row["share"])


def _bytes(layer: Layer) -> int:
    taps = layer.kernel**2 * layer.inputs // layer.groups
    data = layer.inputs * layer.size**2 + layer.outputs * layer.made**2
    return FLOAT_BYTES * (data + taps * layer.outputs)


def _rows(name: str) -> list[dict]:
    path = report.folder() / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def draw(axes: Axes, points: list[Point], threads: int) -> None:
    """The points of each kind, and the roofs."""
    peak = median(point.peak for point in points)
    target, found = host_target(), limits()
    levels = {
        "level-2 cache": target.l2_bytes // 2 * threads,
        "level-3 cache": target.l3_bytes // 2,
        "memory": MEMORY_BYTES,
    }
    for (level, size), style in zip(levels.items(), (":", "--", "-"), strict=True):
        speed = found.gb_per_s(threads, size)
        ridge = peak / speed
        line = [(RANGE[0], RANGE[0] * speed), (ridge, peak), (RANGE[1], peak)]
        label = f"{level}, {speed:.0f} GB/s"
        axes.plot(*zip(*line, strict=True), style, color="0.4", linewidth=1, label=label)
    for kind in dict.fromkeys(point.kind for point in points):
        own = [point for point in points if point.kind == kind]
        along, up = [point.intensity for point in own], [point.gflops for point in own]
        axes.scatter(along, up, s=22, label=kind, zorder=3)
    axes.set(xscale="log", yscale="log", xlim=RANGE)
    axes.set_ylim(top=2 ** math.ceil(math.log2(2 * peak)))
    axes.set_xlabel("operations for each byte of its tensors")
    axes.set_ylabel("GFLOP/s")
    axes.set_title(f"fp32 on {threads} thread(s); multiply-add peak {peak:.0f} GFLOP/s")
    axes.grid(which="major", color="0.9")
    axes.legend(fontsize="small", loc="lower right")


def main() -> None:
    """Draw what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    points = [*products(options.threads), *convolutions(options.threads)]
    if not points:
        parser.error("there are no results; python -m benchmarks.matmul --write keeps some")
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    draw(axes, points, options.threads)
    figure.savefig(report.folder() / "roofline.svg")


if __name__ == "__main__":
    main()
