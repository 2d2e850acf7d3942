"""What a model computes with shapes of which a run decides some: the same operators, on arrays of
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....tir.sizes import (
    AnySize,
    Size,
    SizeError,
    closed_shape,
    exact_quotient,
    greatest,
    largest,
    least,
)
from ...ir.build import GraphBuilder
from ...ir.ir import GraphNode
from ...ops import arithmetic, functions, gathering, logic, movement, reduction, slicing
from ...ops.base import Operator
from ...types import TensorType, array_of

SizeArray = NDArray[np.object_]
_MOST = 1024  # elements of an operand


class _NotComputed(Exception):
    """What a node makes of sizes is for a run to compute."""


_WHOLE = ("int32", "int64", "bool")
_MOST_OF = {"int32": (1 << 31) - 1, "int64": (1 << 63) - 1}  # of what holds sizes


def sizes_of(node: GraphNode, builder: GraphBuilder) -> SizeArray | None:
    """The elements of a node's only output, where it computes with sizes that a run decides and
    nothing else that is not known; None where it does not, or nobody can say.
    """
    if not any(value in builder.sizes for value in node.inputs) or len(node.outputs) > 1:
        return None
    operands = []
    for value in node.inputs:
        type_ = builder.types[value]
        if value in builder.sizes:
            operands.append(as_sizes(builder.sizes[value].values, builder.sizes[value].shape))
        elif (
            value in builder.constants
            and type_.dtype in _WHOLE
            and largest(type_.elements) <= _MOST
        ):
            operands.append(array_of(builder.constants[value]).astype(object))
        else:
            return None
    found = _COMPUTED.get(type(node.op))
    if found is None:
        return None
    try:
        made = found(node.op, *operands)
    except (SizeError, _NotComputed):
        return None  # it is computed when the model runs
    listed = made.reshape(-1).tolist()
    most = _MOST_OF.get(node.infer(builder.types)[0].dtype, 0)
    if any(
        isinstance(value, Size) and not -most <= value.low <= value.high <= most for value in listed
    ):
        return None
    return as_sizes(tuple(listed), made.shape)


def _is_small(type_: TensorType) -> bool:
    return type_.dtype in _WHOLE and largest(type_.elements) <= _MOST


def as_sizes(values: tuple[AnySize, ...], shape: tuple[int, ...]) -> SizeArray:
    """An array of sizes."""
    made = np.empty(len(values), object)
    made[:] = [int(v) if isinstance(v, np.integer | bool | np.bool_) else v for v in values]
    return made.reshape(shape)


def _by_reference(op: Operator, *operands: SizeArray) -> SizeArray:
    """Of operators that move elements, whichever they are, or that add and multiply."""
    return np.asarray(op.reference(*operands)[0], object)


def _gather(op: Operator, x: SizeArray, indices: SizeArray) -> SizeArray:
    return np.asarray(op.reference(x, _closed(indices))[0], object)


def _closed(values: SizeArray) -> NDArray[np.int64]:
    return np.array(closed_shape(values.reshape(-1).tolist()), np.int64).reshape(values.shape)


def _each(function: Callable[..., AnySize]) -> Callable[..., SizeArray]:
    def compute(op: Operator, *operands: SizeArray) -> SizeArray:
        arrays = np.broadcast_arrays(*operands)
        made = [function(*one) for one in zip(*(array.flat for array in arrays), strict=True)]
        return as_sizes(tuple(made), arrays[0].shape)

    return compute


def _quotient(a: AnySize, b: AnySize) -> AnySize:
    """Towards zero, as the operator divides; of sizes, which are not negative, downwards."""
    if isinstance(a, int) and isinstance(b, int):
        return int(a / b) if b else 0
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    if isinstance(a, Size) and a.low >= 0:
        return a // b
    raise _NotComputed


def _where(condition: AnySize, a: AnySize, b: AnySize) -> AnySize:
    return a if condition else b


def _cast(op: Operator, x: SizeArray) -> SizeArray:
    if isinstance(op, functions.Cast) and op.to in ("int32", "int64"):
        return x
    raise _NotComputed


def _equal(a: AnySize, b: AnySize) -> AnySize:
    difference = a - b
    if isinstance(difference, int):
        return int(difference == 0)
    return int(not difference)


_COMPUTED: Mapping[type[Operator], Callable[..., Any]] = {
    arithmetic.Add: _by_reference,
    arithmetic.Sub: _by_reference,
    arithmetic.Mul: _by_reference,
    arithmetic.Div: _each(_quotient),
    arithmetic.Max: _each(greatest),
    arithmetic.Min: _each(least),
    functions.Cast: _cast,
    gathering.Gather: _gather,
    logic.Where: _each(_where),
    logic.Equal: _each(_equal),
    movement.Concat: _by_reference,
    movement.Identity: _by_reference,
    movement.Reshape: _by_reference,
    movement.Transpose: _by_reference,
    reduction.ReduceProd: _by_reference,
    reduction.ReduceSum: _by_reference,
    slicing.Slice: _by_reference,
}
