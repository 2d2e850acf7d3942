"""The rule of Unique, in words of other operators: equal elements stand side by side when they are
sorted. Slices along an axis are compared by their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .....tir.sizes import closed, closed_shape
from ....ir.ir import GraphNode
from ....ops.arithmetic import Sub
from ....ops.base import normal_axis
from ....ops.finding import FindTrue, RunStarts, TrueWords
from ....ops.functions import Cast
from ....ops.gathering import Gather
from ....ops.movement import Identity, Reshape
from ....ops.ranking import TopK
from ....ops.triangle import CumSum
from ....types import Splat
from ..node import NodeReader, NotSupported, node_name
from .data_sizes import found_places
from .rule import ImportRule, Result, Several
from .slice_order import slice_numbers

_OUTPUTS = 4


def _unique(node: NodeReader) -> Result:
    type_, in_order = node.type(0), node.integer("sorted", 1) != 0
    if not closed(type_.elements):
        raise NotSupported("its input has no elements")
    if node.given("axis") and type_.rank != 1:
        axis = normal_axis(Identity(), node.integer("axis"), type_.rank)
        numbers = slice_numbers(node, axis)
        (length,) = closed_shape(node.builder.types[numbers].shape)
        return _Unique(node, numbers, length, node.value(0), axis).result(in_order=in_order)
    if node.given("axis"):
        normal_axis(Identity(), node.integer("axis"), 1)
    length = closed(type_.elements)
    flat = node.value(0) if type_.rank == 1 else node.emit(Reshape((length,)), node.value(0))
    return _Unique(node, flat, length, flat).result(in_order=in_order)


@dataclass(frozen=True)
class _Unique:
    """The elements of the vector `flat`, of `length`, sorted; what is asked of them is computed
    once. Each stands for a slice of `whole` along `axis`.
    """

    node: NodeReader
    flat: str
    length: int
    whole: str
    axis: int = 0

    def result(self, *, in_order: bool) -> Several:
        """All outputs that the node has; in_order: smaller elements first, else those that stand
        first in the vector.
        """
        emit = self.node.emit
        outputs = [*self.node.proto.output, *[""] * _OUTPUTS]
        starts = self.starts if in_order else emit(Gather(0), self.starts, self.rank)
        places, _ = found_places(self.node, starts)
        indices = self.taken(self.order, places) if in_order else places
        values = [emit(Gather(self.axis), self.whole, indices), indices]
        if outputs[2]:
            values.append(self.group if in_order else self.group_by_first(starts))
        else:
            values.append(indices)
        if outputs[3]:
            counts = self.counts if in_order else emit(Gather(0), self.counts, self.rank)
            values.append(self.taken(counts, places))
        return Several(tuple((Identity(), (value,)) for value in values))

    def taken(self, source: str, places: str) -> str:
        """Elements of a vector."""
        return self.node.emit(Gather(0), source, places)

    @cached_property
    def _sorted(self) -> tuple[str, str]:
        return self._ranked(self.flat)

    def _ranked(self, value: str) -> tuple[str, str]:
        """The elements of a vector in order, and where they stood."""
        fresh = self.node.builder.fresh
        made = (
            fresh(f"{node_name(self.node.proto)}.sorted"),
            fresh(f"{node_name(self.node.proto)}.order"),
        )
        op = TopK(0, self.length, largest=False)
        self.node.define(GraphNode(op, (value,), made, self.node.proto.name))
        return made[0], made[1]

    @cached_property
    def order(self) -> str:
        """Where each of the sorted elements stood."""
        return self._sorted[1]

    @cached_property
    def rank(self) -> str:
        """Where each element stands when they are sorted."""
        return self._ranked(self.order)[1]

    @cached_property
    def starts(self) -> str:
        """Of the sorted elements, whether each is the first of those that are equal."""
        return self.node.emit(RunStarts(), self._sorted[0])

    @cached_property
    def _start_words(self) -> str:
        return self.node.emit(TrueWords(self.length), self.starts)

    def numbered(self, flags: str) -> str:
        """How many flags before and at each one are true, without the first one of them."""
        ones = self.node.emit(Cast("int64"), flags)
        return self.node.emit(Sub(), self.node.emit(CumSum(0), ones), self._one)

    @cached_property
    def _one(self) -> str:
        return self.node.table("one", Splat(1, "int64", ()))

    @cached_property
    def _group_sorted(self) -> str:
        return self.numbered(self.starts)

    @cached_property
    def group(self) -> str:
        """Of each element, the number of its value among the sorted ones."""
        return self.taken(self._group_sorted, self.rank)

    @cached_property
    def _first_sorted(self) -> str:
        """Of the sorted elements, which sorted one is the first of the equal ones."""
        firsts = self.node.emit(FindTrue(self.length, self.length), self._start_words)
        return self.taken(firsts, self._group_sorted)

    @cached_property
    def counts(self) -> str:
        """Of the sorted elements, how many are equal to each."""
        ends = self.node.emit(FindTrue(self.length, self.length, 1), self._start_words)
        return self.node.emit(Sub(), self.taken(ends, self._group_sorted), self._first_sorted)

    def group_by_first(self, starts: str) -> str:
        """Of each element, the number of its value among those that stand first in the vector.
        starts: whether each element is one of these.
        """
        first = self.taken(self.order, self._first_sorted)
        return self.taken(self.taken(self.numbered(starts), first), self.rank)


RULES: dict[str, ImportRule] = {
    "Unique": ImportRule((11, 28), ("axis", "sorted"), _unique, outputs=_OUTPUTS),
}
