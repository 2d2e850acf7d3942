"""Size: how large an axis is, where calls decide it: integers and dims, their sums and products,
quotients, minima and maxima of these.

A size is kept in a normal form, a polynomial with integer coefficients, so that equal sizes are
mostly equal values. Sizes are equal or in order for every choice of the dims, or nobody may act on
it: `same` and `at_most` say so, and a comparison that no form and no bound decides is refused.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn
from weakref import WeakKeyDictionary, WeakValueDictionary

from .dim import Dim
from .errors import TilewrightError
from .expr import Expr, Max, Min, add, floordiv, index, mul
from .spans import Number, span_of

Interval = tuple[int, int]
_LARGEST = (1 << 31) - 1  # of a size as a dim


class SizeError(TilewrightError, ValueError):
    """A number is asked of a size that calls decide, or an order of two that they may decide
    either way.
    """


@dataclass(frozen=True, slots=True)
class DividedSize:
    """`size` divided by `divisor`, rounded down."""

    size: Size
    divisor: int

    def __str__(self) -> str:
        return f"{_in_brackets(self.size)}//{self.divisor}"


@dataclass(frozen=True, slots=True)
class ExtremeSize:
    """The least, or the greatest, of two sizes or more."""

    sizes: tuple[int | Size, ...]
    greatest: bool

    def __str__(self) -> str:
        return f"{'max' if self.greatest else 'min'}({', '.join(map(str, self.sizes))})"


Atom = Dim | DividedSize | ExtremeSize
Monomial = tuple[Atom, ...]  # a product, in the order of the texts of its factors


@dataclass(frozen=True, slots=True)
class Size:
    """The sum of products of atoms, each with its coefficient: 2*batch*seq + 1.

    terms: in the order of their texts, the constant, which is the product of no atoms, last; no
    coefficient is 0, and one that is a number alone is an int instead of a Size.
    low, high: no call has a smaller or a larger one.
    """

    terms: tuple[tuple[Monomial, int], ...]
    low: int = field(compare=False)
    high: int = field(compare=False)

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            sign = " - " if coefficient < 0 else " + "
            factors = [str(atom.name if isinstance(atom, Dim) else atom) for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            if len(factors) > 1:
                factors = [f"({one})" if "//" in one else one for one in factors]
            text += (sign if text else sign.strip(" +")) + "*".join(factors)
        return text

    __repr__ = __str__

    # -- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: int | Size) -> int | Size:
        return _sum((*self.terms, *_terms(other)))

    __radd__ = __add__

    def __neg__(self) -> int | Size:
        return self * -1

    def __sub__(self, other: int | Size) -> int | Size:
        return self + other * -1

    def __rsub__(self, other: int | Size) -> int | Size:
        return self * -1 + other

    def __mul__(self, other: int | Size) -> int | Size:
        return _sum((_product(a, b), m * n) for a, m in self.terms for b, n in _terms(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Size) -> int | Size:
        return quotient(self, other)

    def __mod__(self, other: int | Size) -> int | Size:
        return self - quotient(self, other) * other

    # -- order -----------------------------------------------------------------------------------

    def __lt__(self, other: int | Size) -> bool:
        return not _decided(at_most(other, self), other, "<=", self)

    def __gt__(self, other: int | Size) -> bool:
        return not _decided(at_most(self, other), self, "<=", other)

    def __le__(self, other: int | Size) -> bool:
        return _decided(at_most(self, other), self, "<=", other)

    def __ge__(self, other: int | Size) -> bool:
        return _decided(at_most(other, self), other, "<=", self)

    def __bool__(self) -> bool:
        return _decided(None if self.low <= 0 <= self.high else True, self, "!=", 0)

    if not TYPE_CHECKING:  # a type checker finds what needs a number; these stop what it missed

        def __index__(self) -> NoReturn:
            raise SizeError(
                f"sizes: '{self}' is decided by each call; expected a number.", code="size-open"
            )

        __int__ = __float__ = __index__

    # -- what it stands for ----------------------------------------------------------------------

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims that decide it, each once."""
        found: dict[Dim, None] = {}
        for monomial, _ in self.terms:
            for atom in monomial:
                match atom:
                    case Dim():
                        found[atom] = None
                    case DividedSize():
                        found |= dict.fromkeys(atom.size.dims)
                    case ExtremeSize():
                        found |= dict.fromkeys(dims_in(atom.sizes))
        return tuple(found)

    @property
    def dim(self) -> Dim | None:
        """The dim that it is, where it is one and nothing else."""
        match self.terms:
            case (((Dim() as dim,), 1),):
                return dim
        return None

    @property
    def expression(self) -> Expr:
        """The size as an expression of its dims, in int64."""
        total: Expr | None = None
        for monomial, coefficient in self.terms:
            term: Expr = index(coefficient)
            for atom in monomial:
                value = _expression(atom)
                term = value if term == index(1) else mul(term, value)
            total = term if total is None else add(total, term)
        assert total is not None
        return total


