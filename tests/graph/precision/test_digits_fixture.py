"""The digits network is as good as it must be, and bytes for whole tensors ruin its twin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate

from .digits_fixture import FOLDER, images, network, uneven_twin

MODELS = {"even": network, "uneven": lambda: uneven_twin(network())}
CALIBRATED = 500  # images


class _Batch(CalibrationDataReader):
    def __init__(self, x: NDArray[np.float32]) -> None:
        self.left = [{"x": x}]

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:  # type: ignore[override]
        return self.left.pop() if self.left else None


def _bytes(model: onnx.ModelProto, folder: Path, *, per_channel: bool) -> bytes:
    """The model of bytes that onnxruntime's quantiser makes of ranges between minima and maxima."""
    floats, quantised = folder / "floats.onnx", folder / "bytes.onnx"
    onnx.save(model, floats)
    quantize_static(
        str(floats),
        str(quantised),
        _Batch(images()[0].x[:CALIBRATED]),
        quant_format=QuantFormat.QDQ,
        per_channel=per_channel,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return quantised.read_bytes()


def _scores(model: onnx.ModelProto) -> NDArray[np.float32]:
    session = ort.InferenceSession(model.SerializeToString())
    scores: NDArray[np.float32] = session.run(None, {"x": images()[1].x})[0]
    return scores


def test_most_unseen_images_are_read_right() -> None:
    assert images()[1].accuracy(_scores(network())) > 0.98


def test_the_images_are_digits() -> None:
    known, unseen = images()
    assert known.x.shape == (1000, 1, 8, 8)
    assert unseen.x.shape == (797, 1, 8, 8)
    assert (known.x.min(), known.x.max()) == (0, 1)
    assert set(unseen.labels.tolist()) == set(range(10))


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 100_000


def test_the_twin_is_the_same_function() -> None:
    even, uneven = _scores(network()), _scores(uneven_twin(network()))
    assert np.abs(uneven - even).max() <= 5e-6 * np.abs(even).max()


@pytest.mark.parametrize(
    ("name", "per_channel", "least", "most"),
    [
        ("even", False, 0.98, 1.0),
        ("even", True, 0.98, 1.0),
        ("uneven", False, 0.0, 0.2),
        ("uneven", True, 0.9, 0.975),
    ],
)
def test_what_bytes_do_to_the_accuracy(
    name: str, per_channel: bool, least: float, most: float, tmp_path: Path
) -> None:
    unseen = images()[1]
    model = _bytes(MODELS[name](), tmp_path, per_channel=per_channel)
    graph = import_onnx(model, shapes={"n": len(unseen.x)})
    assert least <= unseen.accuracy(evaluate(graph, {"x": unseen.x})["y"]) <= most
