"""Which graphs draw random numbers: the same ones in every run, since constants decide them."""

from __future__ import annotations

from ..ops.random.random_bits import RandomBits
from .ir import Graph, RegionOperator


def drawing_nodes(graph: Graph) -> int:
    """The nodes of a graph, and of the regions in it, that make random bits."""
    inner = (node.op.regions for node in graph.nodes if isinstance(node.op, RegionOperator))
    own = sum(isinstance(node.op, RandomBits) for node in graph.nodes)
    return own + sum(drawing_nodes(region) for regions in inner for region in regions)
