"""Rules of the matrix products."""

from __future__ import annotations

from ....ops import matmul
from ....ops.arithmetic import Add
from ....ops.movement import Reshape, Transpose
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result


def _gemm(node: NodeReader) -> Result:
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    if not node.type(0).is_float:
        return _integer_gemm(node, alpha, beta)
    return matmul.Gemm(alpha, beta, node.flag("transA"), node.flag("transB")), node.inputs


def _integer_gemm(node: NodeReader, alpha: float, beta: float) -> Result:
    if (alpha, beta) != (1.0, 1.0):
        raise NotSupported(f"alpha is {alpha:g} and beta {beta:g}, of integers")
    names = ("transA", "transB")
    turned = [
        node.emit(Transpose((1, 0)), node.value(n)) if node.flag(name) else node.value(n)
        for n, name in enumerate(names)
    ]
    if not node.has(2):
        return matmul.MatMul(), tuple(turned)
    return Add(), (node.emit(matmul.MatMul(), *turned), node.value(2))


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


RULES: dict[str, ImportRule] = {
    "Gemm": ImportRule((7, 9, 11, 13), ("alpha", "beta", "transA", "transB"), _gemm),
    "MatMul": ImportRule((1, 9, 13), (), _matmul),
}
