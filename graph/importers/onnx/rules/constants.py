"""Rules of the operators that are constants."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from .....graph.importers.onnx.node import NotSupported
from .....graph.importers.onnx.size_arithmetic import as_sizes
from .....graph.ops.size_values import SizeRange
from .....tir.sizes import Size, closed_shape, greatest, is_closed
from ....errors import ModelError
from ....ops.repetition import Expand
from ....types import Array, Splat, TensorType, frozen, numpy_type
from ...limits import checked_type
from ..node import NodeReader
from .data_sizes import data_range
from .rule import MOVES, ImportRule, Result


def _constant(node: NodeReader) -> Result:
    if node.given("value"):
        return node.tensor("value")
    if node.given("value_float"):
        return frozen(np.asarray(node.real("value_float", 0.0), dtype=np.float32))
    if node.given("value_int"):
        return frozen(np.asarray(node.integer("value_int"), dtype=np.int64))
    if node.given("value_floats"):
        return frozen(np.asarray(node.reals("value_floats"), dtype=np.float32))
    return frozen(np.asarray(node.integers("value_ints"), dtype=np.int64))


def _constant_of_shape(node: NodeReader) -> Result:
    shape = node.open_sizes(0)
    value = node.tensor("value") if node.given("value") else np.zeros(1, dtype=np.float32)
    if value.size != 1:
        what = TensorType(value.dtype.name, value.shape)
        raise ModelError(
            f"model: {node.title} has value {what}; expected one element.",
            code="onnx-constant-of-shape",
        )
    type_ = checked_type(
        f"the result of {node.title}", value.dtype.name, shape, node.tensors.limits
    )
    if is_closed(shape):
        return Splat(value.item(), type_.dtype, closed_shape(shape))
    return Expand(shape), (node.table("value", Splat(value.item(), type_.dtype, ())),)


def _shape(node: NodeReader) -> Result:
    shape = node.type(0).shape
    span = slice(node.integer("start", 0), node.integer("end", len(shape)))
    return as_sizes(shape[span], (len(shape[span]),))


def _size(node: NodeReader) -> Result:
    return as_sizes((node.type(0).elements,), ())


def _range(node: NodeReader) -> Result:
    found = _open_range(node)
    if found is not None:
        return found, ()
    if any(node.value(position) not in node.builder.constants for position in range(3)):
        return data_range(node)
    given = [node.constant(position) for position in range(3)]
    if any(array.size != 1 or not _is_number(array) for array in given):
        _refuse_range(node, given)
    if given[0].dtype.name == "bfloat16":
        given = [array.astype(np.float32) for array in given]
    first, limit, step = (array.item() for array in given)
    steps = (limit - first) / step if step else math.nan
    if not math.isfinite(steps):
        _refuse_range(node, given)
    count, start = max(0, math.ceil(steps)), given[0]
    what = f"the result of {node.title}"
    kind = node.type(0).dtype
    type_ = checked_type(what, kind, (count,), node.tensors.limits)
    node.tensors.account.compute(what, type_)
    return frozen((start + np.arange(count) * step).astype(numpy_type(kind)).reshape(count))


def _is_number(array: Array) -> bool:
    return array.dtype.kind in "iuf" or array.dtype.name == "bfloat16"


def _open_range(node: NodeReader) -> SizeRange | None:
    """A range of integers of which a run decides an end; None for another one."""
    if all(node.value(position) not in node.builder.sizes for position in range(3)):
        return None
    start, limit, step = (node.size(position) for position in range(3))
    if isinstance(step, Size) or step < 1:
        raise NotSupported(f"its step is {step}")
    return SizeRange(start, greatest(0, -(-(limit - start) // step)), step)


def _refuse_range(node: NodeReader, given: list[Array]) -> NoReturn:
    start, limit, step = (str(array) if array.size == 1 else str(array.shape) for array in given)
    raise ModelError(
        f"model: {node.title} has start {start}, limit {limit} and step {step}; expected one "
        "finite number each and a step other than 0.",
        code="onnx-range",
    )


RULES: dict[str, ImportRule] = {
    "Constant": ImportRule(
        (1, 9, 11, 12, 19, *MOVES),
        ("value", "value_float", "value_int", "value_floats", "value_ints"),
        _constant,
    ),
    "ConstantOfShape": ImportRule((9, 20, 21, 23, 24, 25), ("value",), _constant_of_shape),
    "Range": ImportRule((11, 27), (), _range),
    "Shape": ImportRule((1, 13, 15, 19, 21, 23, 24, 25), ("end", "start"), _shape),
    "Size": ImportRule((1, 13, 19, 21, 23, 24, 25), (), _size),
}
