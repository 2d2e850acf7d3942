"""Products of bytes and of bfloat16, scheduled by the rule, against the peak of their instructions
and against peers, in the same rounds.

    python -m benchmarks.low_precision [--rounds 7] [--threads 1,2] [--units vpdpbusd vdpbf16ps]
                                       [--write]

Weights are constant and packed at build; data comes as uint8 or bfloat16 and leaves as int32 or
float32, so quantising and converting are in nobody's time. onnxruntime runs MatMulInteger, oneDNN
(called by torch, with weights in the layout that it asks for) a product of bfloat16, which leaves
as bfloat16. Every system's product is compared with one in float64 before it is timed. The share is
against a probe of vpdpbusd or vdpbf16ps, at the same number of threads in the same rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median

import ml_dtypes
import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.cli.arguments import counts
from tilewright.cli.compare.peers import OnnxRuntime, Peer, load_peer
from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.limits import dot_peak
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .peers.matmul import OneDnn, onnx_matmul
from .rounds import PATIENCE

SHAPES = ((1024, 1024, 1024), (128, 3072, 768), (128, 768, 3072))  # M, N, K
TYPES = {"vpdpbusd": ("uint8", "int8", "int32"), "vdpbf16ps": ("bfloat16", "bfloat16", "float32")}
Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One system at one shape: G operations per second at the median, and the median over rounds
    of the probe's time per operation over its own.
    """

    unit: str
    shape: str
    threads: int
    system: str
    giga_operations: float
    share: float
    repeated_rounds: int


def product(unit: str, rows: int, columns: int, inner: int) -> tw.PrimFunc:
    """C = A B in the types of an instruction, B constant."""
    left, right, total = TYPES[unit]
    a = te.placeholder((rows, inner), left, name="A")
    b = te.placeholder((inner, columns), right, name="B", constant=True)
    k = te.reduce_axis(inner, name="k")
    c = te.compute(
        (rows, columns),
        lambda i, j: te.sum(te.cast(a[i, k], total) * te.cast(b[k, j], total), axis=k),
        name="C",
    )
    return te.func(a, b, c, name="product")


def arrays(unit: str, rows: int, columns: int, inner: int) -> tuple[np.ndarray, np.ndarray]:
    """Random operands; bytes of their whole range."""
    rng = np.random.default_rng(0)
    if unit == "vpdpbusd":
        a = rng.integers(0, 256, (rows, inner), np.uint8)
        return a, rng.integers(-128, 128, (inner, columns), np.int8)
    a, b = (rng.standard_normal(shape) for shape in ((rows, inner), (inner, columns)))
    return a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)


# what runs the products of each instruction beside us, and how far a product may be from the exact
# one, over its largest magnitude: sums of bytes are exact, oneDNN rounds its to bfloat16
PEERS: Mapping[str, Peer] = {"vpdpbusd": OnnxRuntime(), "vdpbf16ps": OneDnn()}
TOLERANCE = {"vpdpbusd": 0.0, "vdpbf16ps": 1e-2}


def check(unit: str, system: str, found: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Compare a product with that in float64, which is exact for bytes.

    Raises: ArithmeticError.
    """
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    if not error <= TOLERANCE[unit]:
        raise ArithmeticError(f"{system} is wrong: {error:.1e} of the largest magnitude")


def measure(unit: str, shape: tuple[int, int, int], threads: int, rounds: int) -> list[Row]:
    """Both systems and the probe, in the same rounds."""
    a, b = arrays(unit, *shape)
    kernel = tw.build(
        product(unit, *shape), constants={"B": b}, allow=() if unit == "vpdpbusd" else (unit,)
    )
    probe = dot_peak(unit, threads)
    calls: dict[str, Call] = {"tilewright": kernel.bind_copies(a, threads=threads), "probe": probe}
    check(unit, "tilewright", kernel(a, threads=threads), a, b)
    peer = PEERS[unit]
    if peer.is_installed():
        session = load_peer(peer, onnx_matmul(shape[0], b), {"A": a}, ("C",), threads)
        check(unit, peer.name, session.outputs()["C"], a, b)
        calls[peer.name] = session.call
    counts = {key: calibrate(call) for key, call in calls.items()}
    found = interleave(calls, counts, rounds, Gate.of(threads, PATIENCE))
    work = 2.0 * shape[0] * shape[1] * shape[2]
    peaks = [probe.rate(seconds) for seconds in found.timing("probe").samples]
    rows = []
    for key in calls:
        times = found.timing(key)
        rates = [work / seconds / 1e9 for seconds in times.samples]
        if key == "probe":
            rates = peaks
        share = median(rate / peak for rate, peak in zip(rates, peaks, strict=True))
        label = "x".join(map(str, shape))
        rows.append(Row(unit, label, threads, key, median(rates), share, found.repeated))
    return rows


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--units", nargs="+", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    rows = [
        row
        for unit in options.units
        for shape in SHAPES
        for threads in options.threads
        for row in measure(unit, shape, threads, options.rounds)
    ]
    table = report.table(
        ("instruction", "M x N x K", "threads", "system", "G operations/s", "share of the peak"),
        [
            (r.unit, r.shape, r.threads, r.system, f"{r.giga_operations:.0f}", f"{r.share:.1%}")
            for r in rows
        ],
    )
    print(table)
    if options.write:
        peers = [peer for peer in map(PEERS.__getitem__, options.units) if peer.is_installed()]
        report.write("low_precision", table, [asdict(row) for row in rows], peers)


if __name__ == "__main__":
    main()
