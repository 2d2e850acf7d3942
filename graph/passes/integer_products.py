"""Products of integers where a quantised model multiplies the numbers that these stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...tir.dtype import dtype
from ...tir.sizes import largest, product_of
from ..ir.build import GraphBuilder
from ..ir.integer_sums import (
    Bytes,
    convolution_of_bytes,
    fills_lanes,
    is_packed,
    product_of_bytes,
)
from ..ir.ir import Graph, GraphNode
from ..ops.activation import Relu
from ..ops.arithmetic import Add, Div, Mul, Sub
from ..ops.base import Operator
from ..ops.convolution import Conv, ExactConv, IntegerConv
from ..ops.functions import Cast
from ..ops.matmul import Gemm, IntegerMatMul, MatMul
from ..ops.movement import Reshape, Transpose
from ..types import Array, Constant, Splat, TensorType, array_of, owned
from .dead_code import DeadCode
from .exchange import exchanged, only_reader
from .levels import NARROW, WORDS, KnownLevels, LevelReader, Levels, Scales, Zeros, has_bytes

Numbers = TypeVar("Numbers", Scales, Zeros)

# of a sum that int32 holds, a and p, b and q as far apart as can be, and of what is added to one
MOST_TERMS = 1 << 15
_MOST_BIAS = 2**31 - 255 * 255 * MOST_TERMS
_MOST_EXACT = 2.0**24  # below which float32 has all whole numbers


@dataclass(frozen=True, slots=True)
class IntegerProducts:
    """Replace a product of numbers that bytes stand for by one of the bytes, exact in int32.

    (a - p) * r  times  (b - q) * s   ->   float(sum (a - p) * (b - q)) * (r * s)

    MatMul, Gemm and Conv; one of groups of one output in float32, where that has the sums exactly
    (`ExactConv`), of others where these fill vectors (`fills_lanes`). s and q are constants, one
    number or one for each output; b is one, too, or a run decides it, in a product of matrices that
    is worth packing it. r is one number, or one for each row of a matrix. What nobody else reads
    joins: a bias of integers at the scale r * s, or of floats, a Relu, and the division by the
    scale t of the levels to which the result is rounded, as r * s / t, which is how ONNX's
    QLinearConv has it, or the product with 1 / t.
    needs: what a target must have, since without it products of floats are faster.
    """

    keeps_rounding: ClassVar[bool] = False
    concerns = staticmethod(has_bytes)
    needs: ClassVar[tuple[str, ...]] = ("avx512+vnni", "avx2", "neon+dotprod", "neon+i8mm")

    def __call__(self, graph: Graph) -> Graph:
        return with_integer_products(graph)


def with_integer_products(graph: Graph, *, words: bool = False) -> Graph:
    """A graph whose products of levels are those of integers. words: of data of int16 with weights
    of bytes, whose sums int32 is shown to hold (`int16_products.py`); else of bytes alone.
    """
    finder = _Finder(graph, words=words)
    found = {one.ends[-1]: one for one in finder.products()}
    if not found:
        return graph
    gone = {value for one in found.values() for value in one.ends[:-1]}
    after = exchanged(graph, found, gone, lambda builder, one: _Writer(builder, one).write())
    return DeadCode()(after)


@dataclass(frozen=True, slots=True)
class _Product:
    """A product and what joins it.

    zero: that of the data where it is one number that is known; lacking: of int16, what it adds to
    each output. filters: the weights less their
    zero, of a convolution whose sums are exact in float32. factors: what the sums are
    multiplied with, one for each output or one; is_whole: they include the scale of the data. bias:
    integers, one for each output; added: floats, behind the factors. ends: the values of the nodes
    that it replaces, in order. largest: what no sum of int16 and bytes exceeds; 0 for one of bytes.
    """

    node: GraphNode
    data: Levels
    weights: KnownLevels
    zero: int | None
    factors: Scales
    is_whole: bool
    ends: tuple[str, ...]
    bias: Zeros | None = None
    added: Scales | None = None
    is_relu: bool = False
    filters: Scales | None = None
    largest: int = 0
    lacking: Zeros | None = None

    @property
    def behind(self) -> tuple[int, ...]:
        """Axes of 1 behind that of the outputs, in what broadcasts to the result."""
        is_conv = isinstance(self.node.op, Conv)
        return (1,) * (self.weights.scale.ndim - 2) if is_conv else ()


class _Finder:
    def __init__(self, graph: Graph, *, words: bool) -> None:
        self.graph = graph
        self.words = words
        self.reader = LevelReader(graph, WORDS) if words else LevelReader(graph)
        self.readers: Mapping[str, list[GraphNode]] = graph.consumers

    def products(self) -> Iterator[_Product]:
        """Each product of numbers that bytes stand for."""
        for node in self.graph.nodes:
            if isinstance(node.op, MatMul | Gemm | Conv) and (one := self._product(node)):
                yield self._with_readers(one)

    def _product(self, node: GraphNode) -> _Product | None:
        """What a node multiplies; None where it must multiply floats."""
        data = self.reader.levels(node.inputs[0])
        weights = self.reader.known_levels(node.inputs[1])
        if data is None or weights is None or not self._is_plain(node, data, weights):
            return None
        if weights.value not in self.graph.constants and not self._is_packed(node, data, weights):
            return None
        axis = output_axis(node.op, weights.scale.ndim)
        scale, zero = _along(weights.scale, axis), _along(weights.zero, axis)
        if scale is None or zero is None:
            return None
        if isinstance(node.op, Gemm):
            scale = scale * np.float32(node.op.alpha)
        own = self._number(data.scale)
        scale = scale if own is None else scale * own
        zeros = self.reader.zeros(data.zero)
        whole = None if zeros is None or zeros.size != 1 else int(zeros.reshape(()))
        found = _Product(node, data, weights, whole, scale, own is not None, node.outputs)
        summed = self._of_words(found, axis) if self.words else self._of_bytes(found)
        if summed is None or len(node.inputs) < 3:
            return summed
        return self._biased(summed, node.inputs[2])

    def _of_words(self, one: _Product, axis: int) -> _Product | None:
        """With the bound of its sums; None where they may leave int32. What a zero of the data adds
        is known of matrices and filters, not of stacks of matrices.
        """
        weights, zero = one.weights, one.zero
        is_stack = isinstance(one.node.op, MatMul) and weights.scale.ndim > 2
        if zero is None or (zero and is_stack) or weights.value not in self.graph.constants:
            return None
        by_output = self._by_output(weights, axis)
        sizes = np.abs(by_output)
        most = int(sizes.sum(axis=1).max(initial=0)) * (2**15 + abs(zero))
        if most >= 2**31 or sizes.max(initial=0) >= 2**15:
            return None
        lacking = -zero * by_output.sum(axis=1)
        return replace(one, largest=most, lacking=lacking.astype(np.int32))

    def _of_bytes(self, one: _Product) -> _Product | None:
        """With filters, where each group has one output and sums are exact in float32; None where
        its sums have no vectors.
        """
        op, types = one.node.op, self.graph.types[one.weights.value]
        if not isinstance(op, Conv) or not _has_lone_outputs(op, types):
            return one
        filters = None if one.zero is None else self._filters(one.weights)
        if filters is None and not fills_lanes(op, types.shape):
            return None
        return replace(one, filters=filters)

    def _is_packed(self, node: GraphNode, data: Levels, weights: KnownLevels) -> bool:
        """Whether a product is worth packing weights of a run in it."""
        left, right = (self.graph.types[value] for value in (data.value, weights.value))
        turned = isinstance(node.op, Gemm) and node.op.trans_b
        for order in (weights.order, (1, 0) if turned else None):
            if order is not None:
                right = TensorType(right.dtype, tuple(right.shape[axis] for axis in order))
        return not isinstance(node.op, Conv) and is_packed(left, right)

    def _by_output(self, weights: KnownLevels, axis: int) -> NDArray[np.int64]:
        """The weights less their zero, those of each output."""
        levels = array_of(self.graph.constants[weights.value]).astype(np.int64)
        if weights.order is not None:
            levels = levels.transpose(weights.order)
        moved = np.moveaxis(levels - weights.zero, axis, 0)
        return moved.reshape(moved.shape[0], math.prod(moved.shape[1:]))

    def _filters(self, weights: KnownLevels) -> Scales | None:
        """Weights less their zero, as float32; None where this does not hold the sums exactly."""
        levels = array_of(self.graph.constants[weights.value])
        filters = (levels.astype(np.int32) - weights.zero).astype(np.float32)
        is_exact = weights.order is None and _largest_sum(filters) < _MOST_EXACT
        return filters if is_exact else None

    def _number(self, value: str) -> np.float32 | None:
        """The one number that a float32 is; None where it has more, or a run decides it."""
        known = self.reader.known(value)
        return None if known is None or known.size != 1 else np.float32(known.reshape(()))

    def _is_plain(self, node: GraphNode, data: Levels, weights: KnownLevels) -> bool:
        """Whether sums of bytes are what a node computes."""
        types, op = self.graph.types, node.op
        x, w = types[data.value], types[weights.value]
        if x.dtype not in (("int16",) if self.words else NARROW) or w.dtype not in NARROW:
            return False
        match op:
            case Conv(layout="NCHW", data=None) if fills_lanes(op, w.shape):
                terms, is_row = product_of(w.shape[1:]), False
            case Conv(layout="NCHW", data=None) if _has_lone_outputs(op, w) and not self.words:
                terms, is_row = product_of(w.shape[1:]), False
            case Gemm(trans_a=False, beta=1.0) | MatMul():
                terms, is_row = x.shape[-1], True
            case _:
                return False
        if not 0 < largest(terms) <= MOST_TERMS:
            return False
        if data.zero and types[data.zero].is_float and self.reader.zeros(data.zero) is None:
            return False
        return all(
            types[value].elements == 1 or (is_row and _is_of_rows(types[value].shape, x.rank))
            for value in (data.scale, data.zero)
            if value
        )

    def _biased(self, one: _Product, value: str) -> _Product | None:
        """With a bias for each output, of integers where it has the scale of the sums; None for
        what is no constant.
        """
        outputs = largest(self.graph.types[one.ends[0]].shape[-1 - len(one.behind)])
        levels = self.reader.known_levels(value)
        if levels is not None:
            whole = self.reader.known(levels.value)
            if whole is None or levels.order is not None:
                return None
            bias, scale = whole.reshape(-1).astype(np.int32), levels.scale.reshape(-1)
            most = 2**31 - one.largest if self.words else _MOST_BIAS
            if one.filters is not None:
                most = int(_MOST_EXACT - _largest_sum(one.filters))
            small = bias.size > 0 and bias.min() > -most and bias.max() < most
            plain = small and bias.size == outputs and not levels.zero.any()
            if plain and one.is_whole and np.all(scale == one.factors):
                return replace(one, bias=bias)
            numbers = (bias - levels.zero.reshape(-1)).astype(np.float32) * scale
        else:
            known = self.reader.known(value)
            if known is None:
                return None
            numbers = known.reshape(-1).astype(np.float32)
        fits = numbers.size in (1, outputs)
        return replace(one, added=np.broadcast_to(numbers, (outputs,))) if fits else None

    def _with_readers(self, one: _Product) -> _Product:
        """With the nodes behind it, each the only reader of the one before."""
        while (after := only_reader(self.graph, one.ends[-1], self.readers)) is not None:
            joined = self._joined(one, after)
            if joined is None:
                break
            one = replace(joined, ends=(*one.ends, after.outputs[0]))
            if isinstance(after.op, Div | Mul):
                break
        return one

    def _joined(self, one: _Product, after: GraphNode) -> _Product | None:
        value, types = one.ends[-1], self.graph.types
        if types[after.outputs[0]] != types[value]:
            return None
        match after.op:
            case Relu():
                return replace(one, is_relu=True)
            case Add() if one.bias is None and one.added is None and not one.is_relu:
                other = after.inputs[1 - after.inputs.index(value)]
                count = types[value].shape[-1 - len(one.behind)]
                given, alone = types[other], (count, *one.behind)
                is_list = given.shape[-len(alone) :] == alone and given.elements == count
                return self._biased(one, other) if is_list else None
            case Div() if after.inputs[0] == value and one.is_whole:
                step = self._number(after.inputs[1])
                if step is None or not step > 0:
                    return None
                added = None if one.added is None else one.added / step
                return replace(one, factors=one.factors / step, added=added)
            case Mul() if one.is_whole:
                factor = self._number(after.inputs[1 - after.inputs.index(value)])
                if factor is None or not factor > 0:
                    return None
                added = None if one.added is None else one.added * factor
                return replace(one, factors=one.factors * factor, added=added)
        return None


def _has_lone_outputs(op: Conv, weights: TensorType) -> bool:
    """Whether each group has one output, as those of a depthwise convolution."""
    return op.groups > 1 and op.groups == weights.shape[0]


def output_axis(op: Operator, rank: int) -> int:
    """The axis of weights that is one of the result's."""
    return 0 if isinstance(op, Conv) or (isinstance(op, Gemm) and op.trans_b) else rank - 1


