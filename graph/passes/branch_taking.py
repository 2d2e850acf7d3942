"""Take the branch that a constant decides for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..regions.branch import IfElse
from ..regions.inline import expanded, inline
from ..types import array_of


@dataclass(frozen=True, slots=True)
class BranchTaking:
    """Replace a branch whose condition is a constant by the nodes of the region that runs."""

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        return expanded(graph, _taken)


def _taken(builder: GraphBuilder, node: GraphNode) -> Sequence[str] | None:
    if not isinstance(node.op, IfElse) or node.inputs[0] not in builder.constants:
        return None
    condition = array_of(builder.constants[node.inputs[0]]).item()
    region = node.op.then if condition else node.op.otherwise
    return inline(builder, region, node.inputs[1:])
