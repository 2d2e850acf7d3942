"""Rules of the matrix products and of determinants."""

from __future__ import annotations

from .....tir.sizes import closed
from ....ops import determinant, matmul
from ....ops.movement import Reshape
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result


def _gemm(node: NodeReader) -> Result:
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    return matmul.Gemm(alpha, beta, node.flag("transA"), node.flag("transB")), node.inputs


def _matmul(node: NodeReader) -> Result:
    """A vector is a matrix of one row on the left, of one column on the right; that axis goes."""
    a, b = node.type(0), node.type(1)
    if min(a.rank, b.rank) >= 2 or min(a.rank, b.rank) < 1:
        return matmul.MatMul(), node.inputs
    left, right = node.value(0), node.value(1)
    if a.rank == 1:
        left = node.emit(Reshape((1, *a.shape)), left)
    if b.rank == 1:
        right = node.emit(Reshape((*b.shape, 1)), right)
    product = node.emit(matmul.MatMul(), left, right)
    stack = a.shape[:-2] if a.rank > b.rank else b.shape[:-2]
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.rank > 1 else ()
    return Reshape((*stack, *rows, *columns)), (product,)


def _det(node: NodeReader) -> Result:
    x = node.type(0)
    if x.rank and closed(x.shape[-1]) > determinant.MOST_ROWS:
        raise NotSupported(f"{x} has more than {determinant.MOST_ROWS} rows")
    return determinant.Det(), node.inputs


RULES: dict[str, ImportRule] = {
    "Det": ImportRule((11, 22), (), _det),
    "Gemm": ImportRule((7, 9, 11, 13), ("alpha", "beta", "transA", "transB"), _gemm),
    "MatMul": ImportRule((1, 9, 13), (), _matmul),
}
