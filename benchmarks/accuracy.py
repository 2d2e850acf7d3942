"""What narrower types cost in accuracy, on data: the digits network and its uneven twin, and, where
`benchmarks.fixtures.characters` has written them to a folder, a GPT of characters and its twin of
outliers.

    python -m benchmarks.accuracy [--characters FOLDER] [--write]

Digits: the share of the unseen images that is right, and the root mean square of what the scores
are off by over that of the scores. Characters: the perplexity of unseen text, and by how much it is
more than that of floats.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

import tilewright as tw
from tilewright.graph.reference.compare import relative_rms
from tilewright.graph.types import Array
from tilewright.tests.graph.precision.digits_fixture import Images, images, network, uneven_twin

from . import report

METHODS = ("minmax", "moving", "percentile", "entropy", "mse")
ITEMS, TEXTS = 100, 16  # in a run


@dataclass(frozen=True)
class AccuracyRow:
    """One engine on one model. score: right images in per cent, or perplexity; off: of scores, or
    per cent of the perplexity of floats.
    """

    model: str
    engine: str
    score: float
    off: float


def digits() -> Iterator[AccuracyRow]:
    """The network and its twin, by each method of calibration and equalised, with scales of weights
    per output channel and per tensor, on 700 images.
    """
    known, unseen = images()
    data = [known.x[at : at + ITEMS] for at in range(0, 1000, ITEMS)]
    labels = unseen.labels[: 7 * ITEMS]

    def scores(engine: tw.Engine) -> Array:
        parts = [engine(unseen.x[at : at + ITEMS]) for at in range(0, len(labels), ITEMS)]
        return np.concatenate(parts)

    for name, model in (("digits", network()), ("uneven twin", uneven_twin(network()))):
        compiled = _Compiler(model, {"x": (ITEMS, 1, 8, 8)}, data)
        exact = scores(compiled.floats())
        found = {"float32": exact}
        for weights in ("channel", "tensor"):
            for method in METHODS:
                made = compiled.bytes(method=method, weights=weights)
                found[f"int8 per {weights}, {method}"] = scores(made)
            made = compiled.bytes(equalise=True, weights=weights)
            found[f"int8 per {weights}, minmax, equalised"] = scores(made)
        for engine, logits in found.items():
            right = 100 * Images(unseen.x, labels).accuracy(logits)  # type: ignore[arg-type]
            yield AccuracyRow(name, engine, right, relative_rms(logits, exact))


def characters(folder: Path) -> Iterator[AccuracyRow]:
    """The GPT and its twin: weights of few bits, bytes with and without SmoothQuant."""
    with np.load(folder / "characters.npz") as file:
        known, unseen = file["known"], file["unseen"]
    parts = (known[at : at + TEXTS, :-1] for at in range(0, 64, TEXTS))
    data = [{"tokens": part.astype(np.int64)} for part in parts]
    for name in ("characters", "characters_outliers"):
        path = str(folder / f"{name}.onnx")
        compiled = _Compiler(path, {"tokens": (TEXTS, known.shape[1] - 1)}, data)
        engines = {"float32": compiled.floats()}
        for bits, method in ((8, "rtn"), (4, "rtn"), (4, "gptq"), (4, "awq")):
            engines[f"weights of {bits} bits, {method}"] = compiled.few_bits(bits, method)
        engines["weights of 4 bits, rtn, data of bytes"] = compiled.few_bits(4, "rtn", "int8")
        for smooth in (None, 0.5):
            engines[f"int8, smooth={smooth}"] = compiled.bytes(smooth=smooth)
        found = {engine: perplexity(made, unseen) for engine, made in engines.items()}
        for engine, score in found.items():
            yield AccuracyRow(name, engine, score, 100 * (score / found["float32"] - 1))


@dataclass(frozen=True)
class _Compiler:
    """Makes engines of a model; their kernels are proved, and not run beside references."""

    model: ModelProto | str
    shapes: dict[str, tuple[int, ...]]
    data: list[Any]

    def floats(self) -> tw.Engine:
        return tw.compile(self.model, shapes=self.shapes, verify="off")

    def bytes(self, **how: Any) -> tw.Engine:
        known = tw.calibrate(self.model, self.data, shapes=self.shapes, **how)
        return tw.compile(
            self.model, shapes=self.shapes, precision="int8", calibration=known, verify="off"
        )

    def few_bits(self, bits: int, method: str, data_type: str = "float") -> tw.Engine:
        data = None if method == "rtn" else self.data
        made = tw.quantize_weights(
            self.model,
            bits=bits,
            method=method,
            data=data,
            shapes=self.shapes,
            data_type=data_type,
        )
        return tw.compile(made, verify="off")


def perplexity(engine: tw.Engine, texts: Array) -> float:
    """Of texts, integers [n, length + 1], each by the characters before it."""
    losses = []
    for at in range(0, len(texts), TEXTS):
        part = texts[at : at + TEXTS].astype(np.int64)
        given = np.ascontiguousarray(part[:, :-1])
        (logits,) = engine.run({"tokens": given}).values()
        wide = logits.astype(np.float64)
        wide -= wide.max(axis=-1, keepdims=True)
        logs = wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))
        losses.append(-np.take_along_axis(logs, part[:, 1:, None], axis=-1).mean())
    return float(np.exp(np.mean(losses)))


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--characters", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    rows = list(digits())
    if options.characters:
        rows += characters(options.characters)
    table = report.table(
        ("model", "engine", "score", "off"),
        [(row.model, row.engine, f"{row.score:.2f}", f"{row.off:.3f}") for row in rows],
    )
    print(table)
    if options.write:
        report.write("accuracy", table, [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
