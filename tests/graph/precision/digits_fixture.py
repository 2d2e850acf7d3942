"""The digits network, its uneven twin, and images to calibrate and to test them with.

`benchmarks.fixtures.digits` trained the network and wrote what lies in the folder `digits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

FOLDER = Path(__file__).parent / "digits"
TRAINED = 1000  # images that the network has seen
SPREAD = 100.0  # of the factors of an uneven twin
CHANNELWISE = {"Relu", "GlobalAveragePool", "Flatten"}  # f(c x) = c f(x) for each channel, c > 0


@dataclass(frozen=True)
class Images:
    """Images, float32 [n, 1, 8, 8] of 0 to 1, and what they show, uint8 [n]."""

    x: NDArray[np.float32]
    labels: NDArray[np.uint8]

    def accuracy(self, scores: NDArray[np.floating]) -> float:
        """The share of the images whose largest score, of [n, 10], is that of what they show."""
        return float((scores.argmax(1) == self.labels).mean())


def images() -> tuple[Images, Images]:
    """What the network was trained on, to calibrate with, and what it has not seen, to test it."""
    with np.load(FOLDER / "digits.npz") as data:
        x, labels = data["images"][:, None].astype(np.float32) / 16, data["labels"]
    return Images(x[:TRAINED], labels[:TRAINED]), Images(x[TRAINED:], labels[TRAINED:])


def network() -> onnx.ModelProto:
    """The network: "x", float32 [n, 1, 8, 8] -> "y", float32 [n, 10]."""
    return onnx.load(FOLDER / "digits.onnx")


def uneven_twin(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The same function, with channels of very different ranges.

    Each output channel of each Conv is multiplied with a factor between 1 and SPREAD, uniform in
    its logarithm, and what the next layer multiplies that channel with is divided by it.
    """
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    weights = {stored.name: stored for stored in twin.graph.initializer}
    readers = {node.input[0]: node for node in twin.graph.node}
    generator = np.random.default_rng(seed)

    def scale(name: str, factors: NDArray[np.float64], axis: int) -> None:
        array = numpy_helper.to_array(weights[name])
        shape = [-1 if n == axis else 1 for n in range(array.ndim)]
        scaled = (array * factors.reshape(shape)).astype(np.float32)
        weights[name].CopyFrom(numpy_helper.from_array(scaled, name))

    for node in twin.graph.node:
        if node.op_type != "Conv":
            continue
        channels = numpy_helper.to_array(weights[node.input[1]]).shape[0]
        factors = SPREAD ** generator.random(channels)
        scale(node.input[1], factors, 0)
        scale(node.input[2], factors, 0)
        reader = readers[node.output[0]]
        while reader.op_type in CHANNELWISE:
            reader = readers[reader.output[0]]
        # weights of one input channel for each group have the channels in front
        depthwise = any(a.name == "group" and a.i == channels for a in reader.attribute)
        scale(reader.input[1], 1 / factors, 0 if depthwise else 1)
    return twin
