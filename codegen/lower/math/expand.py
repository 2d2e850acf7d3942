"""Replace calls of elementary functions by arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ....tir.expr import Add, Call, Expr, Mul
from ....tir.func import PrimFunc
from ....tir.intrinsics import MAX_ANY, MIN_ANY, ROUND_QUOTIENT, SCALE, Intrinsic
from ....tir.lowered import Fma
from ....tir.node import Node
from ....tir.target.target import Target
from ....tir.visit import transform
from ...isa.isa import isa
from .atan import expand_atan
from .build import Builder, Lets
from .exp import expand_exp
from .exp2 import expand_exp2
from .expm1 import expand_expm1
from .fmod import expand_fmod
from .gelu import expand_gelu
from .log import expand_log, expand_log1p
from .pow import expand_pow
from .round_quotient import expand_round_quotient
from .saturating import expand_erf, expand_tanh
from .sin import expand_cos, expand_sin
from .threefry import expand_threefry

_EXPANSIONS: dict[str, Callable[..., Expr]] = {
    "exp": expand_exp,
    "exp2": expand_exp2,
    "log": expand_log,
    "tanh": expand_tanh,
    "erf": expand_erf,
    "gelu": expand_gelu,
    "pow": expand_pow,
    "sin": expand_sin,
    "cos": expand_cos,
    "atan": expand_atan,
    "fmod": expand_fmod,
    "round_quotient": expand_round_quotient,
    "expm1": expand_expm1,
    "log1p": expand_log1p,
    "threefry_0": partial(expand_threefry, word=0),
    "threefry_1": partial(expand_threefry, word=1),
}
_EXPANSIONS_WITHOUT_FMA: dict[str, Callable[..., Expr]] = {
    **_EXPANSIONS,
    "gelu": partial(expand_gelu, fused=False),
    "round_quotient": partial(expand_round_quotient, fused=False),
}


@dataclass(frozen=True, slots=True)
class ExpandMath:
    """Expand each call of an elementary function, as exp; each file states its error.

    Where the target has no fused multiply-add, an expansion multiplies and adds instead. Where it
    has no instruction that scales, exponents are bounded: one power of two is then enough, or two
    are (Legalise).
    Requires: scalar expressions (before vectorisation), contraction to Fma done or not wanted.
    Ensures:  every Call left is of an intrinsic that is one instruction. A new variable is bound by
              Let where its value is used.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        """`func` with its calls expanded; the same object when it has none."""
        return _expanded(func, self.target, lambda intrinsic: intrinsic.elementary)


@dataclass(frozen=True, slots=True)
class ExpandQuotients:
    """Expand each call of round_quotient ahead of other functions, so that what it rounds is seen
    where the result is clamped.

    Requires, Ensures: as ExpandMath.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return _expanded(func, self.target, lambda intrinsic: intrinsic == ROUND_QUOTIENT)


def _expanded(func: PrimFunc, target: Target, wanted: Callable[[Intrinsic], bool]) -> PrimFunc:
    """The function with its calls of some intrinsics in arithmetic."""

    def rule(node: Node) -> Node:
        if not isinstance(node, Call) or not wanted(node.intrinsic):
            return node
        scales = isa(target).has(SCALE.name, node.dtype)
        return expand_call(node, fused=target.has_fma, scales=scales)

    return func.with_body(transform(func.body, rule))


def expand_call(call: Call, *, fused: bool = True, scales: bool = True) -> Expr:
    """One call of an elementary intrinsic in arithmetic; its arguments stay as they are.

    fused: whether the target has a fused multiply-add. scales: whether it has an instruction that
    scales by a power of two.
    """
    name, lets = call.intrinsic.name, Lets()
    bounded = None if scales else _BOUNDED.get(name)
    arguments = call.arguments
    if bounded is not None:  # what an argument scales is not ours to bound
        arguments = tuple(lets.let(hint, a) for hint, a in zip("xy", arguments, strict=False))
    expansion = (_EXPANSIONS if fused else _EXPANSIONS_WITHOUT_FMA)[name]
    if name == "exp2":
        expansion = partial(expand_exp2, scales=scales)
    expanded = expansion(*arguments)
    if not fused:
        expanded = transform(expanded, _unfused)
    return expanded if bounded is None else lets.close(transform(expanded, bounded))


def _scaled_by_one_power(node: Node) -> Node:
    """scale(x, n) for n up to the largest exponent; what is below the least does not count."""
    if not isinstance(node, Call) or node.intrinsic != SCALE:
        return node
    x, n = node.arguments
    build = Builder(n.dtype)
    power = build.let("power", Call(MAX_ANY, (n, build.number(1 - build.format.bias))))
    return build.close(Call(SCALE, (x, power)))


def _scaled_by_two_powers(node: Node) -> Node:
    """scale(x, n) for a moderate x, a number n: beyond twice an exponent all is 0 or infinite."""
    if not isinstance(node, Call) or node.intrinsic != SCALE:
        return node
    x, n = node.arguments
    build = Builder(n.dtype)
    bias = build.format.bias
    most, least = build.number(2 * bias), build.number(2 * (1 - bias))
    power = build.let("power", Call(MAX_ANY, (Call(MIN_ANY, (n, most)), least)))
    return build.close(Call(SCALE, (x, power)))


def _unfused(node: Node) -> Node:
    return Add(Mul(node.a, node.b), node.c) if isinstance(node, Fma) else node


_BOUNDED: dict[str, Callable[[Node], Node]] = {
    # below the least exponent of a normal number they have another result than what they scale
    **dict.fromkeys(("exp", "expm1", "pow"), _scaled_by_one_power),
    "gelu": _scaled_by_two_powers,
}
