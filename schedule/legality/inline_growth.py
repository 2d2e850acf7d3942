"""How far an expression grows when it takes in that of a tensor that it reads: chains of tensors
are inlined as long as the compiler takes what they become.
"""

from __future__ import annotations

from ...tir.analysis.expr_size import MOST_HEIGHT, MOST_SIZE, height, size
from ...tir.func import PrimFunc
from ...tir.stmt import Block
from ...tir.visit import loads, stores
from ..nest import readers, target_of

_LOAD = 2  # levels of a load and its index, in whose place the expression stands


def outgrown(func: PrimFunc, producer: Block) -> Block | None:
    """The first reader that would be higher or larger than the compiler takes with the expression
    of `producer` in the place of its tensor; None where all would do.
    """
    target = target_of(producer)
    value = stores(producer.body)[0].value
    levels, nodes = height(value), size(value)
    for reader in readers(func, target):
        for store in stores(reader.body):
            count = sum(load.buffer is target for load in loads(store.value))
            higher = height(store.value) + levels > MOST_HEIGHT + _LOAD
            if count and (higher or size(store.value) + count * nodes > MOST_SIZE):
                return reader
    return None
