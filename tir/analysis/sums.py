"""Sums of int64 variables simplified as a whole: the form of every part is found, and an expression
is built for the whole alone.

What comes out is what simplifying the parts one after the other, from the inside, gives: each part
has its bounds asked and its quotients and remainders joined, as `simplify` does with an expression.
"""

from __future__ import annotations

from collections.abc import Callable

from ..buffer import Load
from ..expr import Add, Call, Cast, Const, Expr, FloorMod, Let, Mul, ShiftLeft, Sub, Var, const
from ..node import Leaf, Node
from .bounds import form_bounds, has_totals
from .linear import Linear, Ranges, Terms, collected, expression, merge, rejoin, scaled

Visit = Callable[[Expr], Expr]
_DATA = (Load, Cast, Call, Let, ShiftLeft)
_SUM = (Add, Sub)


def simplify_sum(expr: Add | Sub | Mul, ranges: Ranges, visit: Visit) -> Expr:
    """The simplest sum that is equal to `expr`; `expr` itself where that is how it is written.

    visit: simplifies what is no sum. Requires: no part of `expr` is data.
    """
    return _as_written(expr, _form(expr, ranges, visit))


def is_data(expr: Expr) -> bool:
    """Whether the value comes from a tensor, a conversion or a call: it is no index arithmetic.
    Found once for each expression, and kept.
    """
    seen: list[Expr] = []
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Leaf) or not isinstance(node, Expr):
            continue
        known = getattr(node, "_is_data", None)
        if known or isinstance(node, _DATA):
            object.__setattr__(expr, "_is_data", True)
            return True
        if known is None:
            seen.append(node)
            stack += node.children()
    for part in seen:
        object.__setattr__(part, "_is_data", False)
    return False


def _form(expr: Expr, ranges: Ranges, visit: Visit) -> tuple[Terms, int]:
    """The terms of the simplest form, for the caller to change, and its constant."""
    if type(expr) is Const:
        return {}, int(expr.value)
    if isinstance(expr, _SUM):
        terms, constant = _form(expr.a, ranges, visit)
        sign = 1 if isinstance(expr, Add) else -1
        more, other = _form(expr.b, ranges, visit)
        merge(terms, more, sign)
        return _settled(terms, constant + sign * other, ranges)
    if isinstance(expr, Mul):
        return _settled(*_product(expr, ranges, visit), ranges)
    return collected(visit(expr))


def _product(expr: Mul, ranges: Ranges, visit: Visit) -> tuple[Terms, int]:
    a, b = _form(expr.a, ranges, visit), _form(expr.b, ranges, visit)
    if not b[0]:
        return scaled(*a, b[1])
    if not a[0]:
        return scaled(*b, a[1])
    left, right = _as_written(expr.a, a), _as_written(expr.b, b)
    same = left is expr.a and right is expr.b
    return {expr if same else Mul(left, right): 1}, 0


def _settled(terms: Terms, constant: int, ranges: Ranges) -> tuple[Terms, int]:
    """One number where the ranges leave no other; parts of a fused loop joined."""
    if len(terms) == 1 and isinstance(next(iter(terms)), Var):
        return terms, constant  # a variable of one value has become a number before
    kinds = set(map(type, terms))
    has_remainder = FloorMod in kinds
    if not has_remainder and Var in kinds and not has_totals(ranges):
        return terms, constant  # likewise: the sum has no fewer values than its variable
    form = Linear(tuple(terms.items()), constant)
    low, high = form_bounds(form, ranges)
    if low is not None and low == high:
        return {}, low
    if not has_remainder:
        return terms, constant
    joined = rejoin(form)
    return dict(joined.terms), joined.constant


def _as_written(expr: Expr, form: tuple[Terms, int]) -> Expr:
    """The expression of a form; `expr` where it is that."""
    terms, constant = form
    if not terms:
        return expr if isinstance(expr, Const) else const(constant, expr.dtype)
    if _is_written(expr, terms, constant):
        return expr
    result = expression(Linear(tuple(terms.items()), constant))
    return expr if result == expr else result


def _is_written(expr: Expr, terms: Terms, constant: int) -> bool:
    """Whether `expr` is, term by term and with these very atoms, what `expression` makes."""
    rest = expr
    if constant:
        if type(rest) is not (Sub if constant < 0 else Add) or not _is(rest.b, abs(constant)):
            return False
        rest = rest.a
    first, *others = terms.items()
    for atom, coefficient in reversed(others):
        if type(rest) is not (Sub if coefficient < 0 else Add):
            return False
        if not _is_term(rest.b, atom, abs(coefficient)):
            return False
        rest = rest.a
    return _is_term(rest, *first)


def _is_term(expr: Expr, atom: Expr, coefficient: int) -> bool:
    if coefficient == 1:
        return expr is atom
    return isinstance(expr, Mul) and expr.a is atom and _is(expr.b, coefficient)


def _is(expr: Expr, number: int) -> bool:
    return isinstance(expr, Const) and expr.value == number
