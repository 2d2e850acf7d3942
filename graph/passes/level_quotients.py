"""Round to levels without a division, where that gives the same levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...tir.intrinsics import LEAST_STEP, MOST_QUOTIENT
from ...tir.reference.array_expr import fma
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Add, Div
from ..ops.functions import Cast, Round
from ..ops.quotients import RoundQuotient
from ..types import array_of
from .dead_code import DeadCode
from .exchange import exchanged, only_reader
from .levels import has_bytes

_NEAR = 4  # floats on each side of an end of a level, farther than a quotient can be off
_MOST_ZERO = 255


@dataclass(frozen=True, slots=True)
class LevelQuotients:
    """Multiply by two floats that together are nearly 1 / s, in place of a division by s.

    saturate(round(x / s) + z)   ->   saturate(round_quotient(x, s) + z)

    s and z are constants of one number, and the result has 8 bits. All x at the ends of all levels
    are tried for this s; where one of them would become another level, the division stays.
    needs: where multiplications and additions are fused.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_bytes)
    needs: ClassVar[tuple[str, ...]] = ("avx512", "avx2", "neon")

    def __call__(self, graph: Graph) -> Graph:
        found = {one.round.outputs[0]: one for one in _quotients(graph)}
        return DeadCode()(exchanged(graph, found, (), _write)) if found else graph


def has_exact_reciprocal(step: np.float32) -> bool:
    """Whether `round_quotient` rounds each float32 to the level that a division by the step gives.

    Tried are all floats near an end of a level: elsewhere a quotient that is off by a unit or two
    in its last place is rounded the same way.
    """
    if not LEAST_STEP <= step <= 1 / LEAST_STEP:
        return False
    high = np.float32(1) / step
    low = np.float32(1 - np.float64(high) * np.float64(step)) / step  # the difference is exact
    ends = np.arange(-MOST_QUOTIENT, MOST_QUOTIENT) + 0.5
    nearest = (ends * np.float64(step)).astype(np.float32)
    found = [nearest]
    for towards in (-np.inf, np.inf):
        x = nearest
        for _ in range(_NEAR):
            x = np.nextafter(x, np.float32(towards))
            found.append(x)
    x = np.concatenate(found)
    quotients = fma(x, np.broadcast_to(high, x.shape), np.multiply(x, low))
    return np.array_equal(np.rint(quotients), np.rint(np.divide(x, step)))


@dataclass(frozen=True, slots=True)
class _Quotient:
    """A Round of x / step."""

    round: GraphNode
    x: str
    step: str


def _quotients(graph: Graph) -> Iterator[_Quotient]:
    makers, readers = graph.producers, graph.consumers
    known: dict[np.float32, bool] = {}
    for node in graph.nodes:
        divides = makers.get(node.inputs[0]) if isinstance(node.op, Round) else None
        if divides is None or not isinstance(divides.op, Div):
            continue
        step = _number(graph, divides.inputs[1])
        if step is None or not _become_bytes(graph, node.outputs[0], readers):
            continue
        if step not in known:
            known[step] = has_exact_reciprocal(step)
        if known[step]:
            yield _Quotient(node, *divides.inputs)


def _number(graph: Graph, value: str) -> np.float32 | None:
    """A constant of one float32."""
    type_ = graph.types[value]
    if value not in graph.constants or type_.dtype != "float32" or type_.elements != 1:
        return None
    return np.float32(array_of(graph.constants[value]).reshape(-1)[0])


def _become_bytes(graph: Graph, value: str, readers: Mapping[str, list[GraphNode]]) -> bool:
    """Whether rounded quotients are read as levels of 8 bits alone, less their zero."""
    after = only_reader(graph, value, readers)
    if after is not None and isinstance(after.op, Add):
        zero = _number(graph, after.inputs[1 - after.inputs.index(value)])
        if zero is None or not abs(zero) <= _MOST_ZERO:
            return False
        after = only_reader(graph, after.outputs[0], readers)
    return after is not None and isinstance(after.op, Cast) and after.op.to in ("int8", "uint8")


def _write(builder: GraphBuilder, one: _Quotient) -> None:
    (value,) = one.round.outputs
    builder.add(RoundQuotient(), one.x, one.step, output=value, name=one.round.name)
