"""The distinct convolutions of ResNet-50 and MobileNetV2 beside peers, one by one, weights cold.

    python -m benchmarks.convolutions [LAYER ...] [--model resnet50,mobilenetv2] [--threads 1,2]
                                      [--rounds 7] [--tolerance T] [--write]

Each with its bias and activation, batch 1; LAYER is a part of a name. A layer's time is the slope
between a model with one of it and a model with nine, each with weights of its own (chains.py),
which takes calls, inputs and outputs away. How nine come together is the same for all systems:

- a layer that makes what it takes is followed by itself;
- "and back": a layer that makes other channels is followed by the one that makes these again, as
  they follow each other in the model; the row is the sum of both;
- any other layer is repeated beside itself: all read one input, a max pool keeps four places of
  each result, and these are concatenated. The pool's cost is counted, for all alike.

Before each call as many bytes are read as the model has weights, so a layer finds its own where the
model would: ResNet-50's in memory, MobileNetV2's in the last-level cache. With a tolerance ours may
take algorithms that round more; what is kept never does.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import geometric_mean

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS
from tilewright.cli.compare.peers import Peer, installed
from tilewright.runtime.measure.rounds import is_disturbed

from . import report
from .chains import Chain, Slopes, slopes

WEIGHTS = {"resnet50": 102_000_000, "mobilenetv2": 14_000_000}  # bytes
KEPT = 2  # places along an axis that the pool behind a copy keeps
OPSET, IR_VERSION = 17, 8


@dataclass(frozen=True)
class Layer:
    """A convolution of a square image, `size` high and wide, padded by half the kernel.

    top: what the activation clips at; None: none follows; inf: ReLU.
    """

    inputs: int
    outputs: int
    size: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1
    top: float | None = math.inf

    def __str__(self) -> str:
        kind = "depthwise " if self.groups > 1 else ""
        stride = f"/{self.stride}" if self.stride > 1 else ""
        made = "" if self.inputs == self.outputs else f">{self.outputs}"
        return f"{kind}{self.kernel}x{self.kernel}{stride} {self.inputs}{made}@{self.size}"

    @property
    def made(self) -> int:
        """Rows and columns of the result."""
        return -(-self.size // self.stride)

    @property
    def operations(self) -> float:
        """A multiply-add counts as two."""
        taps = self.kernel**2 * self.inputs // self.groups
        return 2.0 * taps * self.outputs * self.made**2


@dataclass(frozen=True)
class Case:
    """What is repeated: one layer, or one and the way back."""

    model: str
    layers: tuple[Layer, ...]

    def __str__(self) -> str:
        return f"{self.layers[0]}{' and back' if len(self.layers) > 1 else ''}"

    @property
    def operations(self) -> float:
        """Of one repeat."""
        return sum(layer.operations for layer in self.layers)

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel is weighed on its own."""
        return self.layers[0].groups > 1

    @property
    def follows_itself(self) -> bool:
        """Whether the last layer makes what the first one takes."""
        first, last = self.layers[0], self.layers[-1]
        return (first.inputs, first.size) == (last.outputs, last.made)


def both_ways(inner: int, outer: int, size: int, top: float, back: float | None) -> list[Layer]:
    """The 1x1 layers to more channels and back to fewer."""
    return [Layer(inner, outer, size, top=top), Layer(outer, inner, size, top=back)]


def resnet50() -> Iterable[list[Layer]]:
    """The stem, then what the four stages have: into the stage, inside of it."""
    yield [Layer(3, 64, 224, 7, 2)]
    yield [Layer(64, 64, 56)]
    for inputs, width, size in ((64, 64, 56), (256, 128, 28), (512, 256, 14), (1024, 512, 7)):
        if inputs > width:
            yield [Layer(inputs, width, 2 * size)]
            yield [Layer(width, width, 2 * size, 3, 2)]
            yield [Layer(inputs, 2 * inputs, 2 * size, 1, 2, top=None)]
        yield [Layer(width, width, size, 3)]
        yield both_ways(width, 4 * width, size, math.inf, math.inf)


