"""Quasi-affine forms: what the proof understands of an index, and the interval in which one lies.

A form is constant + sum of coefficient * atom. An atom is a loop variable, the floor of a form
divided by a number, the smaller or larger of two forms, or one of two as a third says. Remainders
become a - c * floor(a / c), so the parts of a fused loop meet again by themselves. Everything else
(a product of variables, a value that is loaded) raises Undecided.

The proof keeps its own arithmetic on purpose: it must not rest on the simplifier whose results it
checks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....tir.buffer import Load
from ....tir.expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    And,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
)
from ....tir.text.printer import print_expr
from ....tir.visit import walk

Ranges = Mapping[Var, tuple[int, int]]
INT64_LIMIT = 1 << 63


class Undecided(ValueError):
    """Something that the proof cannot express in integer sets; the message says what."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """floor(inner / divisor), divisor > 1."""

    inner: Affine
    divisor: int


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smaller of two forms, or the larger."""

    a: Affine
    b: Affine
    larger: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """`a` where test >= 0, else `b`."""

    test: Affine
    a: Affine
    b: Affine


Branching = Extreme | Choice
Atom = Var | Quotient | Branching
Term = tuple[Atom, int]


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """constant + sum of coefficient * atom; no coefficient is 0. The order of the terms does not
    count.
    """

    terms: tuple[Term, ...] = ()
    constant: int = 0

    def __hash__(self) -> int:
        return hash((frozenset(self.terms), self.constant))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Affine)
            and self.constant == other.constant
            and len(self.terms) == len(other.terms)
            and (self.terms == other.terms or frozenset(self.terms) == frozenset(other.terms))
        )

    def __add__(self, other: Affine) -> Affine:
        return collect((*self.terms, *other.terms), self.constant + other.constant)

    def __sub__(self, other: Affine) -> Affine:
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> Affine:
        """Every term times `factor`."""
        if factor == 0:
            return Affine()
        return Affine(tuple((a, c * factor) for a, c in self.terms), self.constant * factor)

    def plus(self, constant: int) -> Affine:
        """The form with `constant` added."""
        return Affine(self.terms, self.constant + constant)

    def fixed(self, values: Mapping[Var, int]) -> Affine:
        """The form with these variables, where they are terms of their own, replaced by values."""
        terms = [term for term in self.terms if term[0] not in values]
        known = sum(c * values[a] for a, c in self.terms if isinstance(a, Var) and a in values)
        return (
            self if len(terms) == len(self.terms) else Affine(tuple(terms), self.constant + known)
        )

    def variables(self) -> Iterator[Var]:
        """Every variable of the form, those inside atoms too; one may come twice."""
        for atom, _ in self.terms:
            if isinstance(atom, Var):
                yield atom
            else:
                for inner in parts(atom):
                    yield from inner.variables()

    def value(self, point: Mapping[Var, int]) -> int:
        """The value of the form at a point."""
        return self.constant + sum(c * _atom_value(a, point) for a, c in self.terms)


def parts(atom: Quotient | Branching) -> tuple[Affine, ...]:
    """The forms that an atom is made of."""
    if isinstance(atom, Quotient):
        return (atom.inner,)
    return (atom.a, atom.b) if isinstance(atom, Extreme) else (atom.test, atom.a, atom.b)


def collect(terms: Iterable[Term], constant: int) -> Affine:
    """The form of a list of terms, equal atoms merged."""
    merged: dict[Atom, int] = {}
    for atom, coefficient in terms:
        merged[atom] = merged.get(atom, 0) + coefficient
    return Affine(tuple((a, c) for a, c in merged.items() if c), constant)


def variable(var: Var) -> Affine:
    """The form that is one variable."""
    return Affine(((var, 1),))


def _atom_value(atom: Atom, point: Mapping[Var, int]) -> int:
    if isinstance(atom, Var):
        return point[atom]
    if isinstance(atom, Quotient):
        return atom.inner.value(point) // atom.divisor
    if isinstance(atom, Choice):
        return (atom.a if atom.test.value(point) >= 0 else atom.b).value(point)
    both = (atom.a.value(point), atom.b.value(point))
    return max(both) if atom.larger else min(both)


