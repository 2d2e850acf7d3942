"""How the operands of a fused multiply-add correspond to those of a difference that it computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....tir.expr import Const, Expr, Mul, Sub, const
from ....tir.lowered import Fma


def differences(nest: Fma, canon: Sub) -> Iterator[Sequence[tuple[Expr, Expr]]]:
    """a*b - c is Fma(a, b, -c); c - a*b is Fma(-a, b, c)."""
    if isinstance(canon.a, Mul) and (minus := _negation(nest.c)) is not None:
        yield [(nest.a, canon.a.a), (nest.b, canon.a.b), (minus, canon.b)]
    if isinstance(canon.b, Mul) and (minus := _negation(nest.a)) is not None:
        yield [(minus, canon.b.a), (nest.b, canon.b.b), (nest.c, canon.a)]


def _negation(expr: Expr) -> Expr | None:
    """x of -x as the language writes it: x * -1, 0 - x, or a negative constant."""
    match expr:
        case Mul(x, Const() as c) | Mul(Const() as c, x) if c.value == -1:
            return x
        case Sub(Const() as c, x) if c.value == 0:
            return x
        case Const():
            return const(-expr.value, expr.type)
    return None
