"""Models of images of any number, height and width: a small residual network and a small U-Net."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

node = helper.make_node


@dataclass
class Network:
    """A model on its way."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[NodeProto] = field(default_factory=list)
    held: list[TensorProto] = field(default_factory=list)

    def constant(self, name: str, array: object, kind: str = "int64") -> str:
        self.held.append(numpy_helper.from_array(np.asarray(array, kind), name))
        return name

    def weights(self, name: str, *shape: int) -> str:
        fan = int(np.prod(shape[1:])) or 1
        array = self.rng.standard_normal(shape) * np.sqrt(1.5 / fan)
        return self.constant(name, array, "float32")

    def add(self, kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(
        self, x: str, name: str, shape: tuple[int, int, int], stride: int = 1, relu: bool = True
    ) -> str:
        """shape: channels in and out, and the taps along an axis."""
        given, made, taps = shape
        operands = [x, self.weights(f"{name}_w", made, given, taps, taps)]
        operands.append(self.weights(f"{name}_b", made))
        y = self.add(
            "Conv",
            operands,
            f"{name}_conv",
            kernel_shape=[taps, taps],
            strides=[stride, stride],
            pads=[taps // 2] * 4,
        )
        return self.add("Relu", [y], name) if relu else y

    def model(self, output: str, channels: int = 3) -> ModelProto:
        x = helper.make_tensor_value_info(
            "x", TensorProto.FLOAT, ["batch", channels, "height", "width"]
        )
        y = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "images", [x], [y], self.held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def residual(channels: int = 8) -> onnx.ModelProto:
    """Stem, pool, three blocks of which two halve the image, the mean over it, a product."""
    net = Network()
    stem = net.conv("x", "stem", (3, channels, 7), 2)
    x = net.add("MaxPool", [stem], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    given = channels
    for n, (made, stride) in enumerate(((channels, 1), (2 * channels, 2), (4 * channels, 2))):
        inner = net.conv(x, f"inner{n}", (given, made, 3), stride)
        outer = net.conv(inner, f"outer{n}", (made, made, 3), relu=False)
        if stride > 1:
            x = net.conv(x, f"short{n}", (given, made, 1), stride, relu=False)
        x = net.add("Relu", [net.add("Add", [outer, x], f"sum{n}")], f"block{n}")
        given = made
    mean = net.add("Flatten", [net.add("GlobalAveragePool", [x], "mean")], "flat")
    net.add("Gemm", [mean, net.weights("w", given, 5), net.weights("b", 5)], "y")
    return net.model("y")


def unet(channels: int = 4) -> onnx.ModelProto:
    """Two halvings by pools that round up, two doublings, each cut to the image beside it, as
    exporters write that: Shape, Slice of it, Concat, Slice.
    """
    net = Network()
    one = net.conv("x", "one", (3, channels, 3))
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    two = net.conv(net.add("MaxPool", [one], "half", ceil_mode=1, **pool), "two", (4, 8, 3))
    half = net.add("AveragePool", [two], "quarter", ceil_mode=1, **pool)
    x = net.conv(half, "three", (8, 8, 3))
    scales = net.constant("scales", [1, 1, 2, 2], "float32")
    start = net.constant("start", [0, 0])
    axes, first, last = (
        net.constant(name, values)
        for name, values in (("axes", [2, 3]), ("first", [2]), ("last", [4]))
    )
    ways = (("nearest", "asymmetric", two, 8), ("linear", "half_pixel", one, 4))
    for mode, places, beside, made in ways:
        wide = net.add(
            "Resize",
            [x, "", scales],
            f"wide_{mode}",
            mode=mode,
            coordinate_transformation_mode=places,
            nearest_mode="floor",
        )
        shape = net.add("Shape", [beside], f"shape_{mode}")
        end = net.add("Slice", [shape, first, last], f"end_{mode}")
        cut = net.add("Slice", [wide, start, end, axes], f"cut_{mode}")
        both = net.add("Concat", [cut, beside], f"both_{mode}", axis=1)
        x = net.conv(both, f"after_{mode}", (8 + made, 8 if mode == "nearest" else 2, 3))
    net.add("Tanh", [x], "y")
    return net.model("y")


def pyramid(channels: int = 4) -> onnx.ModelProto:
    """Three levels of features, each of the lower two added to what is above it in its own size,
    and a head in the size of the image: Shape, Slice of it, Concat, Resize.
    """
    net = Network()
    zero, two, four = (net.constant(f"at{n}", [n]) for n in (0, 2, 4))

    def sized(x: str, like: str, name: str, **attributes: object) -> str:
        ends = [(x, zero, two), (like, two, four)]
        parts = [
            net.add("Slice", [net.add("Shape", [of], f"{name}_shape{n}"), a, b], f"{name}_part{n}")
            for n, (of, a, b) in enumerate(ends)
        ]
        wanted = net.add("Concat", parts, f"{name}_sizes", axis=0)
        return net.add("Resize", [x, "", "", wanted], name, **attributes)

    low = net.conv("x", "low", (3, channels, 3), 2)
    middle = net.conv(low, "middle", (channels, channels, 3), 2)
    x = net.conv(middle, "high", (channels, channels, 3), 2)
    nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for name, lateral in (("wider", middle), ("widest", low)):
        above = sized(x, lateral, name, mode="nearest", **nearest)
        x = net.add("Add", [above, lateral], f"{name}_sum")
    x = net.conv(x, "head", (channels, 2, 1), relu=False)
    whole = sized(x, "x", "whole", mode="linear", coordinate_transformation_mode="half_pixel")
    net.add("Sigmoid", [whole], "y")
    return net.model("y")