AnySize = int | Size
Length = int | Dim | Size  # what the language takes for an axis

# the dim that stands for a size on an axis, one for each, and the size that each stands for
_standing: WeakValueDictionary[Size, Dim] = WeakValueDictionary()
_meant: WeakKeyDictionary[Dim, Size] = WeakKeyDictionary()


def axis_of(size: AnySize) -> int | Dim:
    """The extent of an axis of so many elements: a number, or the dim that stands for the size.

    Raises: SizeError for a size that may be negative, or beyond what an axis may have.
    """
    if not isinstance(size, Size):
        return size
    if size.dim is not None:
        return size.dim
    if size.low < 0 or size.high > _LARGEST:
        raise SizeError(
            f"sizes: '{size}' is {size.low} to {size.high}; expected an axis of 0 to {_LARGEST} "
            "elements.",
            code="size-axis",
        )
    known = _standing.get(size)
    if known is None:
        name = re.sub(r"\W+", "_", str(size)).strip("_")
        usual = size_in(size, {dim: dim.usual for dim in size.dims})
        known = Dim(name, low=size.low, high=size.high, typical=usual)
        _standing[size], _meant[known] = known, size
    return known


def size_of(extent: int | Dim) -> AnySize:
    """The size of an axis: what `axis_of` made it of."""
    if not isinstance(extent, Dim):
        return extent
    meant = _meant.get(extent)
    return meant if meant is not None else Size((((extent,), 1),), extent.low, extent.high)


