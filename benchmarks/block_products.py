"""Products with weights of few bits beside a probe that reads as many bytes, our product of float32
and onnxruntime's MatMulNBits, in the same rounds.

    python -m benchmarks.block_products [--rounds 9] [--threads 1,2] [--rows 1 4 128] [--write]

Weights come from memory: each system has copies of them that together are larger than twice the
last-level cache, or the bytes of --rotated, and takes them in turn. A GEMV reads each byte once, so
its figure is bytes of levels, scales and zeros in a second, over what the probe reads. Both ours
and onnxruntime's run at accuracy level 0, where data stay float32, and at level 4, where they are
rounded to bytes, ours in a kernel of its own that is timed with the product. Every product is
compared with one in float64 before it is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import cycle
from statistics import median

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright import te
from tilewright.cli.arguments import counts
from tilewright.cli.compare.peers import OnnxRuntime, load_peer
from tilewright.graph.ops.block_matmul import BlockMatMul, dequantised, packed_words
from tilewright.graph.ops.rounded_blocks import (
    POINTS,
    RoundBlocks,
    RoundedBlockMatMul,
    lane_words,
)
from tilewright.graph.precision.blocks.rounded_data import KINDS
from tilewright.runtime.machine.host import host_target
from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.limits import read_peak
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .rounds import PATIENCE

SHAPES = ((4096, 4096), (4096, 11008))  # K, N
GROUP = 32
Call = Callable[[], object]
OURS = "tilewright, level 4"
ROUNDED = 2e-2  # of the largest magnitude that products of rounded data may be off; others 1e-5
TOLERANCE = {OURS: ROUNDED, "onnxruntime, level 4": ROUNDED}


@dataclass(frozen=True)
class Row:
    """One system at one shape: seconds of a call and GB/s of its weights at the median; medians
    over rounds of its rate over the probe's, and of the time of our float32 over its own.
    """

    bits: int
    shape: str
    threads: int
    system: str
    milliseconds: float
    gb_per_s: float
    of_probe: float
    of_float32: float


@dataclass(frozen=True)
class Weights:
    """Random weights of few bits: levels [K, N], scales [K / GROUP, N]."""

    bits: int
    levels: np.ndarray
    scales: np.ndarray

    @staticmethod
    def drawn(bits: int, inner: int, columns: int) -> Weights:
        rng = np.random.default_rng(bits)
        levels = rng.integers(0, 1 << bits, (inner, columns), np.uint8)
        scales = rng.uniform(0.001, 0.01, (inner // GROUP, columns)).astype(np.float32)
        return Weights(bits, levels, scales)

    @property
    def words(self) -> np.ndarray:
        return packed_words(self.levels, self.bits)

    @property
    def bytes(self) -> int:
        return self.levels.size * self.bits // 8 + self.scales.nbytes

    @property
    def numbers(self) -> np.ndarray:
        return dequantised(self.bits, GROUP, self.words, self.scales)


def block_product(rows: int, weights: Weights) -> tw.PrimFunc:
    """y = x W of a BlockMatMul."""
    inner, _ = weights.levels.shape
    x = te.placeholder((rows, inner), "float32", name="x")
    words = te.placeholder(weights.words.shape, "int32", name="levels", constant=True)
    scales = te.placeholder(weights.scales.shape, "float32", name="scales", constant=True)
    (y,) = BlockMatMul(weights.bits, GROUP).express(x, words, scales, name="y")
    return te.func(x, words, scales, y, name="block_product")


@dataclass(frozen=True)
class RoundedProduct:
    """The same with data rounded to bytes: a kernel that rounds, and one that multiplies."""

    rounding: tw.Kernel
    product: tw.Kernel

    @staticmethod
    def of(rows: int, weights: Weights, kind: str) -> RoundedProduct:
        """kind: of the levels of data."""
        inner, _ = weights.levels.shape
        x = te.placeholder((rows, inner), "float32", name="x")
        rounded = RoundBlocks(GROUP, kind).express(x, name="rounded")
        words = lane_words(weights.words, weights.bits, POINTS[kind])
        data = [
            te.placeholder(tensor.extents, str(tensor.dtype), name=name)
            for name, tensor in zip(("x", "x_scales", "x_sums"), rounded, strict=True)
        ]
        levels = te.placeholder(words.shape, "int32", name="levels", constant=True)
        scales = te.placeholder(weights.scales.shape, "float32", name="scales", constant=True)
        (y,) = RoundedBlockMatMul(weights.bits, GROUP).express(*data, levels, scales, name="y")
        return RoundedProduct(
            tw.build(te.func(x, *rounded, name="round_blocks")),
            tw.build(
                te.func(*data, levels, scales, y, name="rounded_product"),
                constants={"levels": words, "scales": weights.scales},
            ),
        )

    def __call__(self, x: np.ndarray, threads: int) -> np.ndarray:
        found: np.ndarray = self.product(*self.rounding(x, threads=threads), threads=threads)
        return found

    def bind_copies(self, x: np.ndarray, *, threads: int, rotated: int) -> Call:
        """A call of both, the product on copies of its weights in turn."""
        levels = self.rounding(x, threads=threads)
        first = self.rounding.bind_copies(x, threads=threads, rotated=2)
        second = self.product.bind_copies(*levels, threads=threads, rotated=rotated)

        def both() -> None:
            first()
            second()

        return both


def kind_of_data() -> str:
    """The levels of data that this machine multiplies in groups; "" for none."""
    target = host_target()
    return next((kind for kind, unit in KINDS if unit.is_on(target)), "")


def plain_product(rows: int, inner: int, columns: int) -> tw.PrimFunc:
    """y = x W of float32."""
    x = te.placeholder((rows, inner), "float32", name="x")
    w = te.placeholder((inner, columns), "float32", name="w", constant=True)
    k = te.reduce_axis(inner, name="k")
    y = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="y")
    return te.func(x, w, y, name="plain_product")


def onnx_product(rows: int, weights: Weights, level: int) -> bytes:
    """The same as a model of com.microsoft's MatMulNBits."""
    inner, columns = weights.levels.shape
    by_column = weights.words.T.copy().view(np.uint8)
    tables = {
        "w": by_column.reshape(columns, inner // GROUP, -1),
        "s": weights.scales.T.copy(),
    }
    sizes = {"K": inner, "N": columns, "bits": weights.bits, "block_size": GROUP}
    node = helper.make_node(
        "MatMulNBits", ["x", *tables], ["y"], domain="com.microsoft", accuracy_level=level, **sizes
    )
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "blocks",
        [helper.make_tensor_value_info("x", kind, [rows, inner])],
        [helper.make_tensor_value_info("y", kind, [rows, columns])],
        [numpy_helper.from_array(array, name) for name, array in tables.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model.SerializeToString()


def in_turn(calls: list[Call]) -> Call:
    """A call that takes the next one of several each time."""
    turns: Iterator[Call] = cycle(calls)
    return lambda: next(turns)()


def check(system: str, found: np.ndarray, x: np.ndarray, numbers: np.ndarray) -> None:
    """Compare a product with that in float64. Raises: ArithmeticError."""
    wanted = x.astype(np.float64) @ numbers.astype(np.float64)
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    if not error <= TOLERANCE.get(system, 1e-5):
        raise ArithmeticError(f"{system} is wrong: {error:.1e} of the largest magnitude")


def measure(
    bits: int, rows: int, shape: tuple[int, int], threads: int, rounds: int, rotated: int
) -> list[Row]:
    """All systems and the probe, in the same rounds."""
    weights = Weights.drawn(bits, *shape)
    numbers = weights.numbers
    x = np.random.default_rng(0).standard_normal((rows, shape[0])).astype(np.float32)
    copies = max(2, -(-rotated // weights.bytes))
    probe = read_peak(threads, rotated)
    kernels: dict[str, tw.Kernel | RoundedProduct] = {
        "tilewright": tw.build(
            block_product(rows, weights),
            constants={"levels": weights.words, "scales": weights.scales},
        ),
        "tilewright, float32": tw.build(plain_product(rows, *shape), constants={"w": numbers}),
    }
    if kind := kind_of_data():
        kernels[OURS] = RoundedProduct.of(rows, weights, kind)
    calls: dict[str, Call] = {"probe": probe}
    for system, kernel in kernels.items():
        check(system, kernel(x, threads=threads), x, numbers)
        plain_bytes = numbers.nbytes if system == "tilewright, float32" else weights.bytes
        several = max(2, -(-rotated // plain_bytes))
        calls[system] = kernel.bind_copies(x, threads=threads, rotated=several)
    peer = OnnxRuntime()
    for level in (0, 4) if peer.is_installed() else ():
        system, model = f"onnxruntime, level {level}", onnx_product(rows, weights, level)
        sessions = [load_peer(peer, model, {"x": x}, ("y",), threads) for _ in range(copies)]
        check(system, sessions[0].outputs()["y"], x, numbers)
        calls[system] = in_turn([session.call for session in sessions])
    counted = {key: calibrate(call) for key, call in calls.items()}
    found = interleave(calls, counted, rounds, Gate.of(threads, PATIENCE))
    peaks = [probe.rate(seconds) for seconds in found.timing("probe").samples]
    plain = found.timing("tilewright, float32").samples
    label = "x".join(map(str, (rows, *shape)))
    made = []
    for key in calls:
        samples = found.timing(key).samples
        size = numbers.nbytes if key == "tilewright, float32" else weights.bytes
        rates = peaks if key == "probe" else [size / one / 1e9 for one in samples]
        share = median(rate / peak for rate, peak in zip(rates, peaks, strict=True))
        times = median(one / own for one, own in zip(plain, samples, strict=True))
        seconds = median(samples)
        made.append(Row(bits, label, threads, key, 1e3 * seconds, median(rates), share, times))
    return made


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--rows", type=int, nargs="+", default=(1, 4, 128))
    parser.add_argument("--bits", type=int, nargs="+", default=(4, 8))
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="how many, 1 or 2")
    parser.add_argument(
        "--rotated", type=int, default=2 * host_target().l3_bytes, help="bytes of all copies"
    )
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    rows = [
        row
        for bits in options.bits
        for count in options.rows
        for shape in SHAPES[: options.shapes]
        for threads in options.threads
        for row in measure(bits, count, shape, threads, options.rounds, options.rotated)
    ]
    head = ("bits", "M x K x N", "threads", "system", "ms", "GB/s", "of the probe", "of float32")
    table = report.table(
        head,
        [
            (
                *(str(r.bits), r.shape, str(r.threads), r.system, f"{r.milliseconds:.2f}"),
                *(f"{r.gb_per_s:.1f}", f"{r.of_probe:.0%}", f"{r.of_float32:.2f}"),
            )
            for r in rows
        ],
    )
    print(table)
    if options.write:
        peers = [OnnxRuntime()] if OnnxRuntime().is_installed() else []
        report.write("block_products", table, [asdict(row) for row in rows], peers)


if __name__ == "__main__":
    main()
