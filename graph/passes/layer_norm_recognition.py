"""Recognise LayerNormalization and RMSNormalization where a model spells them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.ir import Graph
from ..ops.arithmetic import Add, Div, Mul, Pow, Sub
from ..ops.functions import Sqrt
from ..ops.reduction import ReduceMean
from .norms import with_norms
from .pattern import Made, Number, Pattern, Value


def _over_root_mean_square(value: Pattern, square: Pattern) -> tuple[Pattern, Pattern]:
    mean = Made(ReduceMean, (square,), "squares")
    root = Made(Sqrt, (Made(Add, (mean, Number("epsilon"))),))
    inverse = Made(Div, (Number("one"), root), "inverse")
    return Made(Div, (value, root)), Made(Mul, (value, inverse))


_X = Value("x")
_CENTRED = Made(Sub, (_X, Made(ReduceMean, (_X,), "mean")))
_PATTERNS = tuple(
    pattern
    for value in (_CENTRED, _X)
    for square in (Made(Mul, (value, value)), Made(Pow, (value, Number("two"))))
    for pattern in _over_root_mean_square(value, square)
)


@dataclass(frozen=True, slots=True)
class LayerNormRecognition:
    """Replace nodes that normalise rows by LayerNormalization or RMSNormalization.

    c = x - mean(x);  c / sqrt(mean(c * c) + epsilon) * scale + bias   ->   LayerNormalization
    x / sqrt(mean(x * x) + epsilon) * scale                            ->   RMSNormalization

    The reciprocal of the root, multiplied, is as good as a division.
    Means are over one or several of the last axes and keep them; scale and bias may be missing.
    Nodes whose values others read, too, are left alone.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        return with_norms(graph, _PATTERNS)