def _largest_sum(filters: Scales) -> float:
    """What no sum of filters of whole numbers with bytes exceeds, less a zero times the filter or
    not.
    """
    return float(2 * 255 * np.abs(filters).reshape(filters.shape[0], -1).sum(axis=1).max(initial=0))


def _is_of_rows(shape: tuple[object, ...], rank: int) -> bool:
    """Whether numbers of this shape are the same along the rows of matrices of so many axes."""
    return len(shape) == rank and shape[-1] == 1


def _along(numbers: Numbers, axis: int) -> Numbers | None:
    """Numbers that differ along one axis alone, as a list, as one number where there is one."""
    if numbers.size == 1:
        return numbers.reshape(())
    alone = all(size == 1 for n, size in enumerate(numbers.shape) if n != axis)
    return numbers.reshape(-1) if alone else None


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes a product; it is what adds its nodes, too (`SumWriter`)."""

    builder: GraphBuilder
    one: _Product

    def emit(self, op: Operator, *inputs: str) -> str:
        name = self.builder.fresh(f"{self.one.ends[-1]}.{op.title.lower()}")
        return self.builder.add(op, *inputs, output=name, name=self.one.node.name)

    def table(self, what: str, value: Constant) -> str:
        return self.builder.constant(self.builder.fresh(f"{self.one.ends[-1]}.{what}"), value)

    def write(self) -> None:
        """The sums, what is added to them, the factors, and what follows."""
        one = self.one
        steps: list[tuple[Operator, tuple[str, ...]]] = []
        if one.filters is not None:
            sums = self._exact_sums(one.filters)
        else:
            sums = self._sums("" if one.bias is None else self._list("bias", one.bias))
            steps.append((Cast("float32"), ()))
        steps.append((Mul(), (self._list("factor", one.factors),)))
        if not one.is_whole:
            steps.append((Mul(), (one.data.scale,)))
        if one.added is not None:
            steps.append((Add(), (self._list("bias", one.added),)))
        if one.is_relu:
            steps.append((Relu(), ()))
        *before, (op, others) = steps
        for step, operands in before:
            sums = self.emit(step, sums, *operands)
        self.builder.add(op, sums, *others, output=one.ends[-1], name=one.node.name)

    def _sums(self, bias: str) -> str:
        op, weights = self.one.node.op, self.one.weights
        if self.one.lacking is not None:
            return self._sums_of_words(self.one.lacking)
        data = Bytes(self._byte(self.one.data.value), self._data_zero())
        value, zero = self._byte(weights.value), weights.zero
        if weights.order is not None:
            value = self.emit(Transpose(weights.order), value)
        if isinstance(op, Gemm) and op.trans_b:
            value, zero = self.emit(Transpose((1, 0)), value), zero.T
        right = Bytes(value, self.table("zero", _constant(zero)) if zero.any() else "")
        if isinstance(op, Conv):
            return convolution_of_bytes(self, op, data, right, bias)
        return product_of_bytes(self, data, right, bias)

    def _sums_of_words(self, lacking: Zeros) -> str:
        """Sums of products of numbers of 16 bits, those of the weights made of bytes at build. In
        int32 they may wrap around until what they lack is added.
        """
        op, weights, data = self.one.node.op, self.one.weights, self.one.data.value
        value = self.emit(Cast("int16"), weights.value)
        if weights.order is not None:
            value = self.emit(Transpose(weights.order), value)
        if weights.zero.any():
            zero = self.table("zero", _constant(weights.zero.astype(np.int16)))
            value = self.emit(Sub(), value, zero)
        if isinstance(op, Gemm) and op.trans_b:
            value = self.emit(Transpose((1, 0)), value)
        integer: Operator = IntegerMatMul()
        if isinstance(op, Conv):
            zero_ = self.one.zero or 0
            integer = IntegerConv(op.strides, op.pads, op.dilations, op.groups, zero=zero_)
        sums = self.emit(integer, data, value)
        bias = lacking if self.one.bias is None else lacking + self.one.bias
        return self.emit(Add(), sums, self._list("bias", bias)) if bias.any() else sums

    def _exact_sums(self, filters: Scales) -> str:
        """The sums of a convolution in float32, and what is added to them."""
        one, zero = self.one, self.one.zero or 0
        op = one.node.op
        assert isinstance(op, Conv)
        exact = ExactConv(op.strides, op.pads, op.dilations, op.groups, zero=zero)
        sums = self.emit(exact, self._byte(one.data.value), self.table("filters", owned(filters)))
        bias = -zero * filters.reshape(filters.shape[0], -1).sum(axis=1)
        if one.bias is not None:
            bias = bias + one.bias.astype(np.float32)
        return self.emit(Add(), sums, self._list("bias", bias)) if bias.any() else sums

    def _byte(self, value: str) -> str:
        """Levels of fewer bits than 8 as bytes."""
        name = self.builder.types[value].dtype
        if dtype(name).bits == 8:
            return value
        return self.emit(Cast("uint8" if name.startswith("u") else "int8"), value)

    def _data_zero(self) -> str:
        """The zero of the data as int32, without axes where it is one number."""
        value, known = self.one.data.zero, self.one.zero
        if known is not None:
            return self.table("zero", Splat(known, "int32", ())) if known else ""
        if self.builder.types[value].elements == 1 and self.builder.types[value].rank:
            value = self.emit(Reshape(()), value)
        return self.emit(Cast("int32"), value)

    def _list(self, what: str, numbers: Scales | Zeros) -> str:
        """One number for each output, or one for all."""
        if numbers.ndim == 0 or np.all(numbers == numbers[:1]):
            return self.table(what, Splat(numbers.reshape(-1)[0].item(), str(numbers.dtype), ()))
        return self.table(what, _constant(numbers.reshape(-1, *self.one.behind)))


def _constant(array: Array) -> Constant:
    return owned(np.ascontiguousarray(array))
