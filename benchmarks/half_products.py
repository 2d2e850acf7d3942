"""Products and models with operands of 16 bits beside ours in float32, in the same rounds.

    python -m benchmarks.half_products [MODEL.onnx ...] [--rounds 7] [--threads 1,2] [--write]

Without models: products of usual sizes by constant weights, in each form that `precision=` may give
them; weights and data are those of a run, each kernel has copies of its own. With models: the whole
model in float32, with precision="bfloat16" and "float16" and, where it is there, OpenVINO in the
precision that it chooses itself, and in float32. "times float32" is ours in float32 over a row's
time, the median of the rounds' own ratios. The error is the relative root mean square beside
float64.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.cli.arguments import counts
from tilewright.cli.compare.peers import OpenVino, load_peer
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.compare import relative_rms
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, numpy_type
from tilewright.runtime.machine.timing import calibrate
from tilewright.runtime.measure.rounds import Gate, interleave

from . import report
from .rounds import PATIENCE

SHAPES = ((1, 4096, 4096), (8, 4096, 4096), (128, 768, 3072), (3136, 64, 256))  # M, N, K
PLAIN = "float32"
FORMS = {  # of data and weights, and what a build is allowed
    PLAIN: ("float32", "float32", ()),
    "weights in float16": ("float32", "float16", ()),
    "weights in bfloat16": ("float32", "bfloat16", ()),
    "both in bfloat16": ("bfloat16", "bfloat16", ("vdpbf16ps",)),
}
Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One way to compute a product or a model."""

    subject: str
    threads: int
    system: str
    milliseconds: float
    times_float32: float
    error: float


class OwnPrecision(OpenVino):
    """OpenVINO in the precision that it chooses on this machine."""

    def settings(self, threads: int) -> Mapping[str, str]:
        """What the session is told: nothing of a precision."""
        told = dict(super().settings(threads))
        del told["INFERENCE_PRECISION_HINT"]
        return told


def product(rows: int, columns: int, inner: int, data: str, weights: str) -> tw.PrimFunc:
    """C = A B in float32, B constant."""
    a = te.placeholder((rows, inner), data, name="A")
    b = te.placeholder((inner, columns), weights, name="B", constant=True)
    k = te.reduce_axis(inner, name="k")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(te.cast(a[i, k], PLAIN) * te.cast(b[k, j], PLAIN), axis=k)

    return te.func(a, b, te.compute((rows, columns), element, name="C"), name="product")


def products(shape: tuple[int, int, int], threads: int, rounds: int) -> list[Row]:
    """Each form of a product."""
    rows, columns, inner = shape
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(PLAIN) for s in ((rows, inner), (inner, columns)))
    wanted, calls, errors = a.astype(np.float64) @ b.astype(np.float64), dict[str, Call](), {}
    for name, (data, weights, allow) in FORMS.items():
        given = a.astype(numpy_type(data))
        kernel = tw.build(
            product(*shape, data, weights),
            constants={"B": b.astype(numpy_type(weights))},
            allow=allow,
        )
        errors[name] = relative_rms(kernel(given, threads=threads), wanted)
        calls[name] = kernel.bind_copies(given, threads=threads)
    return _rows("x".join(map(str, shape)), threads, calls, errors, rounds)


def model(path: Path, threads: int, rounds: int) -> list[Row]:
    """A model in each precision, and OpenVINO in its own."""
    graph = import_onnx(str(path))
    calls, errors = dict[str, Call](), dict[str, float]()
    given: dict[str, Array] = {}
    wanted: dict[str, Array] = {}
    for precision in (PLAIN, "bfloat16", "float16"):
        engine = tw.compile(str(path), precision=precision, verify="rewrites")
        given = given or engine.random_inputs()
        wanted = wanted or evaluate(graph, given)
        errors[precision] = _error(engine.run(given, threads=threads), wanted)
        context = engine.context(threads=threads)
        context.bind(given, engine.run(given))
        calls[precision] = context.run
    for title, peer in (("openvino", OwnPrecision()), ("openvino in float32", OpenVino())):
        if peer.is_installed():
            session = load_peer(peer, path.read_bytes(), given, tuple(wanted), threads)
            session.call()
            errors[title] = _error(session.outputs(), wanted)
            calls[title] = session.call
    return _rows(path.stem, threads, calls, errors, rounds)


def _error(got: Mapping[str, Array], wanted: Mapping[str, Array]) -> float:
    """The largest relative rms of an output."""
    return max(relative_rms(np.asarray(got[name]), array) for name, array in wanted.items())


def _rows(
    subject: str, threads: int, calls: Mapping[str, Call], errors: Mapping[str, float], rounds: int
) -> list[Row]:
    times = {name: calibrate(call) for name, call in calls.items()}
    found = interleave(dict(calls), times, rounds, Gate.of(threads, PATIENCE))
    plain = found.timing(PLAIN).samples
    return [
        Row(
            subject,
            threads,
            name,
            median(found.timing(name).samples) * 1e3,
            median(own / one for own, one in zip(plain, found.timing(name).samples, strict=True)),
            errors[name],
        )
        for name in calls
    ]


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    rows = [
        row
        for threads in options.threads
        for subject in options.models or SHAPES
        for row in (
            model(subject, threads, options.rounds)
            if isinstance(subject, Path)
            else products(subject, threads, options.rounds)
        )
    ]
    table = report.table(
        ("product or model", "threads", "system", "ms", "times float32", "error"),
        [
            (
                *(r.subject, r.threads, r.system, f"{r.milliseconds:.3f}"),
                *(f"{r.times_float32:.2f}", f"{r.error:.1e}"),
            )
            for r in rows
        ],
    )
    print(table)
    if options.write:
        peers = [peer for peer in (OpenVino(),) if options.models and peer.is_installed()]
        name = "half_models" if options.models else "half_products"
        report.write(name, table, [asdict(row) for row in rows], peers)


if __name__ == "__main__":
    main()
