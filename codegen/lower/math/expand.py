"""Replace calls of elementary functions by arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....tir.expr import Add, Call, Expr, Mul
from ....tir.func import PrimFunc
from ....tir.lowered import Fma
from ....tir.node import Node
from ....tir.target import Target
from ....tir.visit import transform
from .exp import expand_exp
from .exp2 import expand_exp2
from .log import expand_log
from .pow import expand_pow
from .saturating import expand_erf, expand_tanh

_EXPANSIONS: dict[str, Callable[..., Expr]] = {
    "exp": expand_exp,
    "exp2": expand_exp2,
    "log": expand_log,
    "tanh": expand_tanh,
    "erf": expand_erf,
    "pow": expand_pow,
}


@dataclass(frozen=True, slots=True)
class ExpandMath:
    """Expand each call of exp, exp2, log, tanh, erf and pow; the file of each states its error.

    Where the target has no fused multiply-add, an expansion multiplies and adds instead.
    Requires: scalar expressions (before vectorisation), contraction to Fma done or not wanted.
    Ensures:  every Call left is of an intrinsic that is one instruction. A new variable is bound by
              Let where its value is used.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        """`func` with its calls expanded; the same object when it has none."""
        return func.with_body(transform(func.body, self._expand))

    def _expand(self, node: Node) -> Node:
        if not isinstance(node, Call) or not node.intrinsic.elementary:
            return node
        expanded = expand_call(node)
        return expanded if self.target.has_fma else transform(expanded, _unfused)


def expand_call(call: Call) -> Expr:
    """One call of an elementary intrinsic in arithmetic; its arguments stay as they are."""
    return _EXPANSIONS[call.intrinsic.name](*call.arguments)


def _unfused(node: Node) -> Node:
    return Add(Mul(node.a, node.b), node.c) if isinstance(node, Fma) else node
