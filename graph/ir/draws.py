"""Which graphs draw random numbers: the same ones in every run, since constants decide them."""

from __future__ import annotations

from ..ops.random.random_bits import RandomBits
from .ir import Graph, all_nodes


def drawing_nodes(graph: Graph) -> int:
    """The nodes of a graph, and of the regions in it, that make random bits."""
    return sum(isinstance(node.op, RandomBits) for node in all_nodes(graph))
