"""The analytical model of panels of grouped columns: a panel lies within one group, so its width
divides the group's and is rarely a number of whole vectors.

What is left behind the whole vectors takes a shorter one. Where one multiply-add starts per cycle,
the units are half as wide as a register, and the shorter one takes half the time. An instruction
that takes several points at once has no masks on every target: all vectors are of the longest of
its lengths that divides the panel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ....tir.dtype import DType
from ....tir.instructions.tensor_intrinsics import TensorIntrinsic
from ....tir.target.target import CpuTarget
from ...schedule import Schedule
from ..knobs.knobs import MOST_TILES, choose
from ..knobs.tiles import (
    FMA_LATENCY,
    LOAD_CYCLES,
    LOADS_PER_FMA,
    TILE_OVERHEAD,
    Tile,
    pieces,
)
from ..shape.structure import Contraction

WIDEST = 8  # vectors of a panel
WIDEST_ALONE = 12  # where a group has no divisor that is a vector long at least


@dataclass(frozen=True, slots=True)
class Panel:
    """A tile of a panel of `width` columns."""

    tile: Tile
    width: int

    def to_json(self) -> tuple[int, int, int, int]:
        """The four numbers, as a decision of a trace."""
        return *self.tile.to_json(), self.width


def is_grouped(found: Contraction) -> bool:
    """Whether the data depends on the group of a column."""
    return found.group < found.vector.extent


def has_panels(found: Contraction, unit: TensorIntrinsic) -> bool:
    """Whether groups have panels of whole vectors of an instruction, on any target."""
    return found.group % unit.lanes[-1] == 0 and not unit.pairs_rows


def unit_lanes(width: int, unit: TensorIntrinsic, target: CpuTarget) -> int:
    """The lanes of an instruction in a panel of groups; 0 where none has whole vectors of it."""
    return next((lanes for lanes in unit.lanes_on(target) if width % lanes == 0), 0)


def choose_panel(
    sch: Schedule, found: Contraction, target: CpuTarget, unit: TensorIntrinsic | None = None
) -> Panel:
    """The panel and tile that the schedule's decisions take. unit: the instruction that computes
    some points of the sum at once.
    """
    listed = [panel.to_json() for panel in _panels_of(found, target, unit)[:MOST_TILES]]
    *tile, width = choose(sch, "panel", found.block.name, listed, listed[0])
    return Panel(Tile(*tile), width)


def group_cycles(found: Contraction, target: CpuTarget) -> float:
    """Cycles of the best panels over all groups and the last two row axes."""
    outer, inner = found.last_rows
    best, lanes = _panels_of(found, target, None)[0], target.lanes(found.total)
    return _cycles(best, found.vector.extent, outer, inner, found.steps, lanes, target, None)


def has_short_end(width: int, lanes: int) -> bool:
    """Whether a panel of `width` columns ends in a vector of half the lanes or fewer."""
    return 0 < width % lanes <= lanes // 2


def _panels_of(
    found: Contraction, target: CpuTarget, unit: TensorIntrinsic | None
) -> tuple[Panel, ...]:
    outer, inner = found.last_rows
    return _panels(found.group, outer, inner, found.steps, found.total, target, unit)


@cache
def _panels(
    group: int,
    outer: int,
    inner: int,
    steps: int,
    dtype: DType,
    target: CpuTarget,
    unit: TensorIntrinsic | None,
) -> tuple[Panel, ...]:
    """Panels that divide a group, with tiles that fit the registers, cheapest first by the model;
    larger ones first among equals.
    """
    lanes = target.lanes(dtype)
    price = {
        panel: _cycles(panel, group, outer, inner, steps, lanes, target, unit)
        for panel in _fitting(group, outer, inner, lanes, target, unit)
    }
    return tuple(sorted(price, key=lambda p: (price[p], -p.tile.accumulators, p.to_json())))


def _fitting(
    group: int,
    outer: int,
    inner: int,
    lanes: int,
    target: CpuTarget,
    unit: TensorIntrinsic | None,
) -> Iterator[Panel]:
    # one is for what is broadcast, or for the products of an instruction that does not add them
    spare = target.vector_registers - (1 if unit is None or unit.slots > 1 else 0)
    divisors = [d for d in range(1, group + 1) if group % d == 0]
    if unit is not None:
        divisors = [d for d in divisors if unit_lanes(d, unit, target)]
    divided = any(lanes <= width <= WIDEST * lanes for width in divisors)
    most = WIDEST if divided else WIDEST_ALONE
    for width in divisors:
        vectors = -(-width // (lanes if unit is None else unit_lanes(width, unit, target)))
        for h in range(1, min(outer, 4) + 1):
            for w in range(1, min(inner, 16) + 1):
                if vectors <= most and h * w * vectors + vectors <= spare:
                    yield Panel(Tile(h, w, vectors), width)


def _cycles(
    panel: Panel,
    columns: int,
    outer: int,
    inner: int,
    steps: int,
    lanes: int,
    target: CpuTarget,
    unit: TensorIntrinsic | None,
) -> float:
    """Cycles for outer x inner rows and all columns, in steps of the points of an instruction."""
    vectors = _whole_vectors(panel.width, lanes, target)
    points, beside = 1, 0.0
    if unit is not None:
        own = unit_lanes(panel.width, unit, target)
        vectors = panel.width // own * _whole_vectors(own, lanes, target)
        points, beside = unit.points, LOAD_CYCLES
    total = 0.0
    for hn, h in pieces(outer, panel.tile.outer_rows):
        for wn, w in pieces(inner, panel.tile.rows):
            read = h * w + panel.tile.vectors
            loads = read / (LOADS_PER_FMA * target.fma_per_cycle)
            arithmetic = (h * w * vectors + beside * read) / target.fma_per_cycle
            step = max(arithmetic, loads, float(FMA_LATENCY))
            total += hn * wn * (-(-steps // points) * step + TILE_OVERHEAD)
    return total * columns / panel.width


def _whole_vectors(width: int, lanes: int, target: CpuTarget) -> float:
    """How many whole vectors take the time of those of a panel, the last one shorter."""
    whole, rest = divmod(width, lanes)
    short = 0.5 if target.fma_per_cycle == 1 and has_short_end(width, lanes) else 1.0
    return whole + (short if rest else 0.0)