def quotient(size: AnySize, divisor: AnySize) -> AnySize:
    """A size divided by another, rounded down; exact where every part divides. Of what is left, all
    coefficients are less than the divisor, and it is no quotient itself: (n - 1)//2 is
    (n + 1)//2 - 1, and (n//2 + 1)//2 is (n + 2)//4.

    Raises: SizeError for a divisor that calls decide and that is no factor, or that is not
    positive.
    """
    exact = exact_quotient(size, divisor)
    if exact is not None:
        return exact
    if isinstance(divisor, Size) or divisor < 1:
        raise SizeError(
            f"sizes: '{size}' is divided by '{divisor}'; expected a divisor above 0, or one that "
            "every part of it has.",
            code="size-divisor",
        )
    if not isinstance(size, Size):
        return size // divisor
    left = _sum((m, c % divisor) for m, c in size.terms)
    moved = _sum((m, c // divisor) for m, c in size.terms)
    if not isinstance(left, Size):
        return moved + left // divisor
    match left.terms:
        case (((DividedSize(inner, by),), 1), *rest):
            return moved + quotient(inner + _sum(rest) * by, divisor * by)
    low, high = left.low // divisor, left.high // divisor
    if low == high:
        return moved + low
    return moved + _size((((DividedSize(left, divisor),), 1),))


def least(*sizes: AnySize) -> AnySize:
    """The smallest of some sizes."""
    return _extreme(sizes, greatest=False)


def greatest(*sizes: AnySize) -> AnySize:
    """The largest of some sizes."""
    return _extreme(sizes, greatest=True)


def product_of(sizes: Iterable[AnySize]) -> AnySize:
    """The product of sizes; 1 of none."""
    return math.prod(sizes)


def same(a: AnySize, b: AnySize) -> bool | None:
    """Whether two sizes are equal in every call; False: in none; None: nobody knows."""
    low, high = interval(a - b)
    return True if low == high == 0 else False if low > 0 or high < 0 else None


def at_most(a: AnySize, b: AnySize) -> bool | None:
    """Whether `a` is at most `b` in every call; False: in none; None: nobody knows."""
    low, high = interval(a - b)
    return True if high <= 0 else False if low > 0 else None


def interval(size: AnySize) -> Interval:
    """Between which numbers a size lies in every call."""
    return (size.low, size.high) if isinstance(size, Size) else (size, size)


def largest(size: AnySize) -> int:
    """The most that a call may make of it."""
    return interval(size)[1]


def is_closed(shape: Iterable[AnySize]) -> bool:
    """Whether no call decides any of some sizes."""
    return not any(isinstance(size, Size) for size in shape)


def dims_in(sizes: Iterable[AnySize]) -> tuple[Dim, ...]:
    """The dims that decide some sizes, each once."""
    opened = (size for size in sizes if isinstance(size, Size))
    return tuple(dict.fromkeys(dim for size in opened for dim in size.dims))


def substituted(size: AnySize, values: Mapping[Dim, AnySize]) -> AnySize:
    """The size with something else in place of some of its dims."""
    if not isinstance(size, Size):
        return size
    total: AnySize = 0
    for monomial, coefficient in size.terms:
        term: AnySize = coefficient
        for atom in monomial:
            term = term * _replaced(atom, values)
        total = total + term
    return total


def size_in(size: AnySize, values: Mapping[Dim, int]) -> int:
    """The number that a size is where its dims have these values."""
    if isinstance(size, int):
        return size
    dim = size.dim
    found = substituted(size, values) if dim is None else values.get(dim)
    assert isinstance(found, int), f"a value for each dim of {size}"
    return found


def shape_in(shape: Iterable[AnySize], values: Mapping[Dim, int]) -> tuple[int, ...]:
    """The numbers that the sizes of a shape are."""
    return tuple(size_in(size, values) for size in shape)


def shape_with(shape: Iterable[AnySize], values: Mapping[Dim, AnySize]) -> tuple[AnySize, ...]:
    """The sizes of a shape with something else in place of some of their dims."""
    return tuple(substituted(size, values) for size in shape)


def _replaced(atom: Atom, values: Mapping[Dim, AnySize]) -> AnySize:
    match atom:
        case Dim():
            return values[atom] if atom in values else size_of(atom)
        case DividedSize():
            return quotient(substituted(atom.size, values), atom.divisor)
        case ExtremeSize():
            return _extreme([substituted(s, values) for s in atom.sizes], greatest=atom.greatest)


def _terms(size: AnySize) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, Size):
        return size.terms
    return (((), size),) if size else ()


def _key(monomial: Monomial) -> tuple[bool, list[tuple[str, int]]]:
    """The order of terms: that of their texts; dims of one name in a fixed one."""
    return (not monomial, [_atom_key(atom) for atom in monomial])


def _atom_key(atom: Atom) -> tuple[str, int]:
    return (atom.name, id(atom)) if isinstance(atom, Dim) else (str(atom), 0)


def _product(a: Monomial, b: Monomial) -> Monomial:
    return tuple(sorted((*a, *b), key=_atom_key))


def _sum(terms: Iterable[tuple[Monomial, int]]) -> AnySize:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        total[monomial] = total.get(monomial, 0) + coefficient
    kept = tuple(sorted(((m, c) for m, c in total.items() if c), key=lambda term: _key(term[0])))
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return _size(kept)


@lru_cache(maxsize=1 << 12)  # the bounds of sizes with quotients take long, and a model has few
def _size(terms: tuple[tuple[Monomial, int], ...]) -> Size:
    ends = span_of(terms, _bounds)
    low, high = math.ceil(ends[0]), math.floor(ends[1])
    if any(isinstance(atom, DividedSize) for monomial, _ in terms for atom in monomial):
        low = max(low, math.ceil(span_of(_undivided(terms, -1), _bounds)[0]))
        high = min(high, math.floor(span_of(_undivided(terms, 1), _bounds)[1]))
    return Size(terms, low, high)


def _undivided(terms: Iterable[tuple[Monomial, int]], side: int) -> list[tuple[Monomial, Number]]:
    """A sum that is at most (side -1) or at least (side 1) what `terms` are, where a quotient is
    what it divides, over its divisor: seq//2 - seq is at most -seq/2; so is one that is multiplied
    by what is not negative: batch*(seq//2) - batch*seq is at most -batch*seq/2.
    """
    total: dict[Monomial, Number] = {}
    left: list[tuple[Monomial, Number]] = list(terms)
    while left:
        monomial, coefficient = left.pop()
        divided = next((atom for atom in monomial if isinstance(atom, DividedSize)), None)
        others = list(monomial)
        if divided is not None:
            others.remove(divided)
        if divided is None or any(_bounds(atom)[0] < 0 for atom in others):
            total[monomial] = total.get(monomial, 0) + coefficient
            continue
        share = Fraction(coefficient) / divided.divisor
        left += [(_product(m, tuple(others)), share * c) for m, c in divided.size.terms]
        if coefficient * side < 0:  # less what the division leaves at most
            left.append((tuple(others), -share * (divided.divisor - 1)))
    return list(total.items())


def _bounds(atom: Atom) -> Interval:
    match atom:
        case Dim():
            return atom.low, atom.high
        case DividedSize():
            return atom.size.low // atom.divisor, atom.size.high // atom.divisor
        case ExtremeSize():
            choose: Callable[[Iterable[int]], int] = max if atom.greatest else min
            spans = [interval(size) for size in atom.sizes]
            return choose(low for low, _ in spans), choose(high for _, high in spans)


def exact_quotient(size: AnySize, divisor: AnySize) -> AnySize | None:
    """The polynomial that gives `size` times a divisor above 0; None where there is none."""
    return None if interval(divisor)[0] < 1 else factor_beside(size, divisor)


def factor_beside(size: AnySize, factor: AnySize) -> AnySize | None:
    """The polynomial that gives `size` times a factor other than 0, as polynomials: also where some
    call makes the factor 0, so that it is not the only one there. None where there is none.
    """
    first, number = max(_terms(factor), key=_degree)
    taken = Counter(first)
    found: list[tuple[Monomial, int]] = []
    while _terms(size):
        monomial, coefficient = max(_terms(size), key=_degree)
        left = Counter(monomial)
        if coefficient % number or not taken <= left:
            return None
        found.append((tuple((left - taken).elements()), coefficient // number))
        size = size - _sum(found[-1:]) * factor
    return _sum(found)


def _degree(term: tuple[Monomial, int]) -> tuple[int, list[tuple[str, int]]]:
    """An order of terms that stays when they are multiplied."""
    return len(term[0]), [_atom_key(atom) for atom in term[0]]


def _extreme(sizes: Iterable[AnySize], *, greatest: bool) -> AnySize:
    kept: list[AnySize] = []
    for size in sizes:
        within = [(at_most(size, k) if greatest else at_most(k, size)) is True for k in kept]
        if any(within):
            continue
        kept = [k for k in kept if (at_most(k, size) if greatest else at_most(size, k)) is not True]
        kept.append(size)
    if len(kept) == 1:
        return kept[0]
    return _size((((ExtremeSize(tuple(sorted(kept, key=str)), greatest),), 1),))


def _expression(atom: Atom) -> Expr:
    match atom:
        case Dim():
            return atom
        case DividedSize():
            return floordiv(atom.size.expression, index(atom.divisor))
        case ExtremeSize():
            first, *rest = (as_expression(size) for size in atom.sizes)
            for item in rest:
                first = Max(first, item) if atom.greatest else Min(first, item)
            return first


def as_expression(size: AnySize) -> Expr:
    """A size as an expression of int64."""
    return size.expression if isinstance(size, Size) else index(size)


def _in_brackets(size: Size) -> str:
    return f"({size})" if len(size.terms) > 1 or size.terms[0][1] != 1 else str(size)


def _decided(answer: bool | None, a: object, sign: str, b: object) -> bool:
    if answer is None:
        raise SizeError(
            f"sizes: whether {a} {sign} {b} is decided by each call; expected what holds in every "
            "one, or in none.",
            code="size-undecided",
        )
    return answer


def closed(size: AnySize) -> int:
    """The number that a size is. Raises: SizeError where calls decide it."""
    return operator.index(size) if isinstance(size, Size) else size  # type: ignore[arg-type]


def closed_shape(shape: Iterable[AnySize]) -> tuple[int, ...]:
    """The numbers that the sizes of a shape are. Raises: SizeError where calls decide one."""
    return tuple(map(closed, shape))
