"""What a pointwise block does along its last axis: where its selects change, and whether its data
lies along another.
"""

from __future__ import annotations

from ...tir.conditions import conjuncts
from ...tir.expr import LE, LT, Call, Select, Var
from ...tir.linear import linear
from ...tir.stmt import Block
from ...tir.visit import free_vars, loads, walk

MOST_TURNS = 8  # pieces that a loop is cut into at most
SHORTEST_SIDE = 8  # of a tile that pays


def turned_axis(block: Block) -> int | None:
    """The number of the axis along which the data of a block lies, where that is not its last one:
    a transposition; None for others, for short axes, and where functions are computed.
    """
    if any(isinstance(node, Call) for node in walk(block.body)):
        return None
    last = block.iters[-1]
    along = {it.var: n for n, it in enumerate(block.iters[:-1]) if it.extent >= SHORTEST_SIDE}
    for load in loads(block.body):
        *front, back = load.indices or (last.var,)
        moved = any(last.var in free_vars(index) for index in front)
        if moved and back in along and last.extent >= SHORTEST_SIDE and isinstance(back, Var):
            return along[back]
    return None


def turning_points(block: Block) -> tuple[int, ...]:
    """Where, along the last axis of a block, the conditions of its selects change, if that is at
    a few places: between them no vector needs a mask.
    """
    axis = block.iters[-1]
    found = set()
    for node in walk(block.body):
        if not isinstance(node, Select):
            continue
        for condition in conjuncts(node.condition):
            if isinstance(condition, LT | LE) and free_vars(condition) == {axis.var}:
                found.add(_turn(condition, axis.var))
    return (
        tuple(sorted(n for n in found if 0 < n < axis.extent)) if len(found) <= MOST_TURNS else ()
    )


def _turn(condition: LT | LE, var: Var) -> int:
    """The first value of a variable for which a condition on it alone is not what it was before;
    0 where it does not say.
    """
    form = linear(condition.a) - linear(condition.b)
    step = form.coefficient(var)
    if step == 0 or form.without(var).terms:
        return 0
    below = form.constant + isinstance(condition, LT)  # step * var + below <= 0
    return -below // step + 1 if step > 0 else -(-below // -step)
