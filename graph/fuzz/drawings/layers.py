"""Layers of networks: windows, normalisations, resampling, recurrent and quantised operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from onnx import TensorProto

from .drawing import Attribute, Drawing, DrawnPoint, flat, image, scalar, shape_of, whole
from .indexed import reduced

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


def _columns(draw: DrawnPoint, value: str) -> str:
    """The last axis as channels of a signal."""
    return draw.nodes.add("Transpose", value, perm=[0, 2, 1])


def _conv(draw: DrawnPoint) -> str:
    """Of images of one channel, there and back; or of signals, in groups."""
    width = draw.width
    if draw.rng.random() < 0.5:
        group = draw.rng.choice((1, 2, width))
        weights = draw.weight(width, width // group, 3)
        space = draw.rng.choice((1, 2))
        how: dict[str, Attribute] = {"group": group, "pads": [space] * 2, "dilations": [space]}
        return _columns(draw, draw.nodes.add("Conv", _columns(draw, draw.value()), weights, **how))
    wide = draw.nodes.add("Conv", image(draw, draw.value()), draw.weight(2, 1, 3, 3), pads=[1] * 4)
    back = draw.nodes.add("Conv", wide, draw.weight(1, 2, 1, 1), draw.weight(1))
    return flat(draw, back)


def _conv_transpose(draw: DrawnPoint) -> str:
    weights = draw.weight(draw.width, draw.width, 3)
    made = draw.nodes.add("ConvTranspose", _columns(draw, draw.value()), weights, pads=[1, 1])
    return _columns(draw, made)


def _pool(op: str, draw: DrawnPoint) -> str:
    how: dict[str, Attribute] = {"kernel_shape": [3, 3], "pads": [1] * 4}
    if op == "AveragePool":
        how["count_include_pad"] = draw.rng.randrange(2)
    if op == "LpPool":
        how["p"] = draw.rng.choice((1, 2))
    return flat(draw, draw.nodes.add(op, image(draw, draw.value()), **how))


def _global_pool(op: str, draw: DrawnPoint) -> str:
    """One number of each column."""
    made = draw.nodes.add(op, _columns(draw, draw.value()))
    return draw.nodes.add("Sub", draw.value(), _columns(draw, made))


def _instance_norm(draw: DrawnPoint) -> str:
    scale, bias = draw.weight(draw.width), draw.weight(draw.width)
    made = draw.nodes.add(
        "InstanceNormalization", _columns(draw, draw.value()), scale, bias, epsilon=1e-2
    )
    return _columns(draw, made)


def _group_norm(draw: DrawnPoint) -> str:
    scale, bias = draw.weight(draw.width), draw.weight(draw.width)
    how: dict[str, Attribute] = {"num_groups": 2, "epsilon": 1e-2}
    value = _columns(draw, draw.value())
    return _columns(draw, draw.nodes.add("GroupNormalization", value, scale, bias, **how))


def _batch_norm(draw: DrawnPoint) -> str:
    scale, bias, mean = (draw.weight(draw.width) for _ in range(3))
    variance = draw.hold(np.linspace(0.5, 1.5, draw.width), "float32")
    value = _columns(draw, draw.value())
    made = draw.nodes.add("BatchNormalization", value, scale, bias, mean, variance)
    return _columns(draw, made)


def _layer_norm(draw: DrawnPoint) -> str:
    scale, bias = draw.weight(draw.width), draw.weight(draw.width)
    given = (scale, bias) if draw.rng.random() < 0.5 else (scale,)
    return draw.nodes.add("LayerNormalization", draw.value(), *given, axis=-1, epsilon=1e-2)


def _rms_norm(draw: DrawnPoint) -> str:
    scale = draw.weight(draw.width)
    return draw.nodes.add("RMSNormalization", draw.value(), scale, axis=-1, epsilon=1e-2)


def _lrn(draw: DrawnPoint) -> str:
    columns = draw.nodes.add("Unsqueeze", _columns(draw, draw.value()), draw.hold([-1]))
    made = draw.nodes.add("LRN", columns, size=draw.rng.choice((1, 3)), alpha=0.5)
    return _columns(draw, draw.nodes.add("Squeeze", made, draw.hold([-1])))


def _lp_norm(draw: DrawnPoint) -> str:
    value = draw.nodes.add("Add", draw.nodes.add("Abs", draw.value()), scalar(draw, 0.5))
    p, axis = draw.rng.choice((1, 2)), draw.rng.choice((0, 1, 2, -1))
    return draw.nodes.add("LpNormalization", value, p=p, axis=axis)


def _resize(draw: DrawnPoint) -> str:
    """The last axis is made twice as long, and short again."""
    mode = draw.rng.choice(("nearest", "linear", "cubic"))
    how: dict[str, Attribute] = {
        "mode": mode,
        "coordinate_transformation_mode": draw.rng.choice(_COORDINATES),
    }
    if mode == "nearest":
        how["nearest_mode"] = draw.rng.choice(("round_prefer_floor", "floor", "ceil"))
    twice, half = ([1, 1, 1, 2], [1, 1, 1, 0.5])
    long = draw.nodes.add("Resize", image(draw, draw.value()), "", _floats(draw, twice), **how)
    return flat(draw, draw.nodes.add("Resize", long, "", _floats(draw, half), **how))


def _floats(draw: DrawnPoint, numbers: Sequence[float]) -> str:
    return draw.hold(numbers, "float32")


def _grid_sample(draw: DrawnPoint) -> str:
    """At two places of each row, twice."""
    grid = draw.nodes.add("Reshape", draw.nodes.add("Tanh", draw.value()), draw.hold([0, 0, 2, 2]))
    words = ("bilinear", "bicubic") if draw.opset < 20 else ("linear", "cubic")
    how: dict[str, Attribute] = {
        "mode": draw.rng.choice(words),
        "padding_mode": draw.rng.choice(("zeros", "border", "reflection")),
        "align_corners": draw.rng.randrange(2),
    }
    made = draw.nodes.add("GridSample", image(draw, draw.value()), grid, **how)
    return flat(draw, draw.nodes.add("Concat", made, made, axis=3))


def _recurrent(op: str, draw: DrawnPoint) -> str:
    direction = draw.rng.choice(("forward", "reverse", "bidirectional"))
    ways, width = 1 + (direction == "bidirectional"), draw.width
    gates = _GATES[op] * width
    how: dict[str, Attribute] = {"hidden_size": width, "direction": direction}
    if op == "GRU":
        how["linear_before_reset"] = draw.rng.randrange(2)
    weights = [draw.weight(ways, gates, width), draw.weight(ways, gates, width)]
    if draw.rng.random() < 0.5:
        weights.append(draw.weight(ways, 2 * gates))
    steps = draw.nodes.add("Transpose", draw.value(), perm=[1, 0, 2])
    made = draw.nodes.add(op, steps, *weights, **how)
    mean = reduced(draw, "ReduceMean", made, [1], keepdims=0)
    return draw.nodes.add("Transpose", mean, perm=[1, 0, 2])


# -- quantised ------------------------------------------------------------------------------------


def _kind_and_zero(draw: DrawnPoint) -> tuple[str, str]:
    """A type of bytes, and a zero point of that type."""
    kind = draw.rng.choice(("uint8", "int8"))
    return kind, draw.hold(64 if kind == "uint8" else 3, kind)


def _bytes(draw: DrawnPoint) -> tuple[str, str]:
    """Whole numbers as bytes, with their zero point."""
    kind, zero = _kind_and_zero(draw)
    numbers = draw.nodes.add("Add", whole(draw), scalar(draw, 60.0 if kind == "uint8" else 0.0))
    return draw.nodes.add("Cast", numbers, to=getattr(TensorProto, kind.upper())), zero


def _quantised(draw: DrawnPoint) -> tuple[str, str, str]:
    """An input as bytes, with its scale, a power of two, and its zero point."""
    _, zero = _kind_and_zero(draw)
    scale = scalar(draw, draw.rng.choice((1 / 16, 1 / 32)))
    return draw.nodes.add("QuantizeLinear", draw.exact(), scale, zero), scale, zero


def _quantised_and_back(draw: DrawnPoint) -> str:
    return draw.nodes.add("DequantizeLinear", *_quantised(draw))


def _product_of_levels(draw: DrawnPoint) -> str:
    """A product, or a convolution, perhaps in groups, between levels, perhaps with a bias and a
    Relu. All scales are powers of two, so that sums are exact in floats, too.
    """
    data, width = draw.nodes.add("DequantizeLinear", *_quantised(draw)), draw.width
    scales = draw.hold([2.0 ** draw.rng.randint(-6, -4) for _ in range(width)], "float32")
    zeros = draw.hold([0] * width, "int8")
    if draw.rng.random() < 0.5:
        weights = draw.nodes.add("DequantizeLinear", _byte_weights(draw), scales, zeros, axis=1)
        made = draw.nodes.add("MatMul", data, weights)
    else:
        group = draw.rng.choice([n for n in (1, 2, 3, 4) if width % n == 0])
        count = 3 * width**2 // group
        drawn = np.reshape([draw.rng.randint(-8, 8) for _ in range(count)], (width, -1, 3))
        levels = draw.hold(drawn, "int8")
        weights = draw.nodes.add("DequantizeLinear", levels, scales, zeros, axis=0)
        how: dict[str, Attribute] = {"group": group, "pads": [1, 1]}
        made = _columns(draw, draw.nodes.add("Conv", _columns(draw, data), weights, **how))
    if draw.rng.random() < 0.5:
        bias = draw.hold([draw.rng.randint(-9, 9) / 16 for _ in range(width)], "float32")
        made = draw.nodes.add("Add", made, bias)
    if draw.rng.random() < 0.5:
        made = draw.nodes.add("Relu", made)
    _, zero = _kind_and_zero(draw)
    step = scalar(draw, 1 / 8)
    levels = draw.nodes.add("QuantizeLinear", made, step, zero)
    return draw.nodes.add("DequantizeLinear", levels, step, zero)


def _packed_product(draw: DrawnPoint) -> str:
    """Of weights of few levels in blocks, by columns or by one scale, between two products, so that
    there are many of them.
    """
    inner, columns = 96, 64
    most = draw.rng.choice((2, 8, 128))
    numbers = np.random.default_rng(draw.rng.randrange(1 << 30))
    levels = draw.hold(numbers.integers(-most, most, (inner, columns)), "int8")
    shapes: list[tuple[int, ...]] = [(), (columns,), (3, columns)]
    shape = draw.rng.choice(shapes if draw.opset >= 21 else shapes[:2])
    how: dict[str, Attribute] = {"axis": 0, "block_size": 32} if len(shape) > 1 else {"axis": 1}
    scales = draw.hold(numbers.uniform(0.5, 1.5, shape) / most / inner, "float32")
    zeros = [draw.hold(numbers.integers(-2, 2, shape), "int8")] if draw.rng.random() < 0.5 else []
    wide = draw.nodes.add("MatMul", draw.value(), draw.weight(draw.width, inner))
    weights = draw.nodes.add("DequantizeLinear", levels, scales, *zeros, **how if shape else {})
    made = draw.nodes.add("MatMul", wide, weights)
    return draw.nodes.add("MatMul", made, draw.weight(columns, draw.width))


def _byte_weights(draw: DrawnPoint) -> str:
    drawn = [draw.rng.randint(-8, 8) for _ in range(draw.width**2)]
    return draw.hold(np.reshape(drawn, (draw.width, draw.width)), "int8")


def _scaled(draw: DrawnPoint, sums: str) -> str:
    floats = draw.nodes.add("Cast", sums, to=TensorProto.FLOAT)
    return draw.nodes.add("Mul", floats, scalar(draw, 1 / 1024))


def _matmul_integer(draw: DrawnPoint) -> str:
    numbers, zero = _bytes(draw)
    return _scaled(draw, draw.nodes.add("MatMulInteger", numbers, _byte_weights(draw), zero))


def _conv_integer(draw: DrawnPoint) -> str:
    numbers, zero = _bytes(draw)
    drawn = np.reshape([draw.rng.randint(0, 16) for _ in range(9)], (1, 1, 3, 3))
    weights = draw.hold(drawn, "uint8")
    made = draw.nodes.add("ConvInteger", image(draw, numbers), weights, zero, pads=[1] * 4)
    return _scaled(draw, flat(draw, made))


def _qlinear_matmul(draw: DrawnPoint) -> str:
    numbers, scale, zero = _quantised(draw)
    weights, other, none = _byte_weights(draw), scalar(draw, 1 / 16), draw.hold(0, "int8")
    end = scalar(draw, 1 / 8)
    made = draw.nodes.add("QLinearMatMul", numbers, scale, zero, weights, other, none, end, zero)
    return draw.nodes.add("DequantizeLinear", made, end, zero)


def _center_crop_pad(draw: DrawnPoint) -> str:
    wide = draw.nodes.add("CenterCropPad", draw.value(), draw.hold([draw.width + 2]), axes=[2])
    return draw.nodes.add("CenterCropPad", wide, draw.hold([draw.width]), axes=[2])


def _expand(draw: DrawnPoint) -> str:
    value = draw.value()
    return draw.nodes.add("Expand", reduced(draw, "ReduceMax", value, [1]), shape_of(draw, value))


def all_drawings() -> Iterator[Drawing]:
    """Every drawing of this module."""
    yield from (Drawing(op, partial(_pool, op)) for op in ("AveragePool", "LpPool", "MaxPool"))
    names = ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
    yield from (Drawing(op, partial(_global_pool, op)) for op in names)
    yield from (Drawing(op, partial(_recurrent, op)) for op in _GATES)
    yield from (
        Drawing("Conv", _conv),
        Drawing("ConvTranspose", _conv_transpose),
        Drawing("InstanceNormalization", _instance_norm),
        Drawing("GroupNormalization", _group_norm, 21),
        Drawing("BatchNormalization", _batch_norm),
        Drawing("LayerNormalization", _layer_norm),
        Drawing("RMSNormalization", _rms_norm, 23),
        Drawing("LRN", _lrn),
        Drawing("LpNormalization", _lp_norm),
        Drawing("Resize", _resize),
        Drawing("GridSample", _grid_sample, is_closed=True),
        Drawing("QuantizeLinear", _quantised_and_back),
        Drawing("DequantizeLinear", _product_of_levels),
        Drawing("DequantizeLinear", _packed_product),
        Drawing("MatMulInteger", _matmul_integer),
        Drawing("ConvInteger", _conv_integer),
        Drawing("QLinearMatMul", _qlinear_matmul),
        Drawing("CenterCropPad", _center_crop_pad, 18),
        Drawing("Expand", _expand),
    )
