"""Rules of matrix products with what onnxruntime fuses into them."""

from __future__ import annotations

from .....ops import movement
from .....ops.arithmetic import Mul
from .....ops.matmul import Gemm
from ...node import NodeReader
from ..rule import ImportRule, Result
from .activations import activated

_GEMM = ("alpha", "beta", "transA", "transB")
_ACTIVATION = ("activation", "activation_alpha", "activation_beta", "activation_gamma")


def _fused_matmul(node: NodeReader) -> Result:
    return movement.Identity(), (_product(node),)


def _product(node: NodeReader) -> str:
    """alpha * A @ B, each of them turned as its attributes say."""
    a, b = (
        _turned(node, position, node.flag(f"trans{name}"), node.flag(f"transBatch{name}"))
        for position, name in enumerate("AB")
    )
    product = node.spell("MatMul", a, b)
    alpha = node.real("alpha", 1.0)
    return product if alpha == 1.0 else node.emit(Mul(), product, node.number(alpha))


def _turned(node: NodeReader, position: int, last: bool, batch: bool) -> str:
    """An operand: where `batch`, its first axis becomes the last but one; where `last`, the last
    two change places then. A vector stays as it is.
    """
    rank = node.type(position).rank
    order = list(range(rank))
    if batch and rank > 2:
        order = [*order[1:-1], 0, rank - 1]
    if last and rank > 1:
        order[-2:] = order[:-3:-1]
    value = node.value(position)
    same = order == sorted(order)
    return value if same else node.emit(movement.Transpose(tuple(order)), value)


def _fused_gemm(node: NodeReader) -> Result:
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    op = Gemm(alpha, beta, node.flag("transA"), node.flag("transB"))
    return movement.Identity(), (_activated(node, node.emit(op, *node.inputs)),)


def _matmul_activation(node: NodeReader) -> Result:
    return movement.Identity(), (_activated(node, _product(node)),)


def _activated(node: NodeReader, value: str) -> str:
    """What the activation that the attributes name makes of `value`."""
    given = {
        name: node.real(f"activation_{name}", 0.0)
        for name in ("alpha", "beta", "gamma")
        if node.given(f"activation_{name}")
    }
    return activated(node, value, given)


def _gemm_fast_gelu(node: NodeReader) -> Result:
    """FastGelu(X @ W + bias)"""
    product = node.spell("MatMul", node.value(0), node.value(1))
    if node.has(2):
        product = node.spell("Add", product, node.value(2))
    return movement.Identity(), (node.spell("Gelu", product, approximate="tanh"),)


_FUSED = ("alpha", "transA", "transB", "transBatchA", "transBatchB")
RULES: dict[str, ImportRule] = {
    "com.microsoft.FusedGemm": ImportRule((1,), (*_GEMM, *_ACTIVATION), _fused_gemm),
    "com.microsoft.FusedMatMul": ImportRule((1,), _FUSED, _fused_matmul),
    "com.microsoft.FusedMatMulActivation": ImportRule(
        (1,), (*_FUSED, *_ACTIVATION), _matmul_activation
    ),
    "com.microsoft.GemmFastGelu": ImportRule((1,), (), _gemm_fast_gelu),
    "com.microsoft.TransposeMatMul": ImportRule((1,), _FUSED, _fused_matmul),
}
