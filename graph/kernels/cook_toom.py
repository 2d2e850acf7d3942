"""The matrices of Winograd's algorithm F(m, r), by the construction of Cook and Toom.

A correlation of m results with r taps is the transpose of a product of polynomials. That is
evaluated at m + r - 2 points and at infinity, multiplied there and interpolated (S. Winograd,
"Arithmetic Complexity of Computations", 1980). The matrices are fractions, so they are exact; what
rounding does depends on the points alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

Row = tuple[Fraction, ...]


class Matrices(NamedTuple):
    """y = result [(weights w) * (data d)] for data d of m + r - 1 and weights w of r elements.

    weights: one row for each product, r columns; data: as many columns as rows; result: m rows.
    """

    weights: tuple[Row, ...]
    data: tuple[Row, ...]
    result: tuple[Row, ...]


def cook_toom(points: Sequence[Fraction | int], taps: int, negated: Sequence[int] = ()) -> Matrices:
    """The matrices for distinct points, with infinity as the last one; m is so many points and two,
    less `taps`.

    negated: rows of the data with the other sign, which a point makes good in its weights and
    infinity in its column of the result.
    """
    finite = [Fraction(point) for point in points]
    results = len(finite) + 2 - taps
    weights, data = [], []
    for point in finite:
        others = [other for other in finite if other != point]
        scale = math.prod(point - other for other in others)
        weights.append([point**power / scale for power in range(taps)])
        data.append([*_with_roots(others), Fraction(0)])
    weights.append([Fraction(power == taps - 1) for power in range(taps)])
    data.append(_with_roots(finite))
    result = [
        [*(p**power for p in finite), Fraction(power == results - 1)] for power in range(results)
    ]
    last = len(finite)
    for number in negated:
        data[number] = [-x for x in data[number]]
        if number < last:
            weights[number] = [-x for x in weights[number]]
        else:
            result = [[*row[:-1], -row[-1]] for row in result]
    return Matrices(*(tuple(map(tuple, rows)) for rows in (weights, data, result)))


def _with_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the product of x - root, the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *found], [*(-root * x for x in found), Fraction(0)]
        found = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return found
