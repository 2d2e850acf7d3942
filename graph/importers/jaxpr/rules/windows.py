"""Rules of convolutions and reductions over windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .....tir.sizes import AnySize, product_of
from ....ops import pooling
from ....ops.arithmetic import Mul
from ....ops.base import highest, lowest
from ....ops.convolution import Conv
from ....ops.slicing import Spread
from ....types import inverse
from ...onnx.node import NotSupported
from ..program import Jaxpr
from ..rule import Rule
from ..writer import JaxValue, JaxWriter
from .reductions import combining
from .shapes import padded

Ints = Sequence[int]
Pads = Sequence[tuple[int, int]]


def _conv(
    w: JaxWriter,
    x: JaxValue,
    kernel: JaxValue,
    window_strides: Ints,
    padding: Pads,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: Mapping[str, Ints],
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    preferred_element_type: str | None = None,
) -> JaxValue:
    """Channels are brought in front of the spatial axes, and back; pixels of an input that stand
    apart have zeros between them.
    """
    if batch_group_count != 1:
        raise NotSupported(f"batch_group_count is {batch_group_count}, as in a gradient")
    kind = preferred_element_type or x.dtype
    data = w.transpose(w.cast(x, kind), dimension_numbers["lhs_spec"])
    weights = w.transpose(w.cast(kernel, kind), dimension_numbers["rhs_spec"])
    if any(step != 1 for step in lhs_dilation):
        data = w.emit(Spread((1, 1, *lhs_dilation)), data)
    before, behind = [max(0, low) for low, _ in padding], [max(0, high) for _, high in padding]
    cut = [(min(0, low), min(0, high), 0) for low, high in padding]
    data = padded(w, data, w.full(0, kind), [(0, 0, 0), (0, 0, 0), *cut])
    op = Conv(tuple(window_strides), (*before, *behind), tuple(rhs_dilation), feature_group_count)
    made = w.emit(op, data, weights)
    return w.transpose(made, inverse(tuple(dimension_numbers["out_spec"])))


@dataclass(frozen=True, slots=True)
class _Windows:
    """What windows run over: `shape` elements along each axis, `strides` apart."""

    shape: Ints
    strides: Ints
    padding: Pads
    base: Ints
    dilation: Ints

    @property
    def moving(self) -> list[int]:
        """The axes along which they have several elements, steps or pads."""
        rows = zip(self.shape, self.strides, self.padding, self.dilation, strict=True)
        return [
            axis
            for axis, (size, stride, pads, _) in enumerate(rows)
            if size != 1 or stride != 1 or any(pads)
        ]


def _pooled(
    w: JaxWriter, x: JaxValue, kind: type[pooling.MaxPool | pooling.SumPool], over: _Windows
) -> JaxValue:
    """A pool over the axes along which windows move; of the others two come first."""
    if any(step != 1 for step in over.base):
        raise NotSupported(f"base_dilation is {list(over.base)}; only 1 is known")
    moving = over.moving
    if not moving:
        return x
    rest = [axis for axis in range(x.rank) if axis not in moving]
    order = (*rest, *moving)
    moved = w.transpose(x, order)
    outer = moved.shape[: len(rest)]
    spatial = moved.shape[len(rest) :]
    front: tuple[AnySize, ...] = outer if len(rest) == 2 else (product_of(outer), 1)
    pads = [over.padding[axis] for axis in moving]
    op = kind(
        tuple(over.shape[axis] for axis in moving),
        tuple(over.strides[axis] for axis in moving),
        (*(low for low, _ in pads), *(high for _, high in pads)),
        tuple(over.dilation[axis] for axis in moving),
    )
    made = w.emit(op, w.reshape(moved, (*front, *spatial)))
    back = w.reshape(made, (*outer, *made.shape[2:]))
    return w.transpose(back, inverse(order))


def _largest(w: JaxWriter, x: JaxValue, over: _Windows) -> JaxValue:
    """Of truth values: whether one holds."""
    if x.dtype == "bool":
        made = _pooled(w, w.cast(x, "uint8"), pooling.MaxPool, over)
        return w.cast(made, "bool")
    return _pooled(w, x, pooling.MaxPool, over)


def _least(w: JaxWriter, x: JaxValue, over: _Windows) -> JaxValue:
    """The largest of what is negative."""
    if not x.type.is_float:
        raise NotSupported(f"it is the least of {x.dtype}; known are floats")
    minus = w.full(-1, x.dtype)
    made = _pooled(w, w.emit(Mul(), x, minus), pooling.MaxPool, over)
    return w.emit(Mul(), made, minus)


def _sum(w: JaxWriter, x: JaxValue, over: _Windows) -> JaxValue:
    """Sums of integers as those of float64, which holds them exactly where they are small."""
    if x.type.is_float:
        return _pooled(w, x, pooling.SumPool, over)
    if x.dtype in ("int64", "uint64"):
        raise NotSupported(f"it sums {x.dtype}; known are floats and integers of 32 bits")
    return w.cast(_pooled(w, w.cast(x, "float64"), pooling.SumPool, over), x.dtype)


_POOLS = {"add": _sum, "max": _largest, "min": _least, "or": _largest}
_NEUTRAL: dict[str, Callable[[str], float | int]] = {
    "add": lambda dtype: 0,
    "max": lowest,
    "min": highest,
    "or": lambda dtype: 0,
}


def _over_windows(primitive: str) -> Rule:
    def rule(
        w: JaxWriter,
        x: JaxValue,
        window_dimensions: Ints,
        window_strides: Ints,
        padding: Pads,
        base_dilation: Ints,
        window_dilation: Ints,
    ) -> JaxValue:
        over = _Windows(window_dimensions, window_strides, padding, base_dilation, window_dilation)
        return _POOLS[primitive](w, x, over)

    return rule


def _by_function(
    w: JaxWriter,
    *operands: JaxValue,
    jaxpr: Jaxpr,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
    base_dilation: Ints,
    window_dilation: Ints,
    consts: Sequence[object] = (),
) -> JaxValue:
    """By a function that is a sum or an extreme, from its neutral element on."""
    if len(operands) != 2 or consts:
        raise NotSupported(f"it reduces {len(operands) // 2} arrays together; known is one")
    x, first = operands
    primitive = combining(jaxpr)
    if primitive not in _POOLS:
        raise NotSupported(f"it combines elements by '{primitive}'; known are +, max, min, or")
    known = w.known(first)
    if known is None or known.item() != _NEUTRAL[primitive](x.dtype):
        raise NotSupported("it begins with a number that is not the neutral one")
    made: JaxValue = _over_windows(primitive)(
        w, x, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return made


RULES: dict[str, Rule] = {
    "conv_general_dilated": _conv,
    "reduce_window": _by_function,
    "reduce_window_max": _over_windows("max"),
    "reduce_window_min": _over_windows("min"),
    "reduce_window_sum": _over_windows("add"),
}