def mobilenetv2() -> Iterable[list[Layer]]:
    """The stem, then block by block: depthwise layers, ways to the next width, inside of a
    width.
    """
    yield [Layer(3, 32, 224, 3, 2, top=6.0)]
    yield [Layer(32, 32, 112, 3, groups=32, top=6.0)]
    yield [Layer(32, 16, 112, top=None)]
    yield [Layer(16, 96, 112, top=6.0)]
    yield [Layer(96, 96, 112, 3, 2, 96, top=6.0)]
    yield [Layer(96, 24, 56, top=None)]
    for width, size, after, stride in (
        (24, 56, 32, 2),
        (32, 28, 64, 2),
        (64, 14, 96, 1),
        (96, 14, 160, 2),
        (160, 7, 320, 1),
    ):
        wide = 6 * width
        yield both_ways(width, wide, size, 6.0, None)
        yield [Layer(wide, wide, size, 3, groups=wide, top=6.0)]
        if stride > 1:
            yield [Layer(wide, wide, size, 3, stride, wide, top=6.0)]
        yield [Layer(wide, after, size // stride, top=None)]
    yield [Layer(320, 1280, 7, top=6.0)]


MODELS: dict[str, Callable[[], Iterable[list[Layer]]]] = {
    "resnet50": resnet50,
    "mobilenetv2": mobilenetv2,
}


def cases(models: Sequence[str], names: Sequence[str]) -> list[Case]:
    """The cases of models whose names hold one of `names`; all where there are none."""
    listed = [Case(model, tuple(layers)) for model in models for layers in MODELS[model]()]
    return [case for case in listed if not names or any(name in str(case) for name in names)]


class Builder:
    """Adds layers with seeded random weights to a graph."""

    def __init__(self) -> None:
        self.nodes: list[object] = []
        self.constants: list[TensorProto] = []
        self._rng = np.random.default_rng(0)

    def add(self, layer: Layer, source: str) -> str:
        """Add a layer that reads `source`; the name of its result."""
        number = len(self.constants)
        taps = layer.kernel**2 * layer.inputs // layer.groups
        shape = (layer.outputs, layer.inputs // layer.groups, layer.kernel, layer.kernel)
        weights = self._rng.standard_normal(shape) * math.sqrt(2 / taps)
        bias = self._rng.standard_normal(layer.outputs) * 0.1
        inputs = [source, self._constant(weights), self._constant(bias)]
        before = (layer.kernel - 1) // 2
        after = max(0, (layer.made - 1) * layer.stride + layer.kernel - layer.size - before)
        self._node(
            "Conv",
            inputs,
            f"sum{number}",
            strides=[layer.stride] * 2,
            pads=[before, before, after, after],
            group=layer.groups,
        )
        if layer.top is None:
            return f"sum{number}"
        if layer.top == math.inf:
            return self._node("Relu", [f"sum{number}"], f"out{number}")
        ends = [self._constant(np.array(end)) for end in (0.0, layer.top)]
        return self._node("Clip", [f"sum{number}", *ends], f"out{number}")

    def keep_few(self, layer: Layer, source: str) -> str:
        """Add a pool that keeps a few places of a layer's result."""
        number = len(self.nodes)
        window, step = [KEPT] * 2, [layer.made - KEPT] * 2
        return self._node("MaxPool", [source], f"few{number}", kernel_shape=window, strides=step)

    def join(self, sources: Sequence[str]) -> str:
        """Add a concatenation along the channels."""
        return self._node("Concat", sources, "joined", axis=1)

    def _constant(self, array: np.ndarray) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def _node(self, kind: str, inputs: Sequence[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output


def build(case: Case, repeats: int) -> ModelProto:
    """A model of so many repeats of a case: in a row, or beside each other."""
    builder, value, kept = Builder(), "x", []
    first, last = case.layers[0], case.layers[-1]
    for _ in range(repeats):
        value = value if case.follows_itself else "x"
        for layer in case.layers:
            value = builder.add(layer, value)
        if not case.follows_itself:
            kept.append(builder.keep_few(last, value))
    made = (1, last.outputs, last.made, last.made)
    if kept:
        value, made = builder.join(kept), (1, last.outputs * repeats, KEPT, KEPT)
    taken = (1, first.inputs, first.size, first.size)
    graph = helper.make_graph(
        builder.nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, taken)],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, made)],
        builder.constants,
    )
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


@dataclass(frozen=True)
class Row:
    """One case: our microseconds per repeat and their interval, GFLOP/s, share of the multiply-add
    peak; each peer's time over ours; the best peer's, with its interval.
    """

    model: str
    layer: str
    depthwise: bool
    threads: int
    microseconds: float
    low: float
    high: float
    gflops: float
    share: float
    peers: dict[str, float]
    best: float
    best_low: float
    best_high: float


HEAD = ("model", "layer", "threads", "us", "GFLOP/s", "share of peak")


def measure(
    case: Case,
    peers: Sequence[Peer],
    threads: Sequence[int],
    rounds: int,
    tolerance: float | None = None,
) -> Iterable[Row]:
    """A row for each number of threads. tolerance: as `tw.compile` has it."""
    compiled = partial(tw.compile, tolerance=tolerance)
    chain = Chain.of(str(case), lambda repeats: build(case, repeats), compiled=compiled)
    first = case.layers[0]
    shape = (1, first.inputs, first.size, first.size)
    inputs = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    others = np.ones(WEIGHTS[case.model] // 8, np.int64)
    for count in threads:
        yield _row(case, slopes(chain, inputs, peers, count, rounds, others.max), count)


def _row(case: Case, found: Slopes, threads: int) -> Row:
    ours, best = found.timing(OURS), found.ratio(found.best_peer())
    return Row(
        case.model,
        str(case),
        case.is_depthwise,
        threads,
        *(seconds * 1e6 for seconds in (ours.median, ours.low, ours.high)),
        case.operations / ours.median / 1e9,
        found.share(OURS, case.operations),
        {system: found.ratio(system).median for system in found.seconds if system != OURS},
        best.median,
        best.low,
        best.high,
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    names = list(rows[0].peers)
    cells = [
        (
            row.model,
            row.layer,
            row.threads,
            f"{row.microseconds:.1f}",
            f"{row.gflops:.0f}",
            f"{row.share:.0%}",
            *(f"{row.peers[name]:.2f}" for name in names),
            f"{report.ratio_text(row.best, row.best_low, row.best_high)} "
            f"({row.best_low:.2f} to {row.best_high:.2f})",
        )
        for row in rows
    ]
    return report.table((*HEAD, *(f"{name} / ours" for name in names), "best peer / ours"), cells)


def summary(rows: Sequence[Row]) -> str:
    """Geometric mean and least of the best peer's time over ours, by model, kind and threads, but
    for those of disturbed rounds.
    """
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in (row for row in rows if not is_disturbed(row.best_low, row.best_high)):
        kind = "depthwise" if row.depthwise else "other"
        for model in (row.model, "both"):
            groups.setdefault((model, kind, row.threads), []).append(row)
    cells = [
        (*key, len(found), f"{geometric_mean(r.best for r in found):.2f}", _least(found))
        for key, found in sorted(groups.items())
    ]
    return report.table(("model", "kind", "threads", "layers", "best peer / ours", "least"), cells)


def _least(rows: Sequence[Row]) -> str:
    row = min(rows, key=lambda row: row.best)
    return f"{row.best:.2f} ({row.layer})"


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="LAYER")
    parser.add_argument("--model", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=7)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--tolerance", type=float)
    kinds.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows: list[Row] = []
    peers = installed()
    for case in cases(options.model, options.layers):
        found = list(measure(case, peers, options.threads, options.rounds, options.tolerance))
        print(table(found), flush=True)
        rows += found
    text = "\n\n".join((summary(rows), table(rows)))
    print(summary(rows))
    if options.write:
        report.write("convolutions", text, [asdict(row) for row in rows], peers)


if __name__ == "__main__":
    main()
