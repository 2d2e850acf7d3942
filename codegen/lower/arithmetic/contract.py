"""Decide contraction in the IR: a*b + c becomes one Fma, rounded once.

It stands first, before any copy of a body exists, so that every variant of a loop computes the same
bits; C compilers are told not to contract on their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....tir.expr import Add, Mul
from ....tir.func import PrimFunc
from ....tir.lowered import Fma
from ....tir.node import Node
from ....tir.visit import transform


@dataclass(frozen=True, slots=True)
class Contract:
    """Turn each float a*b + c and c + a*b into Fma(a, b, c).

    Requires: stage SCHEDULED. Ensures: stage CONTRACTED; no sum of a float product is left.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(transform(func.body, _contract))


def _contract(node: Node) -> Node:
    if not isinstance(node, Add) or not node.dtype.is_float:
        return node
    if isinstance(node.b, Mul):  # c + a*b -> fma(a, b, c)
        return Fma(node.b.a, node.b.b, node.a)
    if isinstance(node.a, Mul):  # a*b + c -> fma(a, b, c)
        return Fma(node.a.a, node.a.b, node.b)
    return node
