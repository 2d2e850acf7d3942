"""Replace calls of elementary functions by arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....tir.expr import Call, Expr
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.visit import transform
from .exp import expand_exp
from .log import expand_log
from .pow import expand_pow
from .saturating import expand_erf, expand_tanh

_EXPANSIONS: dict[str, Callable[..., Expr]] = {
    "exp": expand_exp,
    "log": expand_log,
    "tanh": expand_tanh,
    "erf": expand_erf,
    "pow": expand_pow,
}


@dataclass(frozen=True, slots=True)
class ExpandMath:
    """Expand each call of exp, log, tanh, erf and pow; the file of each states its error.

    Requires: scalar expressions (before vectorisation), contraction to Fma done or not wanted.
    Ensures:  every Call left is of an intrinsic that is one instruction. A new variable is bound by
              Let where its value is used.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        """`func` with its calls expanded; the same object when it has none."""
        return func.with_body(transform(func.body, _expand))


def expand_call(call: Call) -> Expr:
    """One call of an elementary intrinsic in arithmetic; its arguments stay as they are."""
    return _EXPANSIONS[call.intrinsic.name](*call.arguments)


def _expand(node: Node) -> Node:
    return expand_call(node) if isinstance(node, Call) and node.intrinsic.elementary else node
