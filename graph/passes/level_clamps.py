"""Leave out the bytes between two floats: levels that are floats again at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Add, Sub
from ..ops.functions import Cast, Round
from ..ops.quotients import RoundQuotient
from ..ops.saturation import Within
from ..types import Splat
from .dead_code import DeadCode
from .exchange import exchanged, only_reader
from .levels import LevelReader, has_bytes

_HIGH = 255


@dataclass(frozen=True, slots=True)
class LevelClamps:
    """Clamp what is rounded between the ends less the zero, where it becomes a float less the zero.

    float(saturate(r + z)) - z   ->   within(r, -z, 255 - z)

    r is what Round or RoundQuotient gives, z a constant of one whole number from 0 to 255, the
    levels are uint8. All sums of whole numbers that are not clamped are exact in float32, and NaN
    becomes -z either way. Where others read the bytes as well, it stays: bytes are less to store.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_bytes)

    def __call__(self, graph: Graph) -> Graph:
        found = {one.node.outputs[0]: one for one in _clamps(graph)}
        return DeadCode()(exchanged(graph, found, (), _write)) if found else graph


@dataclass(frozen=True, slots=True)
class _Clamp:
    """A Sub of levels that are floats and their zero; `rounded` is what became levels."""

    node: GraphNode
    rounded: str
    zero: int


def _clamps(graph: Graph) -> Iterator[_Clamp]:
    reader, types, readers = LevelReader(graph), graph.types, graph.consumers
    for node in graph.nodes:
        if not isinstance(node.op, Sub):
            continue
        inside, subtracted = [node.inputs[0]], node.inputs[1]
        for kind in ("float32", "uint8"):
            maker = reader.makers.get(inside[-1])
            if maker is not None and isinstance(maker.op, Cast) and maker.op.to == kind:
                inside += maker.inputs
        maker = reader.makers.get(inside[-1])
        if len(inside) < 3 or maker is None or not isinstance(maker.op, Add):
            continue
        rounded, zero = maker.inputs
        source = reader.makers.get(rounded)
        if source is None or not isinstance(source.op, Round | RoundQuotient):
            continue
        inside.append(rounded)
        number = _whole_zero(reader, zero)
        if number is None or number != _whole_zero(reader, subtracted):
            continue
        alone = all(only_reader(graph, value, readers) is not None for value in inside)
        if alone and types[rounded] == types[node.outputs[0]]:
            yield _Clamp(node, rounded, number)


def _whole_zero(reader: LevelReader, value: str) -> int | None:
    """A zero that is one number that a byte may be; None for others."""
    found = reader.zeros(value)
    if found is None or found.size != 1 or not 0 <= int(found.reshape(-1)[0]) <= _HIGH:
        return None
    return int(found.reshape(-1)[0])


def _write(builder: GraphBuilder, one: _Clamp) -> None:
    (value,) = one.node.outputs
    low, high = (
        builder.constant(builder.fresh(name), Splat(end, "float32", ()))
        for name, end in (("low", -one.zero), ("high", _HIGH - one.zero))
    )
    builder.add(Within(), one.rounded, low, high, output=value, name=one.node.name)
