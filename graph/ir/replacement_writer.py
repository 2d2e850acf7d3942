"""Write what stands in the place of a node, under names that its result begins."""

from __future__ import annotations

from dataclasses import dataclass

from ..ops.base import Operator
from ..types import Constant
from .build import GraphBuilder
from .ir import GraphNode


@dataclass(frozen=True, slots=True)
class ReplacementWriter:
    """Adds nodes and constants for one node, as `SumWriter` wants it."""

    builder: GraphBuilder
    node: GraphNode

    def emit(self, op: Operator, *inputs: str) -> str:
        """Add a node; its value."""
        name = self.builder.fresh(f"{self.node.outputs[0]}.{op.title.lower()}")
        return self.builder.add(op, *inputs, output=name, name=self.node.name)

    def table(self, what: str, value: Constant) -> str:
        """Add a constant; `what` ends its name."""
        return self.builder.constant(self.builder.fresh(f"{self.node.outputs[0]}.{what}"), value)
