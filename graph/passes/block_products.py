"""Products with constant weights that levels of few bits stand for, which stay packed in memory.

    x @ ((levels - zeros) * scales)   ->   BlockMatMul(x, words of levels, scales, zeros)

So a model whose weights are spelled by DequantizeLinear, in blocks, by column or by one scale,
reads as many bytes in each call as its file has, and not four to eight times as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ...tir.dtype import dtype
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Add
from ..ops.block_matmul import WORD_BITS, BlockMatMul, packed_words
from ..ops.matmul import Gemm, MatMul
from ..types import Array, Floats, owned
from .dead_code import DeadCode
from .exchange import exchanged
from .spread_weights import SpreadReader, equal_rows, has_narrow_constants, stored_levels

_LEAST = 1 << 12  # weights, below which a matrix of floats is as good
_KINDS = ("float32", "float16", "bfloat16")  # of products


@dataclass(frozen=True, slots=True)
class BlockProducts:
    """Keep the levels of the constant weights of MatMul and Gemm packed, where data are floats.

    Scales and zeros may differ between blocks of whole words, which are found in the numbers
    themselves. Levels of 8 bits that 4 bits hold are stored in 4. No weight is rounded: a scale
    multiplies the sum of a block. needs: where a rule unpacks levels in vectors.
    """

    keeps_rounding: ClassVar[bool] = False
    concerns = staticmethod(has_narrow_constants)
    needs: ClassVar[tuple[str, ...]] = ("avx512", "avx2", "neon")

    def __call__(self, graph: Graph) -> Graph:
        return with_packed_weights(graph, lambda node: True)


def with_packed_weights(graph: Graph, pays: Callable[[GraphNode], bool]) -> Graph:
    """A graph whose products keep the levels of their weights packed, where that pays."""
    reader, found = _Reader(graph), dict[str, _Product]()
    for node in graph.nodes:
        is_product = isinstance(node.op, MatMul | Gemm) and pays(node)
        if is_product and (one := reader.product(node)):
            found[node.outputs[0]] = one
    if not found:
        return graph
    tables = dict[tuple[str, bool], tuple[str, ...]]()
    return DeadCode()(
        exchanged(graph, found, (), lambda builder, one: _write(builder, one, tables))
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Weights [K, N] as BlockMatMul has them; zeros: None where they are those that it supposes."""

    bits: int
    group: int
    levels: Array
    scales: Floats
    zeros: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A product and its weights. key: what they are called, and whether they are turned."""

    node: GraphNode
    blocks: _Blocks
    key: tuple[str, bool]


class _Reader:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._weights = SpreadReader(graph)
        self.known: dict[tuple[str, bool], _Blocks | None] = {}

    def product(self, node: GraphNode) -> _Product | None:
        """A product and its weights; None for one that stays."""
        data, weights, types = node.inputs[0], node.inputs[1], self.graph.types
        is_turned = isinstance(node.op, Gemm) and node.op.trans_b
        if isinstance(node.op, Gemm) and node.op not in (Gemm(), Gemm(trans_b=True)):
            return None
        count = types[weights].elements
        if types[weights].rank != 2 or not isinstance(count, int) or count < _LEAST:
            return None
        if types[weights].dtype not in _KINDS or not types[data].rank:
            return None
        key = weights, is_turned
        if key not in self.known:
            self.known[key] = self._blocks(weights, is_turned)
        blocks = self.known[key]
        return None if blocks is None else _Product(node, blocks, key)

    def _blocks(self, value: str, is_turned: bool) -> _Blocks | None:
        found = self._weights.spread(value)
        if found is None:
            return None
        levels, zeros, scales = (
            array.T if is_turned else array for array in (found.levels, found.zeros, found.scales)
        )
        stored = stored_levels(levels, zeros)
        if stored is None:
            return None
        bits, levels, zeros = stored
        group = equal_rows(scales, zeros, WORD_BITS // bits)
        if not group:
            return None
        own = dtype(self.graph.types[value].dtype).numpy
        few, whole = cast(Floats, scales[::group].astype(own)), zeros[::group]
        if not (np.isfinite(few).all() and np.array_equal(few.astype(np.float32), scales[::group])):
            return None  # a scale that the type of the product does not hold
        supposed = bool(np.all(whole == 1 << (bits - 1)))
        return _Blocks(bits, group, levels, few, None if supposed else whole.astype(np.uint8))


def _write(
    builder: GraphBuilder, one: _Product, tables: dict[tuple[str, bool], tuple[str, ...]]
) -> None:
    """A product; weights that several share are stored once."""
    node, blocks = one.node, one.blocks
    if one.key not in tables:
        tables[one.key] = tuple(_tables(builder, one.key[0], blocks))
    op, (last,) = BlockMatMul(blocks.bits, blocks.group), node.outputs
    inputs = (node.inputs[0], *tables[one.key])
    if len(node.inputs) < 3:
        builder.add(op, *inputs, output=last, name=node.name)
        return
    value = builder.add(op, *inputs, output=builder.fresh(f"{last}.product"), name=node.name)
    builder.add(Add(), value, node.inputs[2], output=last, name=node.name)


def _tables(builder: GraphBuilder, name: str, blocks: _Blocks) -> list[str]:
    rows, columns = len(blocks.scales) * blocks.group, blocks.levels.shape[1]
    levels = np.zeros((rows, columns), np.uint8)
    levels[: len(blocks.levels)] = blocks.levels
    arrays = {"levels": packed_words(levels, blocks.bits), "scales": blocks.scales}
    if blocks.zeros is not None:
        arrays["zeros"] = blocks.zeros
    return [
        builder.constant(builder.fresh(f"{name}.{what}"), owned(np.ascontiguousarray(array)))
        for what, array in arrays.items()
    ]
