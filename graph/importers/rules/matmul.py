"""Rules of the matrix products."""

from __future__ import annotations

from ...ops import matmul
from ..onnx_node import NodeReader, NotSupported
from .rule import Result, Rule


def _gemm(node: NodeReader) -> Result:
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    return matmul.Gemm(alpha, beta, node.flag("transA"), node.flag("transB")), node.inputs


def _matmul(node: NodeReader) -> Result:
    if min(node.type(0).rank, node.type(1).rank) < 2:
        raise NotSupported(
            f"an operand has less than two dimensions: {node.type(0)}, {node.type(1)}"
        )
    return matmul.MatMul(), node.inputs


RULES: dict[str, Rule] = {
    "Gemm": Rule((7, 9, 11, 13), ("alpha", "beta", "transA", "transB"), _gemm),
    "MatMul": Rule((1, 9, 13), (), _matmul),
}
