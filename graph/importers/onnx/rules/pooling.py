"""Rules of the other pools: over all of an axis, by powers, and back to the elements that were
largest.
"""

from __future__ import annotations

from .....tir.sizes import closed_shape
from ....errors import ModelError
from ....ops.arithmetic import Mul, Pow
from ....ops.functions import Abs, Sqrt
from ....ops.movement import Identity
from ....ops.pool_places import MaxUnpool
from ....ops.pooling import SumPool
from ....ops.reduction import ReduceMax, ReduceSum
from ...limits import checked_type
from ..node import NodeReader, NotSupported
from .rule import Application, ImportRule, Result
from .slicing import surrounded
from .window import WINDOW, windows_of


def _global_max_pool(node: NodeReader) -> Result:
    return ReduceMax(_spatial_axes(node)), node.inputs


def _spatial_axes(node: NodeReader) -> tuple[int, ...]:
    """All axes but the first two. Raises: ModelError where there are none."""
    type_ = node.type(0)
    if type_.rank < 3:
        raise ModelError(
            f"model: {node.title} pools {type_}; expected batch, channels and at least one spatial "
            "axis.",
            code="onnx-pool-rank",
        )
    return tuple(range(2, type_.rank))


def _power(node: NodeReader) -> int:
    power = node.integer("p", 2)
    if power < 1:
        raise NotSupported(f"p is {power}")
    return power


def _raised(node: NodeReader, power: int) -> str:
    """The input of a node: its magnitudes to a power."""
    if power == 2:
        return node.emit(Mul(), node.value(0), node.value(0))
    value = node.emit(Abs(), node.value(0))
    return value if power == 1 else node.emit(Pow(), value, node.number(power))


def _root(node: NodeReader, power: int, value: str) -> Application:
    if power == 1:
        return Identity(), (value,)
    return (Sqrt(), (value,)) if power == 2 else (Pow(), (value, node.number(1 / power)))


def _lp_pool(node: NodeReader) -> Result:
    kernel, power = node.integers("kernel_shape"), _power(node)
    op = SumPool(kernel, *windows_of(node, kernel), node.flag("ceil_mode"))
    return _root(node, power, node.emit(op, _raised(node, power)))


def _global_lp_pool(node: NodeReader) -> Result:
    power = _power(node)
    return _root(node, power, node.emit(ReduceSum(_spatial_axes(node)), _raised(node, power)))


def _max_unpool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    strides = node.as_many("strides", (1,) * len(kernel))
    pads = node.as_many("pads", (0,) * (2 * len(kernel)))
    op, inputs = MaxUnpool(kernel, strides, pads), node.inputs[:2]
    (type_,) = op.infer(tuple(node.type(position) for position in range(2)))
    type_ = checked_type(
        f"the result of {node.title}", type_.dtype, type_.shape, node.tensors.limits
    )
    if not node.has(2):
        return op, inputs
    wanted, made = node.sizes(2), closed_shape(type_.shape)
    if len(wanted) != len(made) or any(w < m for w, m in zip(wanted, made, strict=True)):
        raise ModelError(
            f"model: {node.title} has output_shape {list(wanted)}; expected at least {list(made)}.",
            code="onnx-unpool-shape",
        )
    after = [size - least for size, least in zip(wanted, made, strict=True)]
    if not any(after):
        return op, inputs
    return surrounded(node, node.emit(op, *inputs), [0] * len(made), after)


RULES: dict[str, ImportRule] = {
    "GlobalLpPool": ImportRule((2, 22), ("p",), _global_lp_pool),
    "GlobalMaxPool": ImportRule((1, 22), (), _global_max_pool),
    "LpPool": ImportRule((2, 11, 18, 22), (*WINDOW, "ceil_mode", "p"), _lp_pool),
    "MaxUnpool": ImportRule((9, 11, 22), ("kernel_shape", "pads", "strides"), _max_unpool),
}
