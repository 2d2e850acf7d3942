"""Inputs of a model that are sequences or optional: what a caller says of them makes them tensors.

shapes={"x": [(1, 3), (2, 3)]}: the sequence 'x' has two tensors, which are the inputs 'x[0]' and
'x[1]'. constants={"x": [a, b]}: it has these two. constants={"x": None}: an optional input has no
element; otherwise it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from onnx import TypeProto, ValueInfoProto

from ..limits import UnsupportedType
from ..symbols import Declared, Shapes, TensorShapes
from .declared import declared_input
from .structures import NoElement, Structure, TensorSequence
from .tensors import dtype_name


@dataclass(slots=True)
class ModelInputs:
    """The tensors that a model takes, and what callers say of them. structures: the inputs that
    hold some of them; unknown: those of which nobody says how many they hold.
    """

    tensors: list[Declared] = field(default_factory=list)
    shapes: dict[str, object] = field(default_factory=dict)
    constants: dict[str, object] = field(default_factory=dict)
    structures: dict[str, Structure] = field(default_factory=dict)
    unknown: list[tuple[str, UnsupportedType, str]] = field(default_factory=list)

    @property
    def tensor_shapes(self) -> TensorShapes:
        """What callers say of the shapes of tensors."""
        return cast("TensorShapes", self.shapes)


def read_inputs(
    items: Iterable[ValueInfoProto],
    shapes: Shapes | None,
    constants: Mapping[str, object] | None,
) -> ModelInputs:
    """The inputs of a model, in order."""
    found = ModelInputs(shapes=dict(shapes or {}), constants=dict(constants or {}))
    for item in items:
        kind, name = _element(item.type), item.name
        is_optional = item.type.HasField("optional_type")
        if is_optional and name in found.constants and found.constants[name] is None:
            del found.constants[name]
            found.structures[name] = NoElement()
        elif kind.sequence_type.elem_type.HasField("tensor_type"):
            _read_sequence(found, name, kind.sequence_type.elem_type)
        elif kind.HasField("tensor_type"):
            found.tensors.append(declared_input(ValueInfoProto(name=name, type=kind)))
        else:
            found.unknown.append((name, UnsupportedType(name, "is not a tensor"), ""))
    return found


def _element(type_: TypeProto) -> TypeProto:
    """What an optional value may have."""
    return type_.optional_type.elem_type if type_.HasField("optional_type") else type_


def _read_sequence(found: ModelInputs, name: str, element: TypeProto) -> None:
    """One tensor for each that is said."""
    said = found.constants.pop(name, None)
    rows = found.constants if said is not None else found.shapes
    listed = said if said is not None else found.shapes.pop(name, None)
    if not isinstance(listed, list | tuple):
        hint = f'shapes={{"{name}": [(2, 3), (4, 3)]}} says the shape of each of its tensors.'
        problem = UnsupportedType(name, "is a sequence, and nobody says of how many tensors")
        found.unknown.append((name, problem, hint))
        return
    names = tuple(f"{name}[{number}]" for number in range(len(listed)))
    rows.update(zip(names, listed, strict=True))
    dtype = dtype_name(element.tensor_type.elem_type)
    found.tensors += [Declared(own, dtype, None) for own in names]
    found.structures[name] = TensorSequence(names)
