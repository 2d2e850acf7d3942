"""Models of bytes to measure on: what onnxruntime's quantiser makes of models of floats.

    python -m benchmarks.quantise FOLDER NAME [NAME ...] [--format qdq|operators]

Reads FOLDER/NAME.onnx, which `benchmarks.export` wrote, and writes FOLDER/NAME_int8.onnx: uint8
activations, by ranges of random inputs, and int8 weights with a scale for each channel, as
QuantizeLinear and DequantizeLinear around operators of floats, or as operators of levels.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

BATCHES = 4
WORDS = 1000  # below the vocabularies of all models
FORMATS = {"qdq": QuantFormat.QDQ, "operators": QuantFormat.QOperator}
Feed = dict[str, np.ndarray]


class RandomInputs(CalibrationDataReader):
    """A few batches: floats of a normal distribution, numbers of words, masks of ones."""

    def __init__(self, model: onnx.ModelProto) -> None:
        generator = np.random.default_rng(0)
        self.left = [random_feed(model, generator) for _ in range(BATCHES)]

    def get_next(self) -> Feed | None:  # type: ignore[override]
        return self.left.pop() if self.left else None


def random_feed(model: onnx.ModelProto, generator: np.random.Generator) -> Feed:
    """One of them, for a model whose sizes are all known."""
    feed = Feed()
    for value in model.graph.input:
        type_ = value.type.tensor_type
        shape = [dim.dim_value for dim in type_.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(type_.elem_type)
        if kind == np.float32:
            feed[value.name] = generator.standard_normal(shape, np.float32)
        elif "mask" in value.name:
            feed[value.name] = np.ones(shape, kind)
        else:
            most = 2 if "type" in value.name else WORDS
            feed[value.name] = generator.integers(0, most, shape).astype(kind)
    return feed


def quantise(source: Path, to: Path, form: str) -> None:
    """Write the model of bytes."""
    with TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.onnx"
        quant_pre_process(str(source), str(ready), skip_symbolic_shape=True)
        quantize_static(
            str(ready),
            str(to),
            RandomInputs(onnx.load(source, load_external_data=False)),
            quant_format=FORMATS[form],
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
        )


def main() -> None:
    """Quantise the models and say what that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--format", choices=FORMATS, default="qdq")
    args = parser.parse_args()
    for name in args.names:
        if not (args.folder / f"{name}.onnx").is_file():
            parser.error(f"there is no {name}.onnx in {args.folder}; benchmarks.export writes it")
        start = time.perf_counter()
        quantise(args.folder / f"{name}.onnx", args.folder / f"{name}_int8.onnx", args.format)
        print(f"{name}: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
