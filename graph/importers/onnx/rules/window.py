"""Rules of the operators that slide windows: convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.sizes import AnySize, closed_shape, greatest, is_closed, largest, quotient
from ....errors import ModelError
from ....ops import arithmetic, pooling
from ....ops.base import lowest
from ....ops.convolution import Conv
from ....ops.pool_places import MaxPoolPlaces
from ....ops.repetition import Expand
from ....types import Shape, Splat
from ...limits import checked_type
from ..node import Attribute, NodeReader, NotSupported
from .rule import ImportRule, Result, plain
from .slicing import AxisWalk, add, part_of, surrounded

WINDOW = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")


def stated(node: NodeReader, names: tuple[str, ...]) -> dict[str, Attribute]:
    """Those of these attributes that a node has, for another node."""
    found: dict[str, Attribute] = {}
    for name in names:
        if not node.given(name):
            continue
        if name == "auto_pad":
            found[name] = node.text(name, "NOTSET")
        elif name in ("group", "ceil_mode", "count_include_pad"):
            found[name] = node.integer(name)
        else:
            found[name] = node.integers(name)
    return found


Windows = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def windows_of(node: NodeReader, kernel: tuple[int, ...]) -> Windows:
    """Strides, pads and dilations of windows of `kernel` taps; automatic padding is resolved.

    Raises: ModelError where the padded input exceeds the limits.
    """
    strides, pads, dilations = _stated(node, kernel)
    n, x = len(kernel), node.type(0)
    if not len(x.shape) - 2 == len(strides) == len(dilations) == n or len(pads) != 2 * n:
        return strides, pads, dilations  # malformed: the operator's own check says how
    sides = zip(x.shape[2:], pads[:n], pads[n:], strict=True)
    padded = [size + max(0, before) + max(0, after) for size, before, after in sides]
    _check_padded(node, padded)
    # a stride beyond the end is as good as one to the end; one tap has no distance to another
    return (
        tuple(
            min(stride, max(1, largest(room))) for stride, room in zip(strides, padded, strict=True)
        ),
        pads,
        tuple(
            1 if taps == 1 < step else step for taps, step in zip(kernel, dilations, strict=True)
        ),
    )


def _check_padded(node: NodeReader, sizes: Sequence[AnySize]) -> None:
    """Raises: ModelError where the input, padded to spatial `sizes`, exceeds the limits."""
    x = node.type(0)
    shape = (*x.shape[:2], *sizes)
    checked_type(f"the padded input of {node.title}", x.dtype, shape, node.tensors.limits)


def _stated(node: NodeReader, kernel: tuple[int, ...]) -> Windows:
    """What the attributes say, and what they leave to be computed."""
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
        return strides, (0,) * (2 * n), dilations  # malformed, likewise
    before, after = _same_pads(node, kernel, strides, dilations)
    return strides, closed_shape((*before, *after)), dilations


def _same_pads(
    node: NodeReader, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[Shape, Shape]:
    """What goes before and behind each axis so that there are as many windows as sizes over
    strides, rounded up.
    """
    taps = zip(node.type(0).shape[2:], strides, kernel, dilations, strict=True)
    totals = [
        greatest(0, quotient(size - 1, stride) * stride + (count - 1) * step + 1 - size)
        for size, stride, count, step in taps
    ]
    small = tuple(quotient(total, 2) for total in totals)
    large = tuple(total - half for total, half in zip(totals, small, strict=True))
    return (small, large) if node.text("auto_pad", "") == "SAME_UPPER" else (large, small)


def _same_padded(
    node: NodeReader, kernel: tuple[int, ...], fill: float | int, value: str = ""
) -> tuple[str, Windows] | None:
    """The input, or a value of its spatial sizes, with `fill` around it, and windows without pads;
    None where numbers say how much.

    What a run decides of the pads is cut off again: the most that there may be stands around first.
    """
    n, rank = len(kernel), len(node.type(0).shape)
    strides = node.integers("strides", (1,) * n)
    dilations = node.integers("dilations", (1,) * n)
    mode = node.text("auto_pad", "NOTSET")
    fits = rank - 2 == len(strides) == len(dilations) == n and min((1, *strides)) == 1
    if not mode.startswith("SAME") or not fits:
        return None
    before, after = _same_pads(node, kernel, strides, dilations)
    if is_closed((*before, *after)):
        return None
    sizes = node.type(0).shape[2:]
    taps = zip(sizes, strides, kernel, dilations, strict=True)
    reached = [quotient(n - 1, stride) * stride + (k - 1) * d + 1 for n, stride, k, d in taps]
    read = zip(reached, before, sizes, strict=True)  # from the pads on, of which some are cut off
    behind = [max(0, largest(whole - pad - size)) for whole, pad, size in read]
    ends = zip(map(largest, before), sizes, behind, strict=True)
    _check_padded(node, [first + size + last for first, size, last in ends])
    first = (0, 0, *map(largest, before))
    padded = add(
        node, surrounded(node, value or node.value(0), first, (0, 0, *behind), element=fill)
    )
    pairs = enumerate(zip(before, reached, strict=True), 2)
    kept = {d: AxisWalk(largest(pad) - pad, whole) for d, (pad, whole) in pairs}
    made = add(node, part_of(padded, node.builder.types[padded].shape, kept))
    return made, (strides, (0,) * (2 * n), dilations)


def _kernel_of(node: NodeReader) -> tuple[int, ...]:
    """The taps of a convolution, as its weights have them."""
    kernel = closed_shape(node.type(1).shape[2:])
    stated = node.integers("kernel_shape", kernel)
    if stated != kernel:
        raise ModelError(
            f"model: {node.title} has kernel_shape {list(stated)} and weights {node.type(1)}.",
            code="onnx-kernel-shape",
        )
    return kernel


def convolution(node: NodeReader) -> Conv:
    """The convolution that a node's weights and attributes say."""
    strides, pads, dilations = windows_of(node, _kernel_of(node))
    return Conv(strides, pads, dilations, node.integer("group", 1))


