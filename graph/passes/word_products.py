"""Let products of bytes that a run decides on both sides pack those on the right in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.integer_sums import Bytes, constant_values, is_packed, moved
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ir.replacement_writer import ReplacementWriter
from ..ops.arithmetic import Mul, Sub
from ..ops.base import Operator
from ..ops.functions import Cast
from ..ops.matmul import IntegerMatMul
from ..ops.reduction import IntegerSum
from ..types import Splat
from .levels import has_bytes

_WIDE = "int16"
_STEP = 128  # between a byte without a sign and one with it


@dataclass(frozen=True, slots=True)
class WordProducts:
    """Multiply data of one type with words of uint8, which the kernel makes.

    sum (a - p) * (b - q)   ->   sum c * d  -  r * sum d  -  s * sum c  +  r * s * terms

    c is a, or a and 128 more or less, as its type asks, and r is p and as much more or less; d and
    s are so of b and q. Of 16 bits, c is a - p, and r is 0. Enough rows must meet what is packed
    (`is_packed`).
    data: what the instruction multiplies with unsigned bytes: int8 with VNNI and usdot, uint8 with
    udot, int16 where pairs are multiplied. needs, idle: as passes have them.
    """

    data: str
    needs: tuple[str, ...]
    idle: tuple[str, ...] = ()

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_bytes)

    def __call__(self, graph: Graph) -> Graph:
        known = constant_values(graph.constants, graph.nodes)
        found = {node.outputs[0] for node in graph.nodes if _is_free(graph, node, known)}
        if not found:
            return graph
        builder = GraphBuilder.like(graph)
        for node in graph.nodes:
            if node.outputs[0] in found:
                _Writer(builder, node).write(self.data)
            else:
                builder.add_node(node)
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


def _is_free(graph: Graph, node: GraphNode, known: set[str]) -> bool:
    """Whether a node multiplies bytes as they are, of which a run decides those on the right."""
    if not isinstance(node.op, IntegerMatMul) or node.op.in_words:
        return False
    left, right = (graph.types[value] for value in node.inputs)
    narrow = left.dtype != "int16" and right.dtype != "int16"
    return narrow and node.inputs[1] not in known and is_packed(left, right)


@dataclass(frozen=True, slots=True)
class _Writer(ReplacementWriter):
    """Writes a product."""

    def write(self, kind: str) -> None:
        """The product of words, and what it lacks."""
        assert isinstance(self.node.op, IntegerMatMul)
        left, right = self.node.inputs
        terms = self.builder.types[left].shape[-1]
        assert isinstance(terms, int)
        p, q = self.node.op.zeros
        c, r = self._centred(left, p) if kind == _WIDE else self._moved(left, p, kind)
        d, s = self._moved(right, q, "uint8")
        steps: list[tuple[Operator, str]] = [(IntegerMatMul(in_words=True), d)]
        if s:
            steps.append((Sub(), self._sums(c, -1, s)))
        if r:
            of_columns = self._sums(d, -2, r)
            if s:
                of_columns = self.emit(Sub(), of_columns, self._number(r * s * terms))
            steps.append((Sub(), of_columns))
        value = c
        for op, other in steps[:-1]:
            value = self.emit(op, value, other)
        op, other = steps[-1]
        self.builder.add(op, value, other, output=self.node.outputs[0], name=self.node.name)

    def _centred(self, value: str, zero: int) -> tuple[str, int]:
        """Bytes less their zero, which has its place in 16 bits, and the zero that is left."""
        wide = self.emit(Cast(_WIDE), value)
        if not zero:
            return wide, 0
        return self.emit(Sub(), wide, self.table("number", Splat(zero, _WIDE, ()))), 0

    def _moved(self, value: str, zero: int, kind: str) -> tuple[str, int]:
        """Bytes, and their zero, in another type of as many bits."""
        by = _offset(kind) - _offset(self.builder.types[value].dtype)
        return moved(self, Bytes(value), kind).value, zero + by

    def _sums(self, value: str, axis: int, times: int) -> str:
        """The sums along an axis, times a number."""
        axes = (self.builder.types[value].rank + axis,)
        return self.emit(Mul(), self.emit(IntegerSum(axes, True), value), self._number(times))

    def _number(self, whole: int) -> str:
        """An int32, which wraps around."""
        return self.table("number", Splat((whole + 2**31) % 2**32 - 2**31, "int32", ()))


def _offset(kind: str) -> int:
    """By how much bytes of this type lie above those of a sign that stand for the same."""
    return _STEP if kind == "uint8" else 0
