"""Rules of operators on sequences and optional values. The graph has none: a sequence is known as
the tensors in it, so positions and sizes of pieces must be constants when the model is read.
"""

from __future__ import annotations

import numpy as np

from .....tir.sizes import closed
from ....errors import ModelError
from ....ops.base import normal_axis
from ....ops.movement import Concat, Identity, Reshape
from ....types import frozen
from ..node import NodeReader, NotSupported
from ..structures import NoElement, TensorSequence, Value, structures_of
from .rule import ImportRule, Result, Values
from .slicing import AxisWalk, part_of
from .variadic import joined


def tensor(node: NodeReader, position: int) -> str:
    """An input that is a tensor. Raises: ModelError when it is none."""
    value = node.structured(position)
    if isinstance(value, str):
        return value
    raise ModelError(
        f"model: input {position} of {node.title} is {value}; expected a tensor.",
        code="onnx-sequence-element",
    )


def _position(node: NodeReader, position: int, default: int, most: int) -> int:
    """Where in a sequence an input points, from the front. most: the last place."""
    place = node.whole(position) if node.has(position) else default
    found = place + len(node.sequence(0).elements) if place < 0 else place
    if 0 <= found <= most:
        return found
    raise ModelError(
        f"model: {node.title} has position {place} in {node.sequence(0)}.", code="onnx-position"
    )


def _construct(node: NodeReader) -> Result:
    return Values((TensorSequence(tuple(tensor(node, n) for n in range(len(node.inputs)))),))


def _empty(node: NodeReader) -> Result:
    return Values((TensorSequence(()),))


def _insert(node: NodeReader) -> Result:
    elements = node.sequence(0).elements
    place = _position(node, 2, len(elements), len(elements))
    made = (*elements[:place], tensor(node, 1), *elements[place:])
    return Values((TensorSequence(made),))


def _erase(node: NodeReader) -> Result:
    elements = node.sequence(0).elements
    place = _position(node, 1, -1, len(elements) - 1)
    return Values((TensorSequence((*elements[:place], *elements[place + 1 :])),))


def _at(node: NodeReader) -> Result:
    elements = node.sequence(0).elements
    return Identity(), (elements[_position(node, 1, 0, len(elements) - 1)],)


def _length(node: NodeReader) -> Result:
    return frozen(np.asarray(len(node.sequence(0).elements), np.int64))


def _split(node: NodeReader) -> Result:
    """Pieces of one size, the last of which may be smaller; of the sizes that are listed; or slices
    without the axis, unless it is kept.
    """
    value, type_ = tensor(node, 0), node.type(0)
    axis = normal_axis(Identity(), node.integer("axis", 0), type_.rank)
    extent = closed(type_.shape[axis])
    if node.has(1) and node.type(1).rank == 1:
        sizes = list(node.sizes(1, 1 << 20))
    else:
        size = node.whole(1) if node.has(1) else 1
        count = -(-extent // size) if size > 0 else 0
        if count > node.tensors.limits.nodes:
            raise NotSupported(
                f"it makes {count} pieces; expected at most {node.tensors.limits.nodes}"
            )
        sizes = [min(size, extent - n * size) for n in range(count)]
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise ModelError(
            f"model: {node.title} splits axis {axis} of {type_} into {sizes}; expected {extent} "
            "together.",
            code="onnx-split-sequence",
        )
    pieces, begin = list[str](), 0
    for size in sizes:
        op, inputs = part_of(value, type_.shape, {axis: AxisWalk(begin, size)})
        piece, begin = node.emit(op, *inputs), begin + size
        if not node.has(1) and not node.integer("keepdims", 1):
            shape = (*type_.shape[:axis], *type_.shape[axis + 1 :])
            piece = node.emit(Reshape(shape), piece)
        pieces.append(piece)
    return Values((TensorSequence(tuple(pieces)),))


def _concat(node: NodeReader) -> Result:
    elements, types = node.sequence(0).elements, node.builder.types
    if not elements:
        raise NotSupported("its sequence has no tensor; expected one or more")
    is_new = node.flag("new_axis")
    shape = types[elements[0]].shape
    axis = normal_axis(Concat(0), node.integer("axis"), len(shape) + is_new)
    if is_new:
        elements = stacked(node, elements, axis)
    return joined(node, Concat(axis), elements)


def stacked(node: NodeReader, values: tuple[str, ...], axis: int) -> tuple[str, ...]:
    """The tensors with one axis more, of one element."""
    made = []
    for value in values:
        shape = node.builder.types[value].shape
        made.append(node.emit(Reshape((*shape[:axis], 1, *shape[axis:])), value))
    return tuple(made)


def _map(node: NodeReader) -> Result:
    """The body once for each tensor of the first sequence, on those of the others beside it, and on
    the same tensors each time.
    """
    first, made = node.sequence(0), list[tuple[Value, ...]]()
    values = [node.structured(n) for n in range(len(node.inputs))]
    lengths = {len(value.elements) for value in values if isinstance(value, TensorSequence)}
    if len(lengths) > 1:
        raise ModelError(
            f"model: {node.title} takes sequences of {sorted(lengths)} tensors; expected as many "
            "in each.",
            code="onnx-sequence-map",
        )
    for number in range(len(first.elements)):
        given = [v.elements[number] if isinstance(v, TensorSequence) else v for v in values]
        made.append(node.inline("body", given))
    if any(not isinstance(value, str) for row in made for value in row):
        raise NotSupported("its body gives a sequence; expected tensors")
    columns = range(len(node.proto.output))
    return Values(tuple(TensorSequence(tuple(str(row[n]) for row in made)) for n in columns))


def _optional(node: NodeReader) -> Result:
    if not node.has(0):
        return Values((NoElement(),))
    return Values((node.structured(0),))


def _has_element(node: NodeReader) -> Result:
    is_there = node.has(0) and not isinstance(node.structured(0), NoElement)
    return frozen(np.asarray(is_there))


def _get_element(node: NodeReader) -> Result:
    value = node.structured(0)
    if isinstance(value, NoElement):
        raise ModelError(
            f"model: {node.title} takes the element of {structures_of((value,))[0]}.",
            code="onnx-no-element",
        )
    return Values((value,))


RULES: dict[str, ImportRule] = {
    "ConcatFromSequence": ImportRule((11,), ("axis", "new_axis"), _concat, takes_structures=True),
    "Optional": ImportRule((15, 28), ("type",), _optional, takes_structures=True),
    "OptionalGetElement": ImportRule((15, 18, 28), (), _get_element, takes_structures=True),
    "OptionalHasElement": ImportRule((15, 18, 28), (), _has_element, takes_structures=True),
    "SequenceAt": ImportRule((11,), (), _at, takes_structures=True),
    "SequenceConstruct": ImportRule((11,), (), _construct, takes_structures=True),
    "SequenceEmpty": ImportRule((11,), ("dtype",), _empty),
    "SequenceErase": ImportRule((11,), (), _erase, takes_structures=True),
    "SequenceInsert": ImportRule((11,), (), _insert, takes_structures=True),
    "SequenceLength": ImportRule((11,), (), _length, takes_structures=True),
    "SequenceMap": ImportRule((17,), ("body",), _map, outputs=None, takes_structures=True),
    "SplitToSequence": ImportRule((11, 24), ("axis", "keepdims"), _split),
}
