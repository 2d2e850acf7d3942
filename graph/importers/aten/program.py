"""A program of aten operators as an exporter recorded it, whoever reads it: an archive, or torch.

Nodes name their arguments as the schemas of the operators do; those that have their defaults may be
left out. A size that calls decide is a text, the `srepr` of a SymPy expression.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Union

import numpy as np

from ...types import Array

Extent = int | str  # a size, or the text of an expression


@dataclass(frozen=True, slots=True)
class Named:
    """An argument that is a value of the program: a tensor, or a number that a call decides."""

    name: str


@dataclass(frozen=True, slots=True)
class Subgraph:
    """An argument that is a graph."""

    graph: ExportedGraph


Known = Array | bool | int | float | str | None  # an input of a graph that calls do not give
Argument = Union[None, bool, int, float, str, Named, Subgraph, "tuple[Argument, ...]"]
Output = Union[str, None, "tuple[str, ...]"]  # a value, none, or a list of values


@dataclass(frozen=True, slots=True)
class RecordedType:
    """What the exporter says that a tensor is."""

    dtype: str
    shape: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class ExportedNode:
    """A call of an operator. target: "aten.linear.default"; module: the path of the module that
    made it, "encoder.layer.0"; line: where in a source it was made.
    """

    name: str
    target: str
    arguments: Mapping[str, Argument]
    outputs: tuple[Output, ...]
    module: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """Nodes in order. types: of the tensors."""

    inputs: tuple[str, ...]
    outputs: tuple[Argument, ...]
    nodes: tuple[ExportedNode, ...]
    types: Mapping[str, RecordedType]


@dataclass(frozen=True, slots=True)
class ExportedProgram:
    """A graph with its weights. constants: inputs of the graph that are known: weights, buffers,
    numbers; inputs: the others, with the names that callers know; outputs: those of a call.
    buffers: inputs that are buffers or weights, by the name that the model has for them.
    ranges: the least and the largest value of a symbol; None where it has no end.
    sizes: inputs of the graph that are sizes, each with the text of its expression. numbers:
    symbols that are known.
    """

    name: str
    graph: ExportedGraph
    constants: Mapping[str, Known]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    buffers: Mapping[str, str]
    ranges: Mapping[str, tuple[int | None, int | None]]
    sizes: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What identifies the program with its weights."""
        found = hashlib.sha256()
        for part in fields(self):
            if part.name != "constants":
                found.update(f"{part.name} {getattr(self, part.name)!r}\n".encode())
        seen = dict[int, int]()  # tied weights are hashed once
        for number, (name, value) in enumerate(self.constants.items()):
            if not isinstance(value, np.ndarray):
                found.update(f"{name} {value!r}\n".encode())
                continue
            first = seen.setdefault(id(value), number)
            found.update(f"{name} {first} {value.dtype.name}{list(value.shape)}\n".encode())
            if first == number:
                found.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
        return found.hexdigest()
