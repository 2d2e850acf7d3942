"""Products with constant weights of few bits on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...tir.sizes import product_of
from ..ir.ir import Graph, GraphNode
from ..ops.block_matmul import FEW_ROWS
from .block_products import with_packed_weights
from .spread_weights import has_narrow_constants


@dataclass(frozen=True, slots=True)
class GridBlockProducts:
    """Keep the levels of the constant weights of MatMul and Gemm packed, as `BlockProducts` does.

    Of floats of 16 bits and many rows they become floats: tensor cores multiply these, which takes
    less time than units for float32 do with unpacked levels. needs: a GPU.
    """

    keeps_rounding: ClassVar[bool] = False
    concerns = staticmethod(has_narrow_constants)
    needs: ClassVar[tuple[str, ...]] = ("cuda",)

    def __call__(self, graph: Graph) -> Graph:
        def pays(node: GraphNode) -> bool:
            data = graph.types[node.inputs[0]]
            rows = product_of(data.shape[:-1])
            return data.dtype == "float32" or (isinstance(rows, int) and rows <= FEW_ROWS)

        return with_packed_weights(graph, pays)
