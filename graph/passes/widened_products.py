"""Multiply bytes as numbers of 16 bits, where the processor has instructions for these alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.convolution import IntegerConv
from ..ops.functions import Cast
from ..ops.matmul import IntegerMatMul
from .levels import has_bytes

_WIDE = "int16"


@dataclass(frozen=True, slots=True)
class WidenedProducts:
    """Convert the operands of products of bytes to int16, of which pairs are multiplied and added.

    AVX2 has vpmaddwd for that, which is exact. Its instruction for bytes, vpmaddubsw, holds the sum
    of two products in 16 bits: 255 * 127 twice is 64,770, and it gives 32,767. With AVX-VNNI, bytes
    are multiplied as they are.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_bytes)
    needs: ClassVar[tuple[str, ...]] = ("avx2",)
    idle: ClassVar[tuple[str, ...]] = ("avx2+vnni",)

    def __call__(self, graph: Graph) -> Graph:
        found = {node.outputs[0] for node in graph.nodes if _is_narrow(graph, node)}
        if not found:
            return graph
        builder, wide = GraphBuilder.like(graph), dict[str, str]()
        for node in graph.nodes:
            inputs = node.inputs
            if node.outputs[0] in found:
                for value in inputs:
                    if value not in wide:
                        name = builder.fresh(f"{value}.wide")
                        wide[value] = builder.add(Cast(_WIDE), value, output=name, name=node.name)
                inputs = tuple(wide[value] for value in inputs)
            builder.add_node(GraphNode(node.op, inputs, node.outputs, node.name))
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


def _is_narrow(graph: Graph, node: GraphNode) -> bool:
    narrow = all(graph.types[value].dtype != _WIDE for value in node.inputs)
    return (node.op == IntegerMatMul() or isinstance(node.op, IntegerConv)) and narrow
