"""Models in narrower precisions beside ours in float32 and peers, in the same rounds.

    python -m benchmarks.narrow_models FOLDER NAME [NAME ...] [--rounds 7] [--threads 1,2] [--write]

Reads FOLDER/NAME.onnx, which `benchmarks.export` wrote: ours in float32, with precision="bfloat16",
"float16" and "int8" (calibrated on four random inputs), and, where it is there, OpenVINO in the
precision that it chooses itself. Where FOLDER/NAME_int8.onnx is there, which `benchmarks.quantise`
wrote by ranges of such inputs, also ours, onnxruntime and OpenVINO on that. "times float32" is ours
in float32 over a row's time, the median of the rounds' own ratios. The error is the relative root
mean square beside the model of floats in float64.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.peers import OpenVino, Peer, installed, load_peer
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.compare import relative_rms
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

from . import report
from .narrow_rows import PLAIN, Call, NarrowRow, rows_of, shown
from .quantise import BATCHES, random_feed


class OwnPrecision(OpenVino):
    """OpenVINO in the precision that it chooses on this machine."""

    def settings(self, threads: int) -> Mapping[str, str]:
        """What the session is told: nothing of a precision."""
        told = dict(super().settings(threads))
        del told["INFERENCE_PRECISION_HINT"]
        return told


class _Subject:
    """A model, its engines, and what they should compute."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.data = path.read_bytes()
        generator = np.random.default_rng(0)
        model = onnx.load_model_from_string(self.data)
        feeds = [random_feed(model, generator) for _ in range(BATCHES)]
        self.given = random_feed(model, generator)
        self.wanted = evaluate(import_onnx(model), self.given)
        engines = {
            kind: tw.compile(str(path), precision=kind) for kind in (PLAIN, "bfloat16", "float16")
        }
        known = tw.calibrate(str(path), feeds)
        engines["int8"] = tw.compile(str(path), precision="int8", calibration=known)
        self.peers: list[tuple[str, Peer, bytes]] = []
        if OpenVino().is_installed():
            self.peers.append(("openvino, its own", OwnPrecision(), self.data))
        levels = path.with_name(f"{path.stem}_int8.onnx")
        if levels.is_file():
            engines["model of bytes"] = tw.compile(str(levels))
            told = levels.read_bytes()
            self.peers += [(f"{peer.name}, model of bytes", peer, told) for peer in installed()]
        self.engines = engines

    def measured(self, threads: int, rounds: int) -> list[NarrowRow]:
        """All systems, on some threads."""
        calls, errors = dict[str, Call](), dict[str, float]()
        for title, engine in self.engines.items():
            errors[title] = self.error(engine.run(self.given, threads=threads))
            context = engine.context(threads=threads)
            context.bind(self.given, engine.run(self.given))
            calls[title] = context.run
        for title, peer, model in self.peers:
            session = load_peer(peer, model, self.given, tuple(self.wanted), threads)
            session.call()
            errors[title] = self.error(session.outputs())
            calls[title] = session.call
        return rows_of(self.name, threads, calls, errors, rounds)

    def error(self, got: Mapping[str, Array]) -> float:
        """The largest relative root mean square of an output."""
        return max(relative_rms(np.asarray(got[n]), array) for n, array in self.wanted.items())


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    rows: list[NarrowRow] = []
    for name in options.names:
        subject = _Subject(options.folder / f"{name}.onnx")
        for threads in options.threads:
            rows += subject.measured(threads, options.rounds)
            print(shown("model", rows), flush=True)
    if options.write:
        report.write(
            "narrow_models", shown("model", rows), [asdict(row) for row in rows], installed()
        )


if __name__ == "__main__":
    main()
