"""Which values of a model become levels, and who reads these."""

from __future__ import annotations

from collections.abc import Mapping

from ....tir.sizes import largest
from ...ir.ir import Graph, GraphNode
from ...ops.activation import Relu
from ...ops.arithmetic import Add, Max, Min
from ...ops.convolution import Conv
from ...passes.exchange import only_reader
from ...passes.level_motion import MOVING
from ...types import array_of
from ..layers import Layer
from .spelled_levels import LevelScale

Ranges = Mapping[str, tuple[float, float]]


class LevelValues:
    """Which values become levels, and who reads these.

    Operators that only move numbers move levels, too: what goes into them has the scale of what
    comes out. Where convolutions read levels, everybody does, and of two summands that one which is
    stored is stored as levels: no float is kept for a residual sum. Elsewhere sums stay exact.
    """

    def __init__(self, graph: Graph, layers: tuple[Layer, ...], ranges: Ranges) -> None:
        self._graph, self._makers, self._readers = graph, graph.producers, graph.consumers
        self._places = {value: n for n, node in enumerate(graph.nodes) for value in node.outputs}
        self._of_convolutions = set[str]()
        self._groups: dict[str, set[str]] = {}
        for layer in layers:
            self._add(layer.data, is_spatial=isinstance(layer.node.op, Conv))
        for node in graph.nodes:
            summand = self._stored_summand(node)
            if summand in ranges:
                self._add(summand, is_spatial=True)
        self.scales = {
            value: LevelScale.of(
                min(ranges[one][0] for one in group if one in ranges),
                max(ranges[one][1] for one in group if one in ranges),
            )
            for value, group in self._groups.items()
        }

    def _add(self, value: str, *, is_spatial: bool) -> None:
        """Make levels of a value and of what is moved to become it."""
        if is_spatial:
            self._of_convolutions.add(value)
        group = self._groups.setdefault(value, {value})
        maker = self._makers.get(value)
        if maker is None or not isinstance(maker.op, MOVING) or value in self._graph.outputs:
            return
        if any(one in self._graph.constants for one in maker.inputs):
            return
        for one in maker.inputs:
            known = self._groups.get(one)
            if known is group:
                continue
            if known is not None:
                group |= known
                self._groups |= dict.fromkeys(known, group)
            else:
                group.add(one)
                self._groups[one] = group
            self._add(one, is_spatial=is_spatial)

    def _stored_summand(self, node: GraphNode) -> str:
        """The summand that is made first, of two of convolutions whose sum becomes levels; "" where
        there is none.
        """
        types = self._graph.types
        if not isinstance(node.op, Add) or len({types[value] for value in node.inputs}) > 1:
            return ""
        if any(value in self._groups for value in node.inputs) or not self._becomes_levels(node):
            return ""
        first = min(node.inputs, key=lambda value: self._places.get(value, -1))
        maker = self._makers.get(first)
        is_alone = only_reader(self._graph, first, self._readers) is node
        return first if maker is not None and isinstance(maker.op, Conv) and is_alone else ""

    def _becomes_levels(self, node: GraphNode) -> bool:
        value: str | None = node.outputs[0]
        while value is not None and value not in self._of_convolutions:
            after = only_reader(self._graph, value, self._readers)
            value = after.outputs[0] if after and isinstance(after.op, Relu | Max | Min) else None
        return value is not None

    def reads_levels(self, node: GraphNode, value: str, layers: Mapping[str, Layer]) -> bool:
        """Whether a node reads a value, of which there are levels, as these."""
        made = node.outputs[0]
        if made in layers or value in self._of_convolutions:
            return True
        return isinstance(node.op, MOVING) and self._groups.get(made) is self._groups[value]

    def source(self, value: str) -> str:
        """What is rounded to become the levels of a value: itself, or what a Relu or a bound made
        it of that saturation has already.
        """
        scale, readers = self.scales[value], self._readers
        while (maker := self._makers.get(value)) is not None:
            if value in self._graph.outputs or (
                value not in self.scales and len(readers[value]) > 1
            ):
                break
            inner = self._inert(maker, scale)
            if not inner:
                break
            value = inner
        return value

    def _inert(self, maker: GraphNode, scale: LevelScale) -> str:
        """What a node bounds, where levels are within the bound; "" for other nodes."""
        match maker.op:
            case Relu() if scale.zero == 0:
                return maker.inputs[0]
            case Max() | Min() if len(maker.inputs) == 2:
                bounds = [one for one in maker.inputs if one in self._graph.constants]
                free = [one for one in maker.inputs if one not in self._graph.constants]
                if len(bounds) != 1 or largest(self._graph.types[bounds[0]].elements) != 1:
                    return ""
                bound = float(array_of(self._graph.constants[bounds[0]]).reshape(()))
                is_inert = bound <= scale.low if isinstance(maker.op, Max) else bound >= scale.high
                return free[0] if is_inert else ""
        return ""
