"""Rows of a constant table that levels of few bits stand for, which stays packed in memory.

    gather((levels - zeros) * scales)   ->   (gather(levels) - gather(zeros)) * gather(scales)

So an embedding that is spelled by DequantizeLinear, in blocks or by row, takes as many bytes as the
model's file has, and the rows that a call reads become floating-point numbers in that call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from ...tir.sizes import AnySize, largest
from ..block_weights import Bytes, packed_levels
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ir.replacement_writer import ReplacementWriter
from ..ops.arithmetic import Mul, Sub
from ..ops.base import Operator
from ..ops.bits import BitShift, BitwiseAnd
from ..ops.functions import Cast
from ..ops.gathering import Gather
from ..ops.movement import Reshape
from ..ops.slicing import Slice
from ..types import Array, Constant, Floats, Splat, owned
from .dead_code import DeadCode
from .exchange import exchanged
from .spread_weights import SpreadReader, equal_rows, has_narrow_constants, stored_levels

_SMALLER = 2  # times, at least, than a table of floats


@dataclass(frozen=True, slots=True)
class LevelRows:
    """Keep a table [rows, columns] of which Gather takes rows as levels, zeros and scales.

    These may differ between rows, and between blocks of columns, which are found in the numbers
    themselves; levels of 8 bits that 4 or 2 hold are stored in these. What a row becomes has the
    bits of the table. Fewer elements are read than there are.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_narrow_constants)

    def __call__(self, graph: Graph) -> Graph:
        found = {one.node.outputs[0]: one for one in _rows(graph)}
        return DeadCode()(exchanged(graph, found, (), _write)) if found else graph


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """A Gather from a table: packed levels of `bits` bits; zeros, one number for all where they
    are so; and scales, a column for each block of columns.
    """

    node: GraphNode
    bits: int
    packed: Bytes
    zeros: Floats
    scales: Floats
    block: int


def _rows(graph: Graph) -> Iterator[_Rows]:
    reader, types, tables = SpreadReader(graph), graph.types, dict[str, _Rows | None]()
    for node in graph.nodes:
        if node.op != Gather(0) or types[node.inputs[0]].rank != 2:
            continue
        table = node.inputs[0]
        fewer = largest(types[node.outputs[0]].elements) < largest(types[table].elements)
        if table in graph.constants or not fewer:
            continue
        if table not in tables:
            tables[table] = _packed(reader, node)
        known = tables[table]
        if known is not None:
            yield replace(known, node=node)


def _packed(reader: SpreadReader, node: GraphNode) -> _Rows | None:
    """The table of a Gather; None for one that is spelled otherwise, or is not much smaller."""
    found = reader.spread(node.inputs[0])
    stored = None if found is None else stored_levels(found.levels, found.zeros)
    if found is None or stored is None:
        return None
    bits, levels, zeros = stored
    steps = np.ascontiguousarray(found.scales).view(np.int32)  # 0 and -0 are two
    columns = levels.shape[1]
    block = equal_rows(steps.T, zeros.T, 8 // bits)
    if not block:  # a byte would have levels of two blocks
        bits, block = 8, equal_rows(steps.T, zeros.T, 1)
    levels = np.pad(levels, ((0, 0), (0, -columns % block)))
    packed = packed_levels(cast(Bytes, levels), bits)
    scales, own = found.scales[:, ::block], zeros[:, ::block].astype(np.float32)
    if np.all(own == own[:1, :1]):
        own = own[0, 0]
    size = packed.size + 4 * (scales.size + own.size)
    if _SMALLER * size > 4 * levels.size:
        return None
    return _Rows(node, bits, packed, cast(Floats, own), cast(Floats, scales), block)


def _write(builder: GraphBuilder, rows: _Rows) -> None:
    _Writer(builder, rows.node).write(rows)


@dataclass(frozen=True, slots=True)
class _Writer(ReplacementWriter):
    """Writes rows of a table, whose parts have names of the table's."""

    def write(self, rows: _Rows) -> None:
        """The rows that indices name, as numbers."""
        (last,), types = self.node.outputs, self.builder.types
        scales = self._taken("scales", rows.scales)
        *outer, count = types[scales].shape
        levels = self.emit(Cast("float32"), self._levels(rows))
        blocks = self._shaped(levels, (*outer, count, rows.block))
        if rows.zeros.ndim:
            zeros = self._shaped(self._taken("zeros", rows.zeros), (*outer, count, 1))
        else:
            zeros = self.table("zero", Splat(float(rows.zeros), "float32", ()))
        if rows.zeros.ndim or rows.zeros:
            blocks = self.emit(Sub(), blocks, zeros)
        value = self.emit(Mul(), blocks, self._shaped(scales, (*outer, count, 1)))
        kind = types[self.node.inputs[0]].dtype
        if kind != "float32":
            value = self.emit(Cast(kind), value)
        width, shape = largest(count) * rows.block, self.builder.types[self.node.inputs[0]].shape
        op: Operator = Reshape((*outer, width))
        if width != shape[-1]:  # the last block is not full
            value, kept = self.emit(op, value), (*outer, shape[-1])
            op = Slice((0,) * len(kept), kept, (1,) * len(kept))
        self.builder.add(op, value, output=last, name=self.node.name)

    def _levels(self, rows: _Rows) -> str:
        """The levels of the rows, one in a byte."""
        taken = self._taken("levels", rows.packed)
        if rows.bits == 8:
            return taken
        *outer, width = self.builder.types[taken].shape
        count = 8 // rows.bits
        shifts = self.table("shifts", owned(np.arange(0, 8, rows.bits, dtype=np.uint8)))
        mask = self.table("mask", Splat((1 << rows.bits) - 1, "uint8", ()))
        apart = self._shaped(taken, (*outer, width, 1))
        found = self.emit(BitwiseAnd(), self.emit(BitShift(True), apart, shifts), mask)
        return self._shaped(found, (*outer, largest(width) * count))

    def _taken(self, what: str, array: Array) -> str:
        table = self.table(what, owned(np.ascontiguousarray(array)))
        return self.emit(Gather(0), table, self.node.inputs[1])

    def _shaped(self, value: str, shape: tuple[AnySize, ...]) -> str:
        return self.emit(Reshape(shape), value)

    def table(self, what: str, value: Constant) -> str:
        """Add a constant of the table's."""
        name = self.builder.fresh(f"{self.node.inputs[0]}.{what}")
        return self.builder.constant(name, value)