def interval(form: Affine, ranges: Ranges) -> tuple[int, int]:
    """An interval that contains the form when each variable lies in its range."""
    for atom, coefficient in form.terms:
        # k*a - k*c*floor(a / c)  ->  k * (a mod c), which lies in 0 .. k*(c-1)
        if isinstance(atom, Quotient) and coefficient % atom.divisor == 0:
            times = -coefficient // atom.divisor
            rest = form - Affine(((atom, coefficient),)) - atom.inner.scaled(times)
            if len(rest.terms) < len(form.terms) and atom.inner.terms:
                low, high = interval(rest, ranges)
                span = times * (atom.divisor - 1)
                return low + min(0, span), high + max(0, span)
    low = high = form.constant
    for atom, coefficient in form.terms:
        a, b = _atom_interval(atom, ranges)
        low += coefficient * (a if coefficient > 0 else b)
        high += coefficient * (b if coefficient > 0 else a)
    return low, high


def _atom_interval(atom: Atom, ranges: Ranges) -> tuple[int, int]:
    if isinstance(atom, Var):
        return ranges[atom]
    if isinstance(atom, Quotient):
        low, high = interval(atom.inner, ranges)
        return low // atom.divisor, high // atom.divisor
    (a_low, a_high), (b_low, b_high) = interval(atom.a, ranges), interval(atom.b, ranges)
    if isinstance(atom, Choice):
        return min(a_low, b_low), max(a_high, b_high)
    if atom.larger:
        return max(a_low, b_low), max(a_high, b_high)
    return min(a_low, b_low), min(a_high, b_high)