def _conv(node: NodeReader) -> Result:
    found = _same_padded(node, _kernel_of(node), 0)
    if found is None:
        return convolution(node), node.inputs
    value, windows = found
    return Conv(*windows, node.integer("group", 1)), (value, *node.inputs[1:])


def _max_pool(node: NodeReader) -> Result:
    kernel, ceil = node.integers("kernel_shape"), node.flag("ceil_mode")
    alone = len(node.proto.output) < 2 or not node.proto.output[1]
    found = _same_padded(node, kernel, lowest(node.type(0).dtype)) if alone else None
    if found is not None:
        return pooling.MaxPool(kernel, *found[1], ceil), (found[0],)
    windows = windows_of(node, kernel)
    if alone:
        return pooling.MaxPool(kernel, *windows, ceil), node.inputs
    columns = node.flag("storage_order")
    return MaxPoolPlaces(kernel, *windows, ceil, columns), node.inputs


def _average_pool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    ceil, include = node.flag("ceil_mode"), node.flag("count_include_pad")
    found = _same_padded(node, kernel, 0)
    if found is not None:
        value, windows = found
        mean = pooling.AveragePool(kernel, *windows, ceil, include_pad=True)
        return (mean, (value,)) if include else _of_elements(node, mean, value)
    windows = windows_of(node, kernel)
    return pooling.AveragePool(kernel, *windows, ceil, include_pad=include), node.inputs


def _of_elements(node: NodeReader, mean: pooling.AveragePool, value: str) -> Result:
    """The mean of windows that counts elements alone: over the share of them that are no pads."""
    type_ = node.type(0)
    one = node.table("one", Splat(1, type_.dtype, ()))
    ones = node.emit(Expand((1, 1, *type_.shape[2:])), one)
    found = _same_padded(node, mean.kernel, 0, ones)
    assert found is not None
    return arithmetic.Div(), (node.emit(mean, value), node.emit(mean, found[0]))


RULES: dict[str, ImportRule] = {
    "AveragePool": ImportRule(
        (7, 10, 11, 19, 22), (*WINDOW, "ceil_mode", "count_include_pad"), _average_pool
    ),
    "Conv": ImportRule((1, 11, 22), (*WINDOW, "group"), _conv),
    "GlobalAveragePool": ImportRule((1, 22), (), plain(pooling.GlobalAveragePool())),
    "MaxPool": ImportRule(
        (1, 8, 10, 11, 12, 22), (*WINDOW, "ceil_mode", "storage_order"), _max_pool, outputs=2
    ),
}
