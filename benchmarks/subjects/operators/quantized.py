"""Products and sums of levels, and what makes them."""

from __future__ import annotations

from .subject import Draw, Subject, fixed, integers, known, normal, uniform

_ROWS = normal(128, 768)
_BYTES = integers(0, 256, 128, 768, dtype="uint8")
_SCALE, _ZERO, _HALF = known(0.02), known(128, "uint8"), known(0, "int8")
_WEIGHTS = fixed(integers(-127, 128, 768, 768, dtype="int8"))
_IMAGE = integers(0, 256, 1, 64, 28, 28, dtype="uint8")
_FILTERS = fixed(integers(-127, 128, 64, 64, 3, 3, dtype="int8"))
_LEVELS: dict[str, Draw] = {"x": _BYTES, "xs": _SCALE, "xz": _ZERO}
_SECOND: dict[str, Draw] = {
    "w": integers(0, 256, 128, 768, dtype="uint8"),
    "ws": _SCALE,
    "wz": _ZERO,
}
_MADE: dict[str, Draw] = {"ys": known(0.05), "yz": _ZERO}
_MATRIX: dict[str, Draw] = {"w": _WEIGHTS, "ws": known(0.01), "wz": _HALF}
_WINDOW: dict[str, Draw] = {
    "x": _IMAGE,
    "xs": _SCALE,
    "xz": _ZERO,
    "w": _FILTERS,
    "ws": fixed(uniform(0.005, 0.01, 64)),
    "wz": _HALF,
    "ys": known(2.0),
    "yz": _ZERO,
}
_OPERANDS = "x, xs, xz, w, ws, wz, ys, yz"


def _groups(channels: int, groups: int, size: int) -> Subject:
    """A QLinearConv of as many channels as outputs, on 28x28."""
    sizes = channels, channels // groups, size, size
    window: dict[str, Draw] = {
        **_WINDOW,
        "x": integers(0, 256, 1, channels, 28, 28, dtype="uint8"),
        "w": fixed(integers(-127, 128, *sizes, dtype="int8")),
        "ws": fixed(uniform(0.005, 0.01, channels)),
    }
    pad = size // 2
    how = f"group={groups}, pads=[{pad}, {pad}, {pad}, {pad}]"
    name = f"QLinearConv {channels}x28x28 by {size}x{size} in {groups} groups"
    return Subject(name, f"y = QLinearConv <{how}> ({_OPERANDS})", window)


QUANTIZED = (
    Subject(
        "QuantizeLinear 128x768 to uint8",
        "y = QuantizeLinear(x, s, z)",
        {"x": _ROWS, "s": _SCALE, "z": _ZERO},
        13,
    ),
    Subject(
        "DequantizeLinear 128x768 of uint8",
        "y = DequantizeLinear(x, s, z)",
        {"x": _BYTES, "s": _SCALE, "z": _ZERO},
        13,
    ),
    Subject(
        "DequantizeLinear 768x768 of int8 by columns",
        "y = DequantizeLinear <axis=1> (x, s)",
        {"x": integers(-127, 128, 768, 768, dtype="int8"), "s": fixed(uniform(0.005, 0.01, 768))},
        13,
    ),
    Subject(
        "DynamicQuantizeLinear 128x768",
        "y, s, z = DynamicQuantizeLinear(x)",
        {"x": _ROWS},
        outputs=("y", "s", "z"),
    ),
    Subject(
        "MatMulInteger 128x768x768",
        "y = MatMulInteger(x, w, xz)",
        {"x": _BYTES, "w": _WEIGHTS, "xz": _ZERO},
    ),
    Subject(
        "MatMulInteger 1x768x768",
        "y = MatMulInteger(x, w, xz)",
        {"x": integers(0, 256, 1, 768, dtype="uint8"), "w": _WEIGHTS, "xz": _ZERO},
    ),
    Subject(
        "ConvInteger 64x28x28 by 3x3",
        "y = ConvInteger <pads=[1, 1, 1, 1]> (x, w, xz)",
        {"x": _IMAGE, "w": _FILTERS, "xz": _ZERO},
    ),
    Subject(
        "ConvInteger 64x28x28 by 1x1",
        "y = ConvInteger(x, w, xz)",
        {"x": _IMAGE, "w": fixed(integers(-127, 128, 64, 64, 1, 1, dtype="int8")), "xz": _ZERO},
    ),
    Subject(
        "QLinearMatMul 128x768x768",
        f"y = QLinearMatMul({_OPERANDS})",
        {**_LEVELS, **_MATRIX, **_MADE, "ys": known(1.0)},
    ),
    Subject(
        "QLinearConv 64x28x28 by 3x3", f"y = QLinearConv <pads=[1, 1, 1, 1]> ({_OPERANDS})", _WINDOW
    ),
    _groups(128, 4, 3),
    _groups(128, 32, 3),
    _groups(240, 3, 1),
    Subject(
        "QGemm 128x768x768",
        "y = com.microsoft.QGemm(x, xs, xz, w, ws, wz, b, ys, yz)",
        {
            **_LEVELS,
            **_MATRIX,
            "b": fixed(integers(-1000, 1000, 768, dtype="int32")),
            "ys": known(1.0),
            "yz": _ZERO,
        },
    ),
    Subject(
        "QLinearAdd 128x768",
        f"y = com.microsoft.QLinearAdd({_OPERANDS})",
        {**_LEVELS, **_SECOND, **_MADE},
    ),
    Subject(
        "QLinearMul 128x768",
        f"y = com.microsoft.QLinearMul({_OPERANDS})",
        {**_LEVELS, **_SECOND, **_MADE},
    ),
    Subject(
        "QLinearSigmoid 128x768",
        "y = com.microsoft.QLinearSigmoid(x, xs, xz, ys, yz)",
        {**_LEVELS, "ys": known(1 / 256), "yz": known(0, "uint8")},
    ),
    Subject(
        "DynamicQuantizeMatMul 128x768x768",
        "y = com.microsoft.DynamicQuantizeMatMul(x, w, ws, wz)",
        {"x": _ROWS, **_MATRIX},
    ),
    Subject(
        "MatMulIntegerToFloat 128x768x768",
        "y = com.microsoft.MatMulIntegerToFloat(x, w, xs, ws, xz, wz)",
        {**_LEVELS, **_MATRIX},
    ),
    Subject(
        "QAttention 128x768",
        "y = com.microsoft.QAttention <num_heads=12> (x, w, b, xs, ws, m, xz, wz)",
        {
            "x": integers(0, 256, 1, 128, 768, dtype="uint8"),
            "w": fixed(integers(-127, 128, 768, 2304, dtype="int8")),
            "b": fixed(normal(2304)),
            "xs": _SCALE,
            "ws": known(0.001),
            "m": known([128], "int32"),
            "xz": _ZERO,
            "wz": _HALF,
        },
    ),
)
