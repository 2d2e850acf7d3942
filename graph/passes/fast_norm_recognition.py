"""Recognise normalisations that a model spells for speed, and that round otherwise for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..ir.ir import Graph
from ..ops.activation import Relu
from ..ops.arithmetic import Add, Div, Max, Mul, Pow, Sub
from ..ops.functions import Sqrt
from ..ops.reduction import ReduceMean
from .norms import with_norms
from .pattern import Made, Number, Pattern, Value

_X = Value("x")
_MEAN = Made(ReduceMean, (_X,), "mean")
_CENTRED = Made(Sub, (_X, _MEAN))


def _squared(value: Pattern) -> tuple[Pattern, Pattern]:
    return Made(Mul, (value, value)), Made(Pow, (value, Number("two")))


def _fast_variances() -> Iterator[Pattern]:
    """mean(x * x) - mean(x) * mean(x), which rounding may make less than 0."""
    for square in _squared(_X):
        for own in _squared(_MEAN):
            difference = Made(Sub, (Made(ReduceMean, (square,), "squares"), own))
            yield from (
                difference,
                Made(Max, (difference, Number("zero"))),
                Made(Max, (Number("zero"), difference)),
                Made(Relu, (difference,)),
            )


def _patterns() -> Iterator[Pattern]:
    exact = [(c, Made(ReduceMean, (s,), "squares")) for c in (_CENTRED, _X) for s in _squared(c)]
    fast = [(_CENTRED, variance) for variance in _fast_variances()]
    for value, variance in (*fast, *exact):
        root = Made(Sqrt, (Made(Add, (variance, Number("epsilon"))),))
        inverse = Made(Div, (Number("one"), root), "inverse")
        yield Made(Mul, (value, Made(Mul, (inverse, Value("scale")))))
        if variance in [one for _, one in fast]:
            yield Made(Div, (value, root))
            yield Made(Mul, (value, inverse))


_PATTERNS = tuple(_patterns())


@dataclass(frozen=True, slots=True)
class FastNormRecognition:
    """Replace nodes that normalise rows by LayerNormalization or RMSNormalization, where these
    round less: the variance is mean(x * x) - mean(x) * mean(x), which loses the digits that a mean
    far from 0 has, or the scale is multiplied with the reciprocal of the root first.

    (x - mean(x)) * (scale / sqrt(max(0, mean(x * x) - mean(x)**2) + epsilon)) + bias
    ->  LayerNormalization

    As `LayerNormRecognition` in all else; the scale may be computed, too, where it is the same for
    all rows.
    """

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        return with_norms(graph, _PATTERNS)
