"""What an import rule is: how one ONNX operator, in the versions listed, becomes a core one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....ops.base import Operator
from ....types import Constant
from ..node import NodeReader
from ..structures import Value

Application = tuple[Operator, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Several:
    """What a node is whose outputs are computed apart: one operator for each, in order."""

    results: tuple[Application, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """What the outputs of a node are: values that exist, or what holds them together."""

    values: tuple[Value, ...]


Result = Application | Several | Values | Constant  # an application gives all outputs of the node

CONTRIBUTED = "com.microsoft"  # the domain of onnxruntime's own operators
MOVES = (13, 21, 23, 24, 25)  # versions of operators that move data: each only adds element types


@dataclass(frozen=True, slots=True)
class ImportRule:
    """How to import one operator.

    versions: as ONNX counts them; attributes: the names that `build` understands; outputs: how many
    of the node's outputs `build` knows, None for all. takes_structures: whether an input may be a
    sequence, or an optional value without an element. foreign: whether others write the operator in
    opsets of ONNX that do not have it, onnxruntime its own ones, as version 1. by_opset: whether an
    operator without a schema has the version of its domain's opset.
    """

    versions: tuple[int, ...]
    attributes: tuple[str, ...]
    build: Callable[[NodeReader], Result]
    outputs: int | None = 1
    takes_structures: bool = False
    foreign: bool = False
    by_opset: bool = False


def plain(op: Operator) -> Callable[[NodeReader], Result]:
    """A rule's `build` for an operator without attributes: the node's inputs go to `op`."""
    return lambda node: (op, node.inputs)
