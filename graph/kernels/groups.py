"""Groups: the nodes that one kernel computes together."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.ir import GraphNode


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """Nodes in order; each but the last is read by later ones, and by nobody outside. At most one,
    the anchor, is not elementwise; what stands before it is computed row by row, as the anchor is.
    Only the last one may have several outputs, all of which are stored.

    algorithm: the name of one of graph/kernels/algorithms.py, or "direct", as the operators say.
    """

    nodes: tuple[GraphNode, ...]
    algorithm: str = "direct"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values that the group stores."""
        return self.nodes[-1].outputs

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values that the group reads and does not compute, in order of first use."""
        own = {value for node in self.nodes for value in node.outputs}
        read = (value for node in self.nodes for value in node.inputs)
        return tuple(dict.fromkeys(value for value in read if value not in own))

    def cuts(self) -> tuple[int, ...]:
        """The lengths of the prefixes of which only the last value is read behind them, largest
        first, beginning with the whole group.
        """
        found = []
        for size in range(len(self.nodes), 0, -1):
            inner = {value for node in self.nodes[: size - 1] for value in node.outputs}
            if not any(value in inner for node in self.nodes[size:] for value in node.inputs):
                found.append(size)
        return tuple(found)

    @property
    def title(self) -> str:
        """The operators in words: "Conv+Relu"."""
        return "+".join(node.op.title for node in self.nodes)

    @property
    def label(self) -> str:
        """The names of the model's nodes that the group computes."""
        return ", ".join(node.name or node.outputs[0] for node in self.nodes)
