"""Between which numbers a sum of products lies whose factors do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

Number = int | Fraction
Span = tuple[Number, Number]
A = TypeVar("A")
_MOST_CORNERS = 1 << 6


def span_of(
    terms: Sequence[tuple[tuple[A, ...], Number]], bounds: Callable[[A], tuple[int, int]]
) -> Span:
    """The span of a sum of products, each with its coefficient. Factors know nothing of each other.

    What is linear in each factor is least and greatest at corners: h*w - w is (h - 1)*w.
    """
    factors = dict.fromkeys(atom for atoms, _ in terms for atom in atoms)
    linear = all(len(set(atoms)) == len(atoms) for atoms, _ in terms)
    if not linear or 2 ** len(factors) > _MOST_CORNERS or all(len(a) < 2 for a, _ in terms):
        return _of_terms(terms, bounds)
    found = []
    for corner in itertools.product(*map(bounds, factors)):
        at = dict(zip(factors, corner, strict=True))
        found.append(sum(c * math.prod(at[atom] for atom in atoms) for atoms, c in terms))
    return min(found), max(found)


def _of_terms(
    terms: Sequence[tuple[tuple[A, ...], Number]], bounds: Callable[[A], tuple[int, int]]
) -> Span:
    """The span of each term, added up."""
    low: Number = 0
    high: Number = 0
    for atoms, coefficient in terms:
        ends: Span = (coefficient, coefficient)
        for atom in atoms:
            products = [x * y for x in ends for y in bounds(atom)]
            ends = min(products), max(products)
        low, high = low + ends[0], high + ends[1]
    return low, high
