"""Compute once what is computed twice."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.base import Operator
from ..types import Constant, bits_of


class _Key(NamedTuple):
    """What makes two nodes equal."""

    op: Operator
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommonSubexpressions:
    """Merge nodes with equal operators and inputs, and constants with equal elements.

    Arrays of more than `constant_bytes` are not compared. A node one of whose values is an output
    of the model stays.
    """

    keeps_rounding: ClassVar[bool] = True

    constant_bytes: int = 1 << 16

    def __call__(self, graph: Graph) -> Graph:
        same: dict[str, str] = {}
        outputs = frozenset(graph.outputs)
        first_constant: dict[Hashable, str] = {}
        constants: dict[str, Constant] = {}
        for name, constant in graph.constants.items():
            original = first_constant.setdefault(bits_of(constant, self.constant_bytes), name)
            if original != name and name not in outputs:
                same[name] = original
            else:
                constants[name] = constant
        seen: dict[_Key, GraphNode] = {}
        nodes: list[GraphNode] = []
        for node in graph.nodes:
            inputs = tuple(same.get(value, value) for value in node.inputs)
            original_node = seen.setdefault(_Key(node.op, inputs), node)
            if original_node is not node and outputs.isdisjoint(node.outputs):
                same.update(zip(node.outputs, original_node.outputs, strict=True))
                continue
            nodes.append(
                node
                if inputs == node.inputs
                else GraphNode(node.op, inputs, node.outputs, node.name)
            )
        return rebuilt(graph, nodes, constants)
