"""How many elements a vector of a block has."""

from __future__ import annotations

from ....tir.dtype import INT32, DType
from ....tir.expr import Let, Max, Min, Select
from ....tir.stmt import Block
from ....tir.target.target import CpuTarget
from ....tir.visit import accesses, loads, stores, walk
from ...nest import is_reduction, targets_of
from ..shape.windows import is_window

SHORTEST_SQUARE = 4  # rows of what is transposed in registers


def vector_lanes(block: Block, target: CpuTarget) -> int:
    """Lanes for a block: those of the widest type that it touches, where all of them are floats,
    integers of 32 or 64 bits, or narrower numbers and truth values that the target has vectors of;
    else 1. What is narrower has the lanes of 32 bits. Indices that are data do not count; beside
    its floats a block may store integers, as places are.
    """
    inside = {inner for load in loads(block.body) for i in load.indices for inner in loads(i)}
    stored = {buffer.type for buffer in targets_of(block)}
    if is_reduction(block) and any(map(_is_narrow, stored)) and not _is_extreme(block):
        return 1  # registers that sum up, and are joined, hold neither bytes nor truth values
    types = stored | {load.buffer.type for load in loads(block.body) if load not in inside}
    narrow = {kind for kind in types if _is_narrow(kind) and target.has_narrow_vectors(kind)}
    types = {INT32 if kind in narrow else kind for kind in types}
    wide = all(kind.is_float or (kind.is_integer and kind.bits >= 32) for kind in types)
    floats = {kind.bits for kind in types if kind.is_float}
    return min(target.lanes(kind) for kind in types) if wide and len(floats) <= 1 else 1


def _is_extreme(block: Block) -> bool:
    """Whether each lane of a vector keeps the largest or the smallest element of its own window."""
    found = stores(block.body)
    return len(found) == 1 and isinstance(found[0].value, Max | Min) and is_window(block)


def _is_narrow(kind: DType) -> bool:
    return kind.bits <= 16


def transposed_lanes(block: Block, target: CpuTarget) -> int:
    """Rows and columns of the squares that registers transpose for a block; 1 where they do not:
    for truth values, short vectors, what is chosen, and sizes that a call decides.
    """
    lanes = vector_lanes(block, target)
    if lanes < SHORTEST_SQUARE or any(it.dim is not None for it in block.iters):
        return 1
    chosen = any(isinstance(node, Select | Let) for node in walk(block.body))
    truths = any(access.buffer.type.is_bool for access in accesses(block.body))
    return 1 if chosen or truths else lanes
