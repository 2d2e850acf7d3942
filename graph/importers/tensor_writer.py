"""What a rule of a reader writes the meaning of a node with: core operators, or operators of ONNX,
whose own rules then say what they are, so that a pool or a resize is lowered in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto

from ...tir.sizes import AnySize, closed_shape, is_closed, product_of, quotient
from ..ir.build import GraphBuilder
from ..ops.base import Number, Operator
from ..ops.functions import Cast
from ..ops.movement import Reshape, Transpose
from ..types import Array, Constant, Shape, Splat, TensorType, array_of, numpy_type
from .onnx.graph_reader import GraphReader, ModelReading
from .onnx.node import SPELLED, Attribute, NodeReader
from .onnx.tensors import TensorReader


@dataclass(frozen=True, slots=True)
class WrittenTensor:
    """A tensor of a program: its value in the builder, and its type."""

    value: str
    type: TensorType

    @property
    def shape(self) -> Shape:
        """The sizes of its axes."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """The number of its axes."""
        return self.type.rank

    @property
    def dtype(self) -> str:
        """Its element type."""
        return self.type.dtype

    def axis(self, dim: int) -> int:
        """An axis counted from the front; a tensor without axes has one to count from."""
        return dim % max(1, self.rank)


class TensorWriter:
    """Writes the nodes that one node of a program is into a builder. target: its operator."""

    def __init__(self, name: str, target: str, reader: GraphReader, tensors: TensorReader) -> None:
        self.builder: GraphBuilder = reader.builder
        proto = NodeProto(name=name, op_type=target)
        self._node = NodeReader(proto, 1, reader.builder, tensors, reader, reader.walks)

    def tensor(self, value: str) -> WrittenTensor:
        """A value of the builder."""
        return WrittenTensor(value, self.builder.types[value])

    def emit(self, op: Operator, *inputs: WrittenTensor) -> WrittenTensor:
        """A node of a core operator with one output."""
        return self.tensor(self._node.emit(op, *(one.value for one in inputs)))

    def emit_all(self, op: Operator, *inputs: WrittenTensor) -> tuple[WrittenTensor, ...]:
        """A node of a core operator; all its outputs."""
        made = self._node.emit_all(op, *(one.value for one in inputs))
        return tuple(map(self.tensor, made))

    def spell(
        self, operator: str, *inputs: WrittenTensor | None, **attributes: Attribute
    ) -> WrittenTensor:
        """A node of an operator of ONNX's own; None where an input is left out."""
        return self.spell_all(operator, 1, *inputs, **attributes)[0]

    def spell_all(
        self, operator: str, count: int, *inputs: WrittenTensor | None, **attributes: Attribute
    ) -> tuple[WrittenTensor, ...]:
        """As `spell`, with the first `count` outputs."""
        values = [one.value if one is not None else "" for one in inputs]
        while values and not values[-1]:
            values.pop()
        made = self._node.spell_all(operator, count, *values, **attributes)
        return tuple(self.tensor(value) for value in made)

    def constant(self, value: Constant) -> WrittenTensor:
        """A constant."""
        return self.tensor(self._node.table("constant", value))

    def full(self, value: Number, dtype: str, shape: tuple[int, ...] = ()) -> WrittenTensor:
        """A constant whose elements are all equal."""
        with np.errstate(over="ignore"):  # what a float16 cannot hold is infinite
            held = np.asarray(value).astype(numpy_type(dtype)).item()
        return self.constant(Splat(held, dtype, shape))

    def sizes(self, values: Sequence[AnySize]) -> WrittenTensor:
        """A list of sizes as a tensor of int64."""
        name = self.builder.fresh(f"{self._node.proto.name}.sizes")
        array = np.empty(len(values), object)
        array[:] = values
        self._node.define_sizes(name, array)
        return self.tensor(name)

    def number(self, value: Number | AnySize, dtype: str) -> WrittenTensor:
        """A number or a size as a tensor without axes."""
        if isinstance(value, bool | int | float):
            return self.full(value, dtype)
        return self.cast(self.emit(Reshape(()), self.sizes((value,))), dtype)

    def completed(self, sizes: Sequence[AnySize], total: AnySize) -> Shape:
        """Sizes of which one may be -1: what is left of a number of elements."""
        listed = list(sizes)
        if -1 in listed:
            rest = product_of(size for size in listed if size != -1)
            listed[listed.index(-1)] = quotient(total, rest) if rest != 0 else 0
        return tuple(listed)

    def reshape(self, x: WrittenTensor, shape: Sequence[AnySize]) -> WrittenTensor:
        """The elements in order under another shape, of which one size may be -1."""
        wanted = self.completed(shape, product_of(x.shape))
        return x if wanted == x.shape else self.emit(Reshape(wanted), x)

    def transpose(self, x: WrittenTensor, order: Sequence[int]) -> WrittenTensor:
        """The tensor with its axes in another order."""
        axes = tuple(order)
        return x if axes == tuple(range(x.rank)) else self.emit(Transpose(axes), x)

    def expand(self, x: WrittenTensor, shape: Sequence[AnySize]) -> WrittenTensor:
        """The tensor repeated along axes of size 1, and along new first ones."""
        wanted = tuple(shape)
        return x if wanted == x.shape else self.spell("Expand", x, self.sizes(wanted))

    def filled(
        self, shape: Sequence[AnySize], value: WrittenTensor | Number | AnySize, dtype: str
    ) -> WrittenTensor:
        """A tensor whose elements are all equal."""
        wanted = tuple(shape)
        if isinstance(value, bool | int | float) and is_closed(wanted):
            return self.full(value, dtype, closed_shape(wanted))
        one = value if isinstance(value, WrittenTensor) else self.number(value, dtype)
        return self.expand(self.cast(one, dtype), wanted)

    def cut(self, x: WrittenTensor, shape: Shape, but: int | None = None) -> WrittenTensor:
        """The first elements of each axis, as many as a shape says; all of axis `but`."""
        kept = None if but is None else x.axis(but)
        axes = [a for a in range(x.rank) if a != kept and x.shape[a] != shape[a]]
        if not axes:
            return x
        lists = ([0] * len(axes), [shape[a] for a in axes], axes)
        return self.spell("Slice", x, *(self.sizes(one) for one in lists))

    def cast(self, x: WrittenTensor, dtype: str) -> WrittenTensor:
        """The tensor with another element type; itself where it has that."""
        return x if x.dtype == dtype else self.emit(Cast(dtype), x)

    def known(self, x: WrittenTensor) -> Array | None:
        """The elements of a constant; None of a tensor that is computed."""
        constant = self.builder.constants.get(x.value)
        return None if constant is None else array_of(constant)


def started_reader(
    tensors: TensorReader, builder: GraphBuilder, reserved: frozenset[str]
) -> GraphReader:
    """What reads spelled nodes into a builder. reserved: names that must stay free."""
    model = ModelReading({"ai.onnx": SPELLED}, tensors, {}, {})
    reader = GraphReader(GraphProto(), model, builder)
    builder.reserved = reserved
    return reader
