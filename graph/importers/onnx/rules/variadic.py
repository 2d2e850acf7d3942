"""Operators of any number of inputs: one of very many becomes several nodes, of which each makes a
kernel of its own; most of them are alike, and compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....ops import arithmetic, movement
from ....ops.base import normal_axis
from ..node import NodeReader
from .rule import Application, Result

MOST_TERMS = 48  # of an expression, which has a level for each
MOST_PIECES = 80  # of a Concat; two levels of it join 6,400 tensors

Folded = arithmetic.Sum | arithmetic.Max | arithmetic.Min


def fold(op: Folded) -> Callable[[NodeReader], Result]:
    """The rule of an operator that takes its inputs from left to right, and so do its parts."""
    return lambda node: (op, folded(node, op))


def folded(node: NodeReader, op: Folded) -> tuple[str, ...]:
    """What the last of the nodes reads that compute `op` of all inputs."""
    values = node.inputs
    while len(values) > MOST_TERMS:
        first = node.emit(op, *values[:MOST_TERMS])
        values = (first, *values[MOST_TERMS:])
    return values


def concat(node: NodeReader) -> Result:
    """The rule of Concat."""
    axis = normal_axis(movement.Concat(0), node.integer("axis"), node.type(0).rank)
    return joined(node, movement.Concat(axis), node.inputs)


def joined(node: NodeReader, op: movement.Concat, values: tuple[str, ...]) -> Application:
    """The node that joins values, and what it reads."""
    while len(values) > MOST_PIECES:
        values = tuple(node.emit(op, *part) for part in _runs(values))
    return op, values


def _runs(values: Sequence[str]) -> list[Sequence[str]]:
    return [values[n : n + MOST_PIECES] for n in range(0, len(values), MOST_PIECES)]
