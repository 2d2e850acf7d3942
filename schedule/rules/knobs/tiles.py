"""The analytical model of a register tile: rows times vectors of columns, each a row of
accumulators.

A step of the reduction loads `vectors` vectors of weights, broadcasts one number per row and issues
rows * vectors multiply-adds. It takes as long as the busiest of: the multiply-add units, the load
units, and the latency of an accumulator. Where a panel of weights is too large for the first cache,
a part of the time of all loads comes on top, and more of it the wider the tile: of 16 x 4,096 x
4,096, tiles of 8 x 3 vectors took a tenth less time than tiles of 4 x 6.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ....tir.analysis.tile_parts import TileParts
from ....tir.dtype import DType
from ....tir.target.target import CpuTarget

FMA_LATENCY = 4  # cycles until an accumulator is there again
# of vectors and broadcasts; measured: tiles one vector wide reach half the peak where one
# multiply-add starts per cycle, four fifths where two do
LOADS_PER_FMA = 0.65
# that a load costs beside an instruction of products, which takes no broadcast from memory as its
# unsigned operand, where one of these starts per cycle, and half of it where two do; measured on
# Zen 4 with tiles of 24 to 27 accumulators of bytes
LOAD_CYCLES = 0.5
L2_BYTES = 24  # that the level-2 cache gives a tile of bytes per cycle; measured where two start
STREAM_BYTES = 32  # that the level-2 cache gives in the time of one multiply-add
STREAM_SHARE = 0.35  # of the time of a stream from there, and of loads,
LOAD_SHARE = 0.33  # what arithmetic does not hide beside it; both fitted to an order of few tiles
CONVERSION = 2  # instructions that make a vector of float32 of 16 bits
TILE_OVERHEAD = 24  # cycles to start and end a tile: addresses, loop set-up, stores


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows along the last two row axes and vectors of columns."""

    outer_rows: int
    rows: int
    vectors: int

    @property
    def accumulators(self) -> int:
        """Vector registers that hold the tile."""
        return self.outer_rows * self.rows * self.vectors

    def to_json(self) -> tuple[int, int, int]:
        """The three numbers, as a decision of a trace."""
        return self.outer_rows, self.rows, self.vectors


@dataclass(frozen=True, slots=True)
class Narrow:
    """Which operands of a product of float32 are floats of 16 bits, converted where they are read:
    each vector of weights, and each number of the data, which a vector of it repeats.
    """

    data: bool = False
    weights: bool = False

    def cycles(self, rows: int, vectors: int, target: CpuTarget) -> float:
        """Cycles of the conversions of one step, which the multiply-add units do as well."""
        count = rows * self.data + vectors * self.weights
        return CONVERSION * count / target.fma_per_cycle


_WIDE = Narrow()


def step_cycles(
    rows: int,
    vectors: int,
    target: CpuTarget,
    *,
    points: int = 1,
    streamed: bool = False,
    narrow: Narrow = _WIDE,
) -> float:
    """Cycles of one reduction step of a tile, of `points` products for each accumulator; streamed:
    weights come from the level-2 cache; narrow: which operands are converted.
    """
    arithmetic = rows * vectors / target.fma_per_cycle + narrow.cycles(rows, vectors, target)
    loads = (rows + vectors) / (LOADS_PER_FMA * target.fma_per_cycle)
    if points > 1:
        beside = LOAD_CYCLES * (rows + vectors) / target.fma_per_cycle
        stream = vectors * target.vector_bytes / L2_BYTES if streamed else 0.0
        return max(arithmetic + beside, loads, float(FMA_LATENCY), stream)
    busiest = max(arithmetic, loads, float(FMA_LATENCY))
    if not streamed:
        return busiest
    stream = vectors * target.vector_bytes / (STREAM_BYTES * target.fma_per_cycle)
    return busiest + STREAM_SHARE * stream + LOAD_SHARE * (rows + vectors) / target.fma_per_cycle


def pieces(extent: int, size: int) -> tuple[tuple[int, int], ...]:
    """(count, size) of the full pieces of an extent and of the incomplete one."""
    whole, rest = divmod(extent, size)
    return tuple(p for p in ((whole, size), (1, rest)) if p[0] and p[1])


def pieces_of_call(extent: int, size: int, parts: TileParts) -> tuple[tuple[int, int], ...]:
    """(count, size) of the pieces of an extent that a call decides: the incomplete one runs in
    smaller ones, and what is left of these in smaller ones still, or at once.
    """
    found: list[tuple[int, int]] = []
    while extent:
        whole, extent = divmod(extent, size)
        found += [(whole, size)] if whole else []
        if extent and size <= parts.rows:
            return (*found, (1, extent))
        size = -(-size // parts.count)
    return tuple(found)


def tile_cycles(
    tile: Tile,
    outer: int,
    inner: int,
    columns: int,
    steps: int,
    dtype: DType,
    target: CpuTarget,
    points: int = 1,
    *,
    parts: TileParts | None = None,
    narrow: Narrow = _WIDE,
) -> float:
    """Cycles for outer x inner rows and `columns` columns with `steps` reduction steps of `points`
    products each, edges counted as what they compute. parts: of a tile, where a call decides the
    inner rows. narrow: which operands are converted.
    """
    lanes = target.lanes(dtype)
    streamed = 2 * steps * tile.vectors * target.vector_bytes > target.l1_bytes
    total = 0.0
    for hn, h in pieces(outer, tile.outer_rows):
        rows = pieces_of_call(inner, tile.rows, parts) if parts else pieces(inner, tile.rows)
        for wn, w in rows:
            for vn, v in pieces(-(-columns // lanes), tile.vectors):
                step = step_cycles(
                    h * w, v, target, points=points, streamed=streamed, narrow=narrow
                )
                total += hn * wn * vn * (steps * step + TILE_OVERHEAD)
    return total


def candidates(
    outer: int,
    inner: int,
    columns: int,
    steps: int,
    dtype: DType,
    target: CpuTarget,
    points: int = 1,
    narrow: Narrow = _WIDE,
) -> list[Tile]:
    """The tiles that fit the registers, cheapest first by the model; larger ones first among
    equals.
    """
    # one is for what is broadcast; products of bytes take one of the weights from memory for it
    registers = target.vector_registers - 1 if points == 1 else target.vector_registers
    found = list(_fitting(outer, inner, -(-columns // target.lanes(dtype)), registers))
    work = (outer, inner, columns, steps, dtype, target, points)
    price = {tile: tile_cycles(tile, *work, narrow=narrow) for tile in found}
    return sorted(found, key=lambda tile: (price[tile], -tile.accumulators, tile.to_json()))


@cache
def least_cycles(
    outer: int,
    inner: int,
    columns: int,
    steps: int,
    dtype: DType,
    target: CpuTarget,
    points: int = 1,
    narrow: Narrow = _WIDE,
) -> float:
    """Cycles of the best tile, as `tile_cycles` has them."""
    work = (outer, inner, columns, steps, dtype, target, points)
    return tile_cycles(candidates(*work, narrow)[0], *work, narrow=narrow)


def _fitting(outer: int, inner: int, vectors: int, registers: int) -> Iterator[Tile]:
    """Tiles whose accumulators and vectors of weights are in registers at once."""
    for h, w, v in itertools.product(_sizes(outer, 4), _sizes(inner, 16), _sizes(vectors, 8)):
        if h * w * v + v <= registers:
            yield Tile(h, w, v)


def _sizes(extent: int, limit: int) -> Sequence[int]:
    return range(1, max(1, min(extent, limit)) + 1)
