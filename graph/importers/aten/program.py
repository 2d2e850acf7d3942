"""A program of aten operators as an exporter recorded it, whoever reads it: an archive, or torch.

Nodes name their arguments as the schemas of the operators do; those that have their defaults may be
left out. A size that calls decide is a text, the `srepr` of a SymPy expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

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
    """

    name: str
    graph: ExportedGraph
    constants: Mapping[str, Known]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    buffers: Mapping[str, str]
    ranges: Mapping[str, tuple[int | None, int | None]]
