"""Sums of products of bytes less their zero points, exact in int32, as nodes of a graph.

    sum (a - p) * (b - q)  =  sum a * b  -  p * sum b  -  q * sum a  +  p * q * terms

So bytes are multiplied as they lie in memory: those on the left as uint8, constants on the right as
int8, the two that processors multiply. Whatever depends on constants alone is folded later. Of what
a run decides on the right, both stay as they are: `WordProducts` packs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ...tir.sizes import AnySize, closed, is_closed, largest, product_of
from ..ops.arithmetic import Add, Mul, Sub
from ..ops.base import Operator
from ..ops.convolution import Conv, Convolution, IntegerConv
from ..ops.functions import Cast
from ..ops.matmul import IntegerMatMul, MatMul
from ..ops.movement import Reshape
from ..ops.reduction import IntegerSum
from ..ops.repetition import Expand
from ..ops.size_values import SizeValues
from ..ops.slicing import Pad
from ..types import Constant, Shape, Splat, TensorType, array_of
from .build import GraphBuilder
from .ir import GraphNode

_TOGETHER = 4  # bytes that processors multiply and add up at once
_LANES = 4  # sums that every processor which multiplies bytes adds up in a vector
_COLUMNS = 8  # at least of a product whose operand on the right is packed in a run
_JOINED = 4  # groups at most, whose sums have zeros for what they do not share
_FEW = 16  # channels, below which those that are missing cost less than loads of single bytes


class SumWriter(Protocol):
    """What adds nodes to a graph, and constants that they bring along."""

    @property
    def builder(self) -> GraphBuilder:
        """The graph under construction."""

    def emit(self, op: Operator, *inputs: str) -> str:
        """Add a node; its value."""

    def table(self, what: str, value: Constant) -> str:
        """Add a constant; `what` ends its name."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """int8 or uint8. zero: the int32 that stands for 0, which broadcasts to them; "" for 0."""

    value: str
    zero: str = ""


def product_of_bytes(w: SumWriter, left: Bytes, right: Bytes, bias: str = "") -> str:
    """(left - p) @ (right - q) + bias: the int32 that a product of stacks of matrices sums up."""
    types = w.builder.types
    terms = types[left.value].shape[-1]
    if not (_is_one_along(w, left.zero, -1) and _is_one_along(w, right.zero, -2)):
        return _plus(w, w.emit(MatMul(), _centred(w, left), _centred(w, right)), bias)
    zeros = [_number(w, one.zero) if one.zero else 0 for one in (left, right)]
    if right.value not in constant_values(w.builder.constants, w.builder.nodes):
        p, q = zeros
        if p is not None and q is not None:
            product = w.emit(IntegerMatMul((p, q)), left.value, right.value)
            return _plus(w, product, bias)
    else:
        left, right = moved(w, left, "uint8"), moved(w, right, "int8")

    def sums(value: str, axis: int) -> str:
        return w.emit(IntegerSum((types[value].rank + axis,), True), value)

    product = w.emit(IntegerMatMul(), left.value, right.value)
    if left.zero:
        bias = _less(w, bias, w.emit(Mul(), left.zero, sums(right.value, -2)))
    if right.zero:
        product = w.emit(Sub(), product, w.emit(Mul(), right.zero, sums(left.value, -1)))
    if left.zero and right.zero:
        both = w.emit(Mul(), left.zero, right.zero)
        bias = _plus(w, bias, w.emit(Mul(), both, _count(w, terms)))
    return _plus(w, product, bias)


def constant_values(constants: Iterable[str], nodes: Iterable[GraphNode]) -> set[str]:
    """Constants, whether one of the nodes reads them yet or not, and what they alone decide."""
    known = set(constants)
    for node in nodes:
        if node.inputs and known.issuperset(node.inputs):
            known.update(node.outputs)
    return known


def is_packed(left: TensorType, right: TensorType) -> bool:
    """Whether a product is worth packing what a run decides on the right.

    Measured (Xeon, one thread, 12 times 64 x 128 bytes), beside converting all to floats: with 2
    rows 1.3 times as fast with VNNI and 1.2 with pairs of int16, with 8 rows 1.4 and 1.1; with one
    row, all is read once, and as fast where it is multiplied as it lies.
    """
    (rows, steps), columns = left.shape[-2:], right.shape[-1]
    if not is_closed((rows, steps, columns)):
        return False
    shared = left.shape[:-1] if right.rank == 2 else (rows,)
    several = largest(product_of(shared)) > 1
    return several and closed(columns) >= _COLUMNS and closed(steps) >= _TOGETHER


def fills_lanes(op: Convolution, filters: Shape) -> bool:
    """Whether a convolution has vectors of sums of the products of bytes: one of one group does;
    groups must have several channels, and they, or a few that are joined, vectors of outputs.
    """
    size = largest(filters[0]) // op.groups
    counts = (n for n in range(1, _JOINED + 1) if op.groups % n == 0)
    return op.groups == 1 or (filters[1] != 1 and any(n * size % _LANES == 0 for n in counts))


def convolution_of_bytes(
    w: SumWriter, op: Conv, data: Bytes, weights: Bytes, bias: str = ""
) -> str:
    """The int32 that a convolution of data - p with weights - q sums up, plus a bias, which
    broadcasts to it; p is one number.
    """
    left, right = moved(w, data, "uint8"), moved(w, weights, "int8")
    types = w.builder.types
    image, filters = types[left.value].shape, types[right.value].shape
    has_vectors = op.layout == "NCHW" and fills_lanes(op, filters)
    if not has_vectors or not is_closed((*image[1:], *filters)):
        return _plus(w, w.emit(op, _centred(w, data), _centred(w, weights)), bias)
    few = op.groups == 1 and closed(image[1]) < _FEW and closed(image[1]) % _TOGETHER
    if few and not right.zero:  # so that a weight of 0 counts nothing
        left, right = (_with_channels(w, one, _TOGETHER) for one in (left, right))
        image, filters = types[left.value].shape, types[right.value].shape
    integer = IntegerConv(op.strides, op.pads, op.dilations, op.groups)
    zero = _number(w, left.zero) if left.zero else 0
    is_whole = False
    if zero is not None and 0 <= zero <= 255:  # padding stands for 0: each window has all terms
        integer, is_whole = replace(integer, zero=zero), True
    product = w.emit(integer, left.value, right.value)
    if left.zero:
        sums = (
            sums_of_filters(w, right.value) if is_whole else _inside(w, integer, left, right.value)
        )
        bias = _less(w, bias, w.emit(Mul(), left.zero, sums))
    if right.zero:
        zeros = right.zero
        if types[zeros].rank == len(filters):  # a number for each filter: a channel of the result
            zeros = w.emit(Reshape((*types[zeros].shape[:1], *types[zeros].shape[2:])), zeros)
        ones = w.table("ones", Splat(1, "int8", (op.groups, *map(closed, filters[1:]))))
        sums = _of_outputs(w, w.emit(integer, left.value, ones), closed(filters[0]))
        product = w.emit(Sub(), product, w.emit(Mul(), zeros, sums))
        if left.zero:
            terms = product_of(filters[1:])
            count = _count(w, terms) if is_whole else _inside(w, integer, left, ones)
            if op.groups > 1 and not is_whole:
                count = _of_outputs(w, count, closed(filters[0]))
            both = w.emit(Mul(), left.zero, zeros)
            bias = _plus(w, bias, w.emit(Mul(), both, count))
    return _plus(w, product, bias)


def _of_outputs(w: SumWriter, sums: str, outputs: int) -> str:
    """Sums of the groups of an image, [n, groups, ...], one for each output."""
    batch, groups, *spatial = w.builder.types[sums].shape
    if groups == 1:
        return sums
    each = w.emit(Reshape((batch, groups, 1, *spatial)), sums)
    each = w.emit(Expand((batch, groups, outputs // closed(groups), *spatial)), each)
    return w.emit(Reshape((batch, outputs, *spatial)), each)


def _with_channels(w: SumWriter, bytes_: Bytes, together: int) -> Bytes:
    """Images or filters with as many channels as are multiplied together, the new ones of 0.

    The channels of an image are loaded at once then; those of filters make them count nothing.
    """
    shape = w.builder.types[bytes_.value].shape
    missing = (0, -closed(shape[1]) % together, *(0,) * (len(shape) - 2))
    return Bytes(w.emit(Pad((0,) * len(shape), missing), bytes_.value), bytes_.zero)


def _plus(w: SumWriter, one: str, other: str) -> str:
    """The sum of two values, "" for none."""
    return w.emit(Add(), one, other) if one and other else one or other


def _less(w: SumWriter, one: str, other: str) -> str:
    """What is left of a value, "" for 0, without another one, which often is a constant."""
    return w.emit(Sub(), one or w.table("nothing", Splat(0, "int32", ())), other)


def sums_of_filters(w: SumWriter, weights: str) -> str:
    """The sum of each filter, along the axis of the channels of a result."""
    count, *inner = w.builder.types[weights].shape
    sums = w.emit(IntegerSum(tuple(range(1, 1 + len(inner))), False), weights)
    return w.emit(Reshape((count, *(1,) * (len(inner) - 1))), sums)


def _inside(w: SumWriter, op: IntegerConv, data: Bytes, weights: str) -> str:
    """The sum of the weights that each window has within the data: those on padding do not count
    where a run decides what stands for 0.
    """
    sizes = w.builder.types[data.value].shape[1:]
    ones = w.table("inside", Splat(1, "uint8", (1, *map(closed, sizes))))
    return w.emit(op, ones, weights)


def is_zero(w: SumWriter, value: str) -> bool:
    """Whether a value is a constant of zeros."""
    known = w.builder.constants.get(value)
    return known is not None and not np.any(known.value if isinstance(known, Splat) else known)


def _centred(w: SumWriter, bytes_: Bytes) -> str:
    """Bytes less their zero point, as int32."""
    value = w.emit(Cast("int32"), bytes_.value)
    return w.emit(Sub(), value, bytes_.zero) if bytes_.zero else value


def moved(w: SumWriter, bytes_: Bytes, wanted: str) -> Bytes:
    """Bytes and their zero point as those of the type that processors multiply."""
    if w.builder.types[bytes_.value].dtype == wanted:
        return bytes_
    by = 128 if wanted == "uint8" else -128
    step = w.table("step", Splat(by, "int32", ()))
    value = w.emit(Cast(wanted), w.emit(Add(), w.emit(Cast("int32"), bytes_.value), step))
    known = _number(w, bytes_.zero) if bytes_.zero else 0
    if known is not None:
        return Bytes(value, w.table("zero", Splat(known + by, "int32", ())) if known + by else "")
    moved = w.emit(Add(), bytes_.zero, step)
    return Bytes(value, "" if is_zero(w, moved) else moved)


def _count(w: SumWriter, size: AnySize) -> str:
    """A size, which calls may decide, as an int32 without axes."""
    if isinstance(size, int):
        return w.table("terms", Splat(size, "int32", ()))
    name = w.builder.fresh("terms")
    w.builder.size_values(SizeValues((size,), ()), name, "int32")
    return name


def _is_one_along(w: SumWriter, zero: str, axis: int) -> bool:
    """Whether a zero point is the same for all terms of a sum, which run along an axis."""
    if not zero:
        return True
    shape = w.builder.types[zero].shape
    return len(shape) < -axis or shape[axis] == 1


def _number(w: SumWriter, value: str) -> int | None:
    """The one number that a value is; None where a run decides it."""
    known = w.builder.constants.get(value)
    one = known is not None and w.builder.types[value].elements == 1
    return int(array_of(known).item()) if known is not None and one else None
