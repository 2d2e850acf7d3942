"""How much NumPy has to do for some nodes of a graph, asked before it is done: a model can be small
and its values larger than any machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...runtime.machine.memory import process_memory
from ...tir.sizes import largest
from ..ir.ir import GraphNode
from ..ops.base import ReferenceWork
from ..types import TensorType

_BYTES = 8  # of an element, at most: references compute in float64
CHECK_STEPS = 1 << 33  # some ten seconds
_CHECK_BYTES = 1 << 32


class TooLarge(Exception):
    """What was asked for takes more than it may; the text says how much of what."""


def effort(nodes: Iterable[GraphNode], types: Mapping[str, TensorType]) -> ReferenceWork:
    """What evaluating the nodes takes, at most: all their values at once, and the largest of what
    one of them needs besides.
    """
    values: set[str] = set()
    besides = steps = 0
    for node in nodes:
        own = (*node.inputs, *node.outputs)
        work = node.op.work(tuple(types[value] for value in node.inputs))
        besides = max(besides, work.held - sum(largest(types[value].elements) for value in own))
        steps += work.steps
        values.update(own)
    return ReferenceWork(sum(largest(types[value].elements) for value in values) + besides, steps)


def check_limits() -> ReferenceWork:
    """What comparing two graphs may take on this machine."""
    return ReferenceWork(min(_CHECK_BYTES, process_memory() // 4) // _BYTES, CHECK_STEPS)


def check_within(work: ReferenceWork, limits: ReferenceWork) -> None:
    """Raise TooLarge where `work` is more than `limits`."""
    if work.held > limits.held:
        raise TooLarge(
            f"takes up to {work.held * _BYTES} bytes; at most {limits.held * _BYTES} are allowed"
        )
    if work.steps > limits.steps:
        raise TooLarge(f"takes {work.steps} steps; at most {limits.steps} are allowed")
