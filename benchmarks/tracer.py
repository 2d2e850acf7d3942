"""The tracer kernel against the FMA peak and against peers on the same matmul, in the same rounds.

    python -m benchmarks.tracer [--rounds 7] [--threads 1,2] [--write]

"warm": one set of weights; "cold": weights rotated over at least 80 MB. Every row is 2MNK over the
median of the rounds; the share is against a multiply-add probe at the same number of threads in the
same rounds.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.peers import installed

from . import report
from .rounds import paired_rounds
from .subjects.gelu_matmul import SHAPES, fast, gelu_matmul

ROTATED_BYTES = 80 << 20


@dataclass(frozen=True)
class Row:
    """One measurement: GFLOP/s at the median, the share of the peak measured beside it, rounds
    repeated.
    """

    shape: str
    threads: int
    cache: str
    system: str
    gflops: float
    best_gflops: float
    share: float
    repeated_rounds: int


def weights(columns: int, inner: int, seed: int) -> dict[str, np.ndarray]:
    """Random weights scaled so that the products have a standard deviation of 1."""
    rng = np.random.default_rng(seed)
    scale = np.float32(inner**-0.5)
    return {
        "W": rng.standard_normal((inner, columns), dtype=np.float32) * scale,
        "bias": rng.standard_normal(columns, dtype=np.float32),
    }


def onnx_model(rows: int, columns: int, inner: int, constants: dict[str, np.ndarray]) -> bytes:
    """The same computation as an ONNX model: MatMul, Add, Gelu."""
    nodes = [
        helper.make_node("MatMul", ["X", "W"], ["C"]),
        helper.make_node("Add", ["C", "bias"], ["B"]),
        helper.make_node("Gelu", ["B"], ["Y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "gelu_matmul",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [rows, inner])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [rows, columns])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def rotating(calls: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """One call that takes the next of `calls` each time."""
    turn = itertools.cycle(calls)
    return lambda: next(turn)()


def measure(shape: tuple[int, int, int], threads: int, rounds: int) -> list[Row]:
    """All systems at one shape and thread count, warm and cold, in the same rounds."""
    rows, columns, inner = shape
    x = np.random.default_rng(99).standard_normal((rows, inner), dtype=np.float32)
    copies = -(-ROTATED_BYTES // (4 * columns * inner))
    schedule = tw.Schedule(gelu_matmul(*shape)).apply(fast)
    ours, theirs = [], {peer: [] for peer in installed()}
    for seed in range(copies):
        constants = weights(columns, inner, seed)
        kernel = tw.build(schedule, constants=constants, verify="all" if seed == 0 else "off")
        ours.append(kernel.bind_copies(x, threads=threads))
        model = onnx_model(*shape, constants) if theirs else b""
        for peer, made in theirs.items():
            made.append(peer.load(model, {"X": x}, ("Y",), threads).call)
    found = []
    for cache in ("warm", "cold"):
        pick = (lambda made: made[0]) if cache == "warm" else rotating
        calls = {"tilewright": pick(ours)}
        calls |= {peer.name: pick(made) for peer, made in theirs.items()}
        flops = 2.0 * rows * columns * inner
        results, found_rounds = paired_rounds(calls, flops, threads, rounds)
        label = "x".join(map(str, shape))
        for name, result in results.items():
            found.append(
                Row(
                    label,
                    threads,
                    cache,
                    name,
                    result.gflops,
                    flops / result.low / 1e9,
                    result.share,
                    found_rounds.repeated,
                )
            )
    return found


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument(
        "--write", action="store_true", help="keep the result under benchmarks/results"
    )
    options = parser.parse_args()
    rows = [
        row
        for shape in SHAPES
        for threads in options.threads
        for row in measure(shape, threads, options.rounds)
    ]
    table = report.table(
        ("M x N x K", "threads", "weights", "system", "GFLOP/s", "best", "share of peak"),
        [
            (
                r.shape,
                r.threads,
                r.cache,
                r.system,
                f"{r.gflops:.1f}",
                f"{r.best_gflops:.1f}",
                f"{r.share:.1%}",
            )
            for r in rows
        ],
    )
    print(table)
    if options.write:
        report.write("tracer", table, [asdict(row) for row in rows], installed())


if __name__ == "__main__":
    main()