def quotient(form: Affine, divisor: int, ranges: Ranges) -> Affine:
    """floor(form / divisor), as simple as the ranges allow."""
    whole = Affine(
        tuple((a, c // divisor) for a, c in form.terms if c % divisor == 0),
        form.constant // divisor,
    )
    rest = Affine(tuple((a, c) for a, c in form.terms if c % divisor), form.constant % divisor)
    low, high = interval(rest, ranges)
    if low // divisor == high // divisor:  # (c*x + r) // c -> x for r in 0 .. c-1
        return whole.plus(low // divisor)
    rest, divisor = _without_low_digits(rest, divisor, ranges)
    only = rest.terms[0][0] if len(rest.terms) == 1 and rest.terms[0][1] == 1 else None
    if isinstance(only, Quotient):  # (x // a + r) // b -> (x + r*a) // (a*b)
        inner = only.inner.plus(rest.constant * only.divisor)
        return whole + quotient(inner, divisor * only.divisor, ranges)
    return whole + Affine(((Quotient(rest, divisor), 1),))


def _without_low_digits(form: Affine, divisor: int, ranges: Ranges) -> tuple[Affine, int]:
    """(g*x + r) // (g*c) -> x // c for r in 0 .. g-1"""
    steps = {math.gcd(c, divisor) for _, c in form.terms}
    for step in sorted(steps - {1}, reverse=True):
        low_part = Affine(tuple((a, c) for a, c in form.terms if c % step), form.constant % step)
        low, high = interval(low_part, ranges)
        if low >= 0 and high < step:
            kept = tuple((a, c // step) for a, c in form.terms if c % step == 0)
            return Affine(kept, form.constant // step), divisor // step
    return form, divisor


def affine(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> Affine:
    """The form of an integer expression.

    env: the forms of block and let variables, and of loops that stand for something else; ranges:
    of the loop variables. Raises: Undecided when the value depends on data or is not quasi-affine.
    """
    form = _affine(expr, env, ranges)
    low, high = interval(form, ranges)
    if low < -INT64_LIMIT or high >= INT64_LIMIT:
        raise Undecided(f"the index {print_expr(expr)} may overflow int64")
    return form


def _affine(expr: Expr, env: Mapping[Var, Affine], ranges: Ranges) -> Affine:
    match expr:
        case Var():
            if expr in env:
                return env[expr]
            if expr in ranges:
                return variable(expr) if ranges[expr] != (0, 0) else Affine()
        case Const() if not expr.type.is_float:
            return Affine((), int(expr.value))
        case Add(a, b):
            return _affine(a, env, ranges) + _affine(b, env, ranges)
        case Sub(a, b):
            return _affine(a, env, ranges) - _affine(b, env, ranges)
        case Mul(a, b):
            left, right = _affine(a, env, ranges), _affine(b, env, ranges)
            if not right.terms:
                return left.scaled(right.constant)
            if not left.terms:
                return right.scaled(left.constant)
        case FloorDiv(a, Const() as c) if c.value > 0:
            return quotient(_affine(a, env, ranges), int(c.value), ranges)
        case FloorMod(a, Const() as c) if c.value > 0:
            form = _affine(a, env, ranges)
            return form - quotient(form, int(c.value), ranges).scaled(int(c.value))
        case Min(a, b) | Max(a, b):
            return extreme(
                _affine(a, env, ranges), _affine(b, env, ranges), isinstance(expr, Max), ranges
            )
        case Select(chosen, a, b):
            return _choice(chosen, _affine(a, env, ranges), _affine(b, env, ranges), env, ranges)
        case Cast(value) if expr.type.is_integer and value.dtype.is_integer:
            return _converted(expr, _affine(value, env, ranges), ranges)
    raise Undecided(_why(expr))


def extreme(a: Affine, b: Affine, larger: bool, ranges: Ranges) -> Affine:
    """The smaller of two forms, or the larger, as simple as the ranges allow."""
    low, high = interval(a - b, ranges)
    if low >= 0:
        return a if larger else b
    if high <= 0:
        return b if larger else a
    return Affine(((Extreme(a, b, larger), 1),))


def _choice(
    chosen: Expr, a: Affine, b: Affine, env: Mapping[Var, Affine], ranges: Ranges
) -> Affine:
    """`a` where a condition of indices holds, else `b`; one test after the other."""
    if a == b:
        return a
    match chosen:
        case Const():
            return a if chosen.value else b
        case Not(inner):
            return _choice(inner, b, a, env, ranges)
        case And(left, right):  # a where both hold
            return _choice(left, _choice(right, a, b, env, ranges), b, env, ranges)
        case Or(left, right):
            return _choice(left, a, _choice(right, a, b, env, ranges), env, ranges)
        case LT(left, right) | LE(left, right) if left.dtype.is_integer:
            margin = _affine(right, env, ranges) - _affine(left, env, ranges)
            return _tested(margin.plus(-1) if isinstance(chosen, LT) else margin, a, b, ranges)
        case EQ(left, right) | NE(left, right) if left.dtype.is_integer:
            apart = _affine(left, env, ranges) - _affine(right, env, ranges)
            equal, other = (a, b) if isinstance(chosen, EQ) else (b, a)
            return _tested(apart, _tested(apart.scaled(-1), equal, other, ranges), other, ranges)
    raise Undecided(_why(chosen))


def _tested(test: Affine, a: Affine, b: Affine, ranges: Ranges) -> Affine:
    low, high = interval(test, ranges)
    if low >= 0 or high < 0 or a == b:
        return a if low >= 0 else b
    return Affine(((Choice(test, a, b), 1),))


def _converted(cast: Cast, form: Affine, ranges: Ranges) -> Affine:
    low, high = interval(form, ranges)
    signed = cast.type.kind.value == "int"
    limit = 1 << (cast.type.bits - (1 if signed else 0))
    if low < (-limit if signed else 0) or high >= limit:
        raise Undecided(f"the index {print_expr(cast)} may wrap around in {cast.type}")
    return form


def test_of(choice: Branching) -> Affine:
    """The form that is not negative where the first of two is taken."""
    if isinstance(choice, Choice):
        return choice.test
    return choice.a - choice.b if choice.larger else choice.b - choice.a


def first_branching(form: Affine) -> Branching | None:
    """A choice between forms, in the form or inside its atoms, that holds no other; None where
    there is none.
    """
    for atom, _ in form.terms:
        inner = () if isinstance(atom, Var) else parts(atom)
        found = next((e for f in inner if (e := first_branching(f)) is not None), None)
        if found is not None:
            return found
        if isinstance(atom, Branching):
            return atom
    return None


def replace_branching(form: Affine, old: Branching, new: Affine) -> Affine:
    """The form with `new` standing for `old`, inside atoms too."""
    result = Affine((), form.constant)
    for atom, coefficient in form.terms:
        term = Affine(((atom, 1),))
        if atom == old:
            term = new
        elif not isinstance(atom, Var):
            inner = [replace_branching(f, old, new) for f in parts(atom)]
            term = Affine(((_remade(atom, inner), 1),))
        result = result + term.scaled(coefficient)
    return result


def _remade(atom: Quotient | Branching, inner: Sequence[Affine]) -> Atom:
    """The atom of other parts."""
    if isinstance(atom, Quotient):
        return replace(atom, inner=inner[0])
    if isinstance(atom, Extreme):
        return replace(atom, a=inner[0], b=inner[1])
    return Choice(*inner)


def _why(expr: Expr) -> str:
    read = next((n for n in walk(expr) if isinstance(n, Load)), None)
    if read is not None:
        return f"the index {print_expr(expr)} depends on the values of '{read.buffer.name}'"
    return f"the index {print_expr(expr)} is not affine"
