"""What a pointwise block does along its last axis: where its selects change, and whether its data
lies along another.
"""

from __future__ import annotations

from ....tir.analysis.linear import Linear, linear
from ....tir.buffer import Load
from ....tir.conditions import conjuncts
from ....tir.expr import LE, LT, Call, Select, Var
from ....tir.stmt import Block, IterVar, Prefetch, Store
from ....tir.visit import accesses, free_vars, loads, walk

MOST_TURNS = 8  # pieces that a loop is cut into at most
SHORTEST_SIDE = 8  # of a tile that pays


def turned_axis(block: Block) -> int | None:
    """The number of the axis along which the data of a block lies, where that is not its last one:
    a transposition; None for others, for short axes, and where functions are computed.
    """
    if not block.iters or any(isinstance(node, Call) for node in walk(block.body)):
        return None
    last = block.iters[-1]
    along = {it.var: n for n, it in enumerate(block.iters[:-1]) if it.extent >= SHORTEST_SIDE}
    for load in loads(block.body):
        *front, back = load.indices or (last.var,)
        moved = any(last.var in free_vars(index) for index in front)
        if moved and back in along and last.extent >= SHORTEST_SIDE and isinstance(back, Var):
            return along[back]
    return None


def is_one_row(block: Block) -> bool:
    """Whether the last two axes of a block are one row in memory, wherever it reads or writes along
    them, and no choice depends on the last one: a short last axis then need not be a vector's.
    """
    if len(block.iters) < 2:
        return False
    before, last = block.iters[-2:]
    if before.dim is not None or last.dim is not None or before.extent == 1:
        return False
    chosen = (node.condition for node in walk(block.body) if isinstance(node, Select))
    if any(last.var in free_vars(condition) for condition in chosen):
        return False
    return all(_walks(access, before, last) for access in accesses(block.body))


def _walks(access: Load | Store | Prefetch, before: IterVar, last: IterVar) -> bool:
    """Whether an access takes the next element along `last`, and behind its end the first of the
    next `before`; or stays where it is along both.
    """
    pairs = zip(access.indices, access.buffer.strides, strict=True)
    place = sum((linear(index).scaled(stride) for index, stride in pairs), Linear((), 0))
    rest = place.without(before.var).without(last.var)
    if any({before.var, last.var} & free_vars(atom) for atom, _ in rest.terms):
        return False
    steps = place.coefficient(before.var), place.coefficient(last.var)
    return steps in ((last.extent, 1), (0, 0))


def turning_points(block: Block, axis: IterVar) -> tuple[int, ...]:
    """Where, along an axis of a block, the conditions of its selects change, if that is at a few
    places: between them no vector needs a mask.
    """
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
