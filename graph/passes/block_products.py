"""Products with constant weights that levels of few bits stand for, which stay packed in memory.

    x @ ((levels - zeros) * scales)   ->   BlockMatMul(x, words of levels, scales, zeros)

So a model whose weights are spelled by DequantizeLinear, in blocks, by column or by one scale,
reads as many bytes in each call as its file has, and not four to eight times as many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ...tir.dtype import dtype
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Add, Mul, Sub
from ..ops.block_matmul import WORD_BITS, BlockMatMul, packed_words
from ..ops.functions import Cast
from ..ops.matmul import Gemm, MatMul
from ..ops.movement import Identity, Reshape, Transpose
from ..ops.repetition import Expand
from ..ops.slicing import Slice
from ..reference.reference import apply
from ..types import Array, Floats, array_of, owned
from .dead_code import DeadCode
from .exchange import exchanged
from .levels import NARROW

_LEAST = 1 << 12  # weights, below which a matrix of floats is as good
_BITS = (2, 4, 8)  # in which levels are stored
_KINDS = ("float32", "float16", "bfloat16")  # of products
_MOVES = (Identity, Reshape, Transpose)
_SMALL = (Cast, Expand, Slice, *_MOVES)  # that make scales and zeros as wide as levels


def has_narrow_constants(graph: Graph) -> bool:
    """Whether a graph has constant integers of at most 8 bits."""
    return any(graph.types[name].dtype in NARROW for name in graph.constants)


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
        reader, found = _Reader(graph), dict[str, _Product]()
        for node in graph.nodes:
            if isinstance(node.op, MatMul | Gemm) and (one := reader.product(node)):
                found[node.outputs[0]] = one
        if not found:
            return graph
        tables = dict[tuple[str, bool], tuple[str, ...]]()
        return DeadCode()(
            exchanged(graph, found, (), lambda builder, one: _write(builder, one, tables))
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """Constant weights (levels - zeros) * scales, three arrays of one shape."""

    levels: Array
    zeros: Array
    scales: Array

    def moved(self, node: GraphNode) -> _Spread:
        """The same behind an operator that moves elements."""
        moved = (apply(node.op, array)[0] for array in (self.levels, self.zeros, self.scales))
        return _Spread(*moved)


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
        self.makers: Mapping[str, GraphNode] = graph.producers
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
        found = self._spread(value)
        if found is None:
            return None
        levels, zeros, scales = (
            array.T if is_turned else array for array in (found.levels, found.zeros, found.scales)
        )
        stored = _stored(levels, zeros)
        if stored is None:
            return None
        bits, levels, zeros = stored
        group = _group(scales, zeros, WORD_BITS // bits)
        if not group:
            return None
        own = dtype(self.graph.types[value].dtype).numpy
        few, whole = cast(Floats, scales[::group].astype(own)), zeros[::group]
        if not (np.isfinite(few).all() and np.array_equal(few.astype(np.float32), scales[::group])):
            return None  # a scale that the type of the product does not hold
        supposed = bool(np.all(whole == 1 << (bits - 1)))
        return _Blocks(bits, group, levels, few, None if supposed else whole.astype(np.uint8))

    def _spread(self, value: str) -> _Spread | None:
        """What a constant number stands for; None where it is spelled otherwise."""
        node, types = self.makers.get(value), self.graph.types
        match node:
            case GraphNode(op=Reshape() | Transpose() | Identity()):
                inner = self._spread(node.inputs[0])
                return None if inner is None else inner.moved(node)
            case GraphNode(op=Cast()) if types[node.inputs[0]].dtype == "float32":
                return self._spread(node.inputs[0])
            case GraphNode(op=Mul()):
                for centred, other in (node.inputs, node.inputs[::-1]):
                    if (pair := self._centred(centred)) is None:
                        continue
                    scales, shape = self._constant(other), pair[0].shape
                    plain = scales is not None and scales.dtype == np.float32
                    if plain and types[value].shape == shape:
                        return _Spread(*pair, np.broadcast_to(cast(Floats, scales), shape))
                return None
        pair = self._centred(value)
        if pair is None:
            return None
        return _Spread(*pair, np.broadcast_to(np.float32(1), pair[0].shape))  # what follows scales

    def _centred(self, value: str) -> tuple[Array, Array] | None:
        """Levels, and the zeros that are subtracted from them, of one shape."""
        node = self.makers.get(value)
        if node is not None and isinstance(node.op, Sub):
            levels, zeros = self._levels(node.inputs[0]), self._constant(node.inputs[1])
            if levels is None or zeros is None or self.graph.types[value].shape != levels.shape:
                return None
            return levels, np.broadcast_to(zeros, levels.shape)
        levels = self._levels(value)
        return None if levels is None else (levels, np.broadcast_to(np.float32(0), levels.shape))

    def _levels(self, value: str) -> Array | None:
        """Constant narrow integers, as float32 in the graph, perhaps moved."""
        node = self.makers.get(value)
        if node is None or not isinstance(node.op, Cast) or node.op.to != "float32":
            return None
        source = node.inputs[0]
        return self._constant(source) if self.graph.types[source].dtype in NARROW else None

    def _constant(self, value: str) -> Array | None:
        """A constant, perhaps moved, repeated or converted."""
        if value in self.graph.constants:
            return array_of(self.graph.constants[value])
        node = self.makers.get(value)
        if node is None or not isinstance(node.op, _SMALL) or len(node.inputs) != 1:
            return None
        source = self._constant(node.inputs[0])
        return None if source is None else apply(node.op, source)[0]


def _stored(levels: Array, zeros: Array) -> tuple[int, Array, Array] | None:
    """In how many bits levels are stored, as numbers from 0 on, and their zeros; None where these
    are no integers that a byte holds.
    """
    wide, whole = levels.astype(np.int16), zeros.astype(np.int16)
    if not np.array_equal(whole, zeros):
        return None
    low, high = int(wide.min()), int(wide.max())
    for bits in _BITS:
        offset = 0 if low >= 0 else 1 << (bits - 1)
        if low + offset >= 0 and high + offset < 1 << bits:
            moved = whole + offset
            fits = moved.min() >= 0 and moved.max() <= 255
            return (bits, (wide + offset).astype(np.uint8), moved) if fits else None
    return None


def _group(scales: Array, zeros: Array, in_word: int) -> int:
    """The length of the longest blocks of rows in which scales and zeros stay the same; 0 where
    they are no whole words.
    """
    differs = np.any(scales[1:] != scales[:-1], axis=1) | np.any(zeros[1:] != zeros[:-1], axis=1)
    changes = np.flatnonzero(differs) + 1
    if not changes.size:
        return -(-len(scales) // in_word) * in_word
    group = math.gcd(*map(int, changes))
    return 0 if group % in_word else group


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
