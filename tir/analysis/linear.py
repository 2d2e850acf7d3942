"""Linear forms of integer expressions: constant + sum of coefficient * atom.

An atom is a variable, or any integer expression that is not itself a sum, a difference or a product
with a constant. Two expressions that differ only in how a sum was written have one linear form, so
this is how indices are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..dtype import INT64
from ..expr import Add, Const, Expr, FloorDiv, FloorMod, Mul, Sub, Var, add, const, mul, sub


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + sum of coefficient * atom; no coefficient is 0, atoms stand in order of first
    use.
    """

    terms: tuple[tuple[Expr, int], ...]
    constant: int

    def __add__(self, other: Linear) -> Linear:
        return combine((*self.terms, *other.terms), self.constant + other.constant)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> Linear:
        """Every term times `factor`."""
        if factor == 0:
            return Linear((), 0)
        return Linear(tuple((atom, c * factor) for atom, c in self.terms), self.constant * factor)

    def coefficient(self, atom: Expr) -> int:
        """The coefficient of `atom`; 0 when it is absent."""
        return next((c for a, c in self.terms if a == atom), 0)

    def without(self, atom: Expr) -> Linear:
        """The form without the term of `atom`."""
        return Linear(tuple((a, c) for a, c in self.terms if a != atom), self.constant)


@dataclass(frozen=True, slots=True, eq=False)
class Total(Var):
    """Stands, among the variables of `Ranges`, for a sum of terms that a condition bounds as a
    whole. Two are equal when their terms are.
    """

    terms: frozenset[tuple[Expr, int]] = frozenset()

    def __hash__(self) -> int:
        return hash(self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Total) and self.terms == other.terms


def total(form: Linear) -> Total:
    """The stand-in for the terms of a form, without its constant."""
    return Total("total", INT64, frozenset(form.terms))


def combine(terms: Iterable[tuple[Expr, int]], constant: int) -> Linear:
    """The linear form of a list of terms, equal atoms merged."""
    merged: dict[Expr, int] = {}
    for atom, coefficient in terms:
        merged[atom] = merged.get(atom, 0) + coefficient
    return Linear(tuple((a, c) for a, c in merged.items() if c != 0), constant)


def linear(expr: Expr) -> Linear:
    """The linear form of an integer expression."""
    terms, constant = collected(expr)
    return Linear(tuple(terms.items()), constant)


Terms = dict[Expr, int]
_SUM = (Add, Sub)


def collected(expr: Expr) -> tuple[Terms, int]:
    """The terms of a linear form, for the caller to change, and its constant."""
    if type(expr) is Var:
        return {expr: 1}, 0
    if type(expr) is Const:
        return {}, int(expr.value)
    sums: list[Add | Sub] = []  # one within the left side of the other: a chain may be long
    while isinstance(expr, _SUM):
        sums.append(expr)
        expr = expr.a
    terms, constant = _term(expr)
    for item in reversed(sums):
        sign = 1 if isinstance(item, Add) else -1
        more, other = collected(item.b)
        merge(terms, more, sign)
        constant += sign * other
    return terms, constant


def _term(expr: Expr) -> tuple[Terms, int]:
    """The terms of what is no sum."""
    if isinstance(expr, Const):
        return {}, int(expr.value)
    if isinstance(expr, Mul):
        a, b = collected(expr.a), collected(expr.b)
        if not b[0]:
            return scaled(*a, b[1])
        if not a[0]:
            return scaled(*b, a[1])
    return {expr: 1}, 0


def merge(terms: Terms, more: Terms, sign: int) -> None:
    """Add `sign` times the terms `more` to `terms`."""
    for atom, coefficient in more.items():
        merged = terms.get(atom, 0) + sign * coefficient
        if merged:
            terms[atom] = merged
        else:
            del terms[atom]


def scaled(terms: Terms, constant: int, factor: int) -> tuple[Terms, int]:
    """Terms and constant times `factor`."""
    if factor == 0:
        return {}, 0
    return {atom: c * factor for atom, c in terms.items()}, constant * factor


def _quotient(a: Expr, b: Const) -> Expr:
    """a // b, nested quotients joined: x // c // b is x // (c*b)."""
    if isinstance(a, FloorDiv) and isinstance(a.b, Const):
        return FloorDiv(a.a, const(int(a.b.value) * int(b.value), b.type))
    return FloorDiv(a, b)


def _quotients(a: Expr, b: Const) -> Iterator[Expr]:
    """a // b; as one quotient where `a` is another one and a constant: (t//7 + 1) // 9 is
    (t + 7) // 63; and without the factor that all terms share with b: 4*t // 40 is t // 10.
    """
    yield _quotient(a, b)
    form = linear(a)
    if form.constant and len(form.terms) == 1 and form.terms[0][1] == 1:
        (inner, _), *_ = form.terms
        if isinstance(inner, FloorDiv) and isinstance(inner.b, Const) and inner.b.value > 0:
            divisor = int(inner.b.value)
            shifted = linear(inner.a) + Linear((), form.constant * divisor)
            yield FloorDiv(expression(shifted), const(divisor * int(b.value), b.type))
    factor = math.gcd(int(b.value), form.constant, *(c for _, c in form.terms))
    if factor > 1:
        terms = tuple((atom, c // factor) for atom, c in form.terms)
        less = expression(Linear(terms, form.constant // factor))
        yield _quotient(less, const(int(b.value) // factor, b.type))


def rejoin(form: Linear) -> Linear:
    """The form with x//c * (k*c) + x%c * k rewritten to x * k: a fused loop's parts meet again in
    an address.
    """
    for atom, coefficient in form.terms:
        if not isinstance(atom, FloorMod) or not isinstance(atom.b, Const):
            continue
        for quotient in _quotients(atom.a, atom.b):
            if form.coefficient(quotient) == coefficient * int(atom.b.value):
                rest = form.without(atom).without(quotient)
                return rejoin(rest + linear(atom.a).scaled(coefficient))
    return form


def expression(form: Linear) -> Expr:
    """The expression of a linear form: terms in order, constant last."""
    result: Expr | None = None
    for atom, coefficient in form.terms:
        if result is None:
            result = _times(atom, coefficient)
        elif coefficient < 0:
            result = sub(result, _times(atom, -coefficient))
        else:
            result = add(result, _times(atom, coefficient))
    if result is None:
        return const(form.constant, INT64)
    constant = const(abs(form.constant), result.dtype)
    return sub(result, constant) if form.constant < 0 else add(result, constant)


def _times(atom: Expr, coefficient: int) -> Expr:
    return atom if coefficient == 1 else mul(atom, const(coefficient, atom.dtype))


Interval = tuple[int | None, int | None]
Ranges = Mapping[Var, Interval]
UNBOUNDED: Interval = (None, None)


def interval(form: Linear, atoms: Mapping[Expr, Interval]) -> Interval:
    """The smallest interval that contains the form when each atom lies in its own; None where
    unbounded.
    """
    low: int | None = form.constant
    high: int | None = form.constant
    for atom, coefficient in form.terms:
        a, b = atoms[atom] if coefficient > 0 else atoms[atom][::-1]
        low = None if low is None or a is None else low + coefficient * a
        high = None if high is None or b is None else high + coefficient * b
    return low, high
