"""How far rounding may take each element of a function's tensors, to first order: a running error
analysis on whole arrays, beside the evaluation in float64.

The error of an element is the sum over its operations of roundoff times what that operation's
result means to the element (roundings.py). A sum counts one roundoff of each of its terms, which is
about what random roundings of partial sums come to; how much more a long chain brings is measured,
not derived (error_bound.py). Where there is no rule, as in scans, products of many factors and
reducers of a user, every element of the tensor counts as far off as the sample of it ever was, and
as what it is made of is.

Tensor cores cut what float32 cannot hold, of a sum and of what they add to it (Fasi, Higham,
Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7, 2021).
Errors of one sign add up: each step counts two last places of what may have been summed so far,
which is the sum itself, where terms have one sign, and the root of the sum of their squares, where
they have two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..buffer import Buffer, Load
from ..expr import Cast, Expr
from ..visit import loads
from .contraction import contract, factors_of
from .definitions import Definition
from .evaluate import (
    POINTS,
    DomainBox,
    boxes,
    chunk_sizes,
    contraction_chunks,
    is_contraction,
    place_of,
    split_quotients,
)
from .roundings import UNIT, NotFollowed, Rounded, RoundedEvaluator, roundoff, rounds_nothing
from .scatter_errors import scatter_errors

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Errors = Mapping[Buffer, Array]

_LARGEST = frozenset({"min", "max", "max_any", "any", "all"})  # no term adds to another's error
_SUMMED = 2.0  # roundings of a term of a sum: its own and that of the addition
_CUT = 2.0  # last places of what is summed so far that a step of a sum which is cut may take


def rounding_errors(
    listed: Sequence[Definition],
    values: Mapping[Buffer, Array],
    seen: Callable[[Buffer], float],
    cut: int = 0,
) -> dict[Buffer, Array]:
    """The errors of the elements of each tensor, in units (roundings.UNIT); none of exact ones.

    values: of every tensor, in float64. seen: the largest error that a sample of a tensor showed,
    which counts where an operation has no rule. cut: products of 16-bit floats are added so many at
    once, to a sum that is cut; 0: it is rounded.
    """
    errors: dict[Buffer, Array] = {}
    for definition in listed:
        try:
            with np.errstate(all="ignore"):
                found = _follow(definition, values, errors, cut)
        except NotFollowed:
            given, found = _largest_given(definition, errors), {}
            for target in definition.targets:
                most = seen(target) / UNIT + (given if target.type.is_float else 0.0)
                if most > 0:
                    found[target] = np.full(target.shape, most)
        for target, error in found.items():
            np.nan_to_num(error, copy=False, nan=np.inf, posinf=np.inf)
            errors[target] = error if target not in errors else np.maximum(errors[target], error)
    return errors


def _largest_given(definition: Definition, errors: Errors) -> float:
    """The largest error of the floats that a definition reads."""
    read = {load.buffer for value in definition.values for load in loads(value)}
    if definition.extern is not None:
        read.update(definition.extern.inputs)
    known = [errors[b] for b in read if b.type.is_float and b in errors and b.size]
    return max((float(np.max(e, initial=0.0, where=np.isfinite(e))) for e in known), default=0.0)


def before_last_rounding(
    definition: Definition, values: Mapping[Buffer, Array], errors: Errors
) -> Array | None:
    """The errors of a tensor whose elements are rounded to its type last, without that rounding."""
    assert isinstance(definition.value, Cast)
    plain = replace(definition, values=(definition.value.value,))
    with np.errstate(all="ignore"):
        return _follow(plain, values, errors).get(definition.target)


def _follow(
    definition: Definition, values: Mapping[Buffer, Array], errors: Errors, cut: int = 0
) -> dict[Buffer, Array]:
    """The errors of what a definition defines. Raises: NotFollowed."""
    if definition.extern is not None:
        made = scatter_errors(definition.extern, values, errors)
        return {} if made is None else {definition.target: made}
    if definition.ordered or len(definition.targets) > 1:
        raise NotFollowed(definition.block)
    target, adds = definition.target, definition.reducer == "sum"
    is_known = definition.update is None or adds or definition.reducer in _LARGEST
    if not is_known:
        raise NotFollowed(definition.block)
    if rounds_nothing(definition.value, errors) and not (adds and target.type.is_float):
        return {}
    if definition.plain:
        definition = split_quotients(definition)
    extents = [axis.extent for axis in definition.axes]
    into = _Into(np.zeros(extents if definition.plain else target.shape), definition)
    if definition.update is None:
        for box in boxes(definition.axes, chunk_sizes(definition.axes, POINTS)):
            into.put(box, _evaluator(box, values, errors).rounded(definition.value).error)
    elif adds and is_contraction(definition):
        _follow_contraction(definition, values, errors, into)
        if cut and _is_of_halves(definition):
            _follow_cuts(definition, values, cut, into)
    else:
        _follow_reduction(definition, values, errors, into)
    return {target: into.array.reshape(target.shape)} if into.found else {}


class _Into:
    """The array that errors are put into, box by box. found: whether any was."""

    def __init__(self, array: Array, definition: Definition) -> None:
        self.array = array
        self.found = False
        self._definition = definition

    def put(self, box: DomainBox, error: Array | None, combine: np.ufunc | None = None) -> None:
        """Store errors, or combine them with those that are there."""
        if error is None:
            return
        self.found = True
        place = place_of(self._definition, box)
        self.array[place] = error if combine is None else combine(self.array[place], error)


def _evaluator(box: DomainBox, values: Mapping[Buffer, Array], errors: Errors) -> RoundedEvaluator:
    def view(load: Load) -> Array | None:
        return box.view(load, values[load.buffer])

    def view_error(load: Load) -> Array | None:
        return box.view(load, errors[load.buffer])

    return RoundedEvaluator(box.values(), values, errors, view=view, view_error=view_error)


def _follow_reduction(
    definition: Definition, values: Mapping[Buffer, Array], errors: Errors, into: _Into
) -> None:
    axes = definition.reduced + definition.axes
    count = len(definition.reduced)
    is_sum = definition.reducer == "sum"
    combine = np.add if is_sum else np.maximum
    for box in boxes(axes, chunk_sizes(axes, POINTS)):
        found = _evaluator(box, values, errors).rounded(definition.value)
        error = _of_term(found, definition.value) if is_sum else found.error
        if error is None:
            continue
        own = error.shape[count:] if error.ndim else (1,) * len(definition.axes)
        error = np.broadcast_to(error, (*box.extents[:count], *own))
        partial = combine.reduce(error, axis=tuple(range(count)))
        into.put(box.last(len(definition.axes)), partial, combine)


def _of_term(found: Rounded, value: Expr) -> Array | None:
    """The error that a term brings to its sum."""
    if not value.dtype.is_float:
        return found.error
    own = roundoff(found.value, value.dtype, _SUMMED / 2)
    return own if found.error is None else np.add(found.error, own)


def _follow_contraction(
    definition: Definition, values: Mapping[Buffer, Array], errors: Errors, into: _Into
) -> None:
    """Of a product the error of each factor times the others, and the roundoff of the product: sums
    of products again. The first inexact factor takes the roundoff with its error.
    """
    axes = definition.reduced + definition.axes
    factors, rank = factors_of(definition.value), len(axes)
    dtype = definition.value.dtype
    share = _SUMMED * float(roundoff(np.asarray(1.0), dtype)) if dtype.is_float else 0.0
    working = np.float64 if dtype.bits == 64 else np.float32
    for box in boxes(axes, contraction_chunks(definition, axes, factors)):
        evaluator = _evaluator(box, values, errors)
        found = [evaluator.rounded(factor) for factor in factors]
        sizes = [np.abs(one.value.astype(working)) for one in found]
        inexact = [n for n, one in enumerate(found) if one.error is not None] or [0]
        for n in inexact:
            own = np.multiply(sizes[n], working(share if n == inexact[0] else 0.0))
            error = found[n].error
            own = own if error is None else np.add(own, error.astype(working))
            if not np.any(own):
                continue
            arrays = [own if m == n else size for m, size in enumerate(sizes)]
            shaped = [a.reshape((1,) * rank) if a.ndim == 0 else a for a in arrays]
            partial = contract(shaped, box.extents, len(definition.reduced))
            into.put(box.last(len(definition.axes)), partial, np.add)


def _is_of_halves(definition: Definition) -> bool:
    """Whether each term is the product of two 16-bit floats, in float32."""
    factors = factors_of(definition.value)
    return len(factors) == 2 and all(
        isinstance(factor, Cast) and factor.value.dtype.is_float and factor.value.dtype.bits == 16
        for factor in factors
    )


def _follow_cuts(
    definition: Definition, values: Mapping[Buffer, Array], points: int, into: _Into
) -> None:
    """Add what the steps of a sum of products lose, of so many terms each."""
    steps = -(-math.prod(axis.extent for axis in definition.reduced) // points)
    if steps < 2:
        return
    axes = definition.reduced + definition.axes
    factors = factors_of(definition.value)
    squares = np.zeros(into.array.shape)
    for box in boxes(axes, contraction_chunks(definition, axes, factors)):
        evaluator = _evaluator(box, values, {})
        found = [np.square(evaluator.rounded(f).value, dtype=np.float64) for f in factors]
        place = place_of(definition, box.last(len(definition.axes)))
        some = contract(found, box.extents, len(definition.reduced))
        squares[place] = np.add(squares[place], some)
    whole = np.abs(values[definition.target]).reshape(squares.shape)
    so_far = np.add(whole, np.sqrt(squares))
    lost = roundoff(so_far, definition.value.dtype, _CUT * steps)
    into.array[...] = np.add(into.array, lost)


def summed_terms(listed: Sequence[Definition]) -> int:
    """How many floats are added into one element, over all sums of a function."""
    sums = [d for d in listed if d.reducer == "sum" and d.value.dtype.is_float]
    return sum(math.prod(axis.extent for axis in d.reduced) for d in sums)
