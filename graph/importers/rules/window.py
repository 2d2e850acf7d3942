"""Rules of the operators that slide windows: convolution and pooling."""

from __future__ import annotations

from ...errors import ModelError
from ...ops import pooling
from ...ops.convolution import Conv
from ..onnx_node import NodeReader, NotSupported
from .rule import Result, Rule, plain

WINDOW = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")


def _windows(
    node: NodeReader, kernel: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Strides, pads and dilations of windows of `kernel` taps; automatic padding is resolved."""
    n = len(kernel)
    sizes = node.type(0).shape[2:]
    strides = node.integers("strides", (1,) * n)
    dilations = node.integers("dilations", (1,) * n)
    mode = node.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return strides, node.integers("pads", (0,) * (2 * n)), dilations
    if mode == "VALID":
        return strides, (0,) * (2 * n), dilations
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise NotSupported(f"auto_pad is '{mode}'")
    if not len(sizes) == len(strides) == len(dilations) == n or min((1, *strides)) < 1:
        return strides, (0,) * (2 * n), dilations  # malformed: the operator's own check says how
    extents = [(taps - 1) * dilation + 1 for taps, dilation in zip(kernel, dilations, strict=True)]
    totals = [
        max(0, (-(-size // stride) - 1) * stride + extent - size)
        for size, stride, extent in zip(sizes, strides, extents, strict=True)
    ]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    pads = (*small, *large) if mode == "SAME_UPPER" else (*large, *small)
    return strides, pads, dilations


def _conv(node: NodeReader) -> Result:
    kernel = node.type(1).shape[2:]
    stated = node.integers("kernel_shape", kernel)
    if stated != kernel:
        raise ModelError(
            f"model: {node.title} has kernel_shape {list(stated)} and weights {node.type(1)}.",
            code="onnx-kernel-shape",
        )
    strides, pads, dilations = _windows(node, kernel)
    return Conv(strides, pads, dilations, node.integer("group", 1)), node.inputs


def _max_pool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    return pooling.MaxPool(kernel, *_windows(node, kernel), node.flag("ceil_mode")), node.inputs


def _average_pool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    windows = _windows(node, kernel)
    ceil, include = node.flag("ceil_mode"), node.flag("count_include_pad")
    return pooling.AveragePool(kernel, *windows, ceil, include), node.inputs


RULES: dict[str, Rule] = {
    "AveragePool": Rule(
        (7, 10, 11, 19, 22), (*WINDOW, "ceil_mode", "count_include_pad"), _average_pool
    ),
    "Conv": Rule((1, 11, 22), (*WINDOW, "group"), _conv),
    "GlobalAveragePool": Rule((1, 22), (), plain(pooling.GlobalAveragePool())),
    "MaxPool": Rule((1, 8, 10, 11, 12, 22), (*WINDOW, "ceil_mode", "storage_order"), _max_pool),
}
