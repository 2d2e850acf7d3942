"""Round to levels without a division, where that gives the same levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...tir.intrinsics import LEAST_STEP, MOST_QUOTIENT
from ...tir.reference.array_expr import fma
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.quotients import RoundQuotient
from .dead_code import DeadCode
from .exchange import exchanged, only_reader
from .levels import LevelReader, has_bytes

_NEAR = 4  # floats on each side of an end of a level, farther than a quotient can be off


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
    reader, readers = LevelReader(graph), graph.consumers
    known: dict[np.float32, bool] = {}
    for node in graph.nodes:
        levels = reader.rounded(node.outputs[0])
        if levels is None or levels.is_inverse or reader.zeros(levels.zero) is None:
            continue
        if any(only_reader(graph, value, readers) is None for value in levels.inside[:-1]):
            continue
        step = reader.known(levels.scale)
        if step is None or step.dtype != np.float32 or step.size != 1:
            continue
        number = np.float32(step.reshape(-1)[0])
        if number not in known:
            known[number] = has_exact_reciprocal(number)
        if known[number]:
            _, rounded = levels.inside[::-1][:2]
            yield _Quotient(reader.makers[rounded], levels.source, levels.scale)


def _write(builder: GraphBuilder, one: _Quotient) -> None:
    (value,) = one.round.outputs
    builder.add(RoundQuotient(), one.x, one.step, output=value, name=one.round.name)
