"""What a pointwise block does along its last axis: where its selects change, and whether its data
lies along another.
"""

from __future__ import annotations

from ....tir.analysis.linear import Linear, linear
from ....tir.analysis.simplify import simplify
from ....tir.buffer import Load
from ....tir.conditions import conjuncts
from ....tir.expr import LE, LT, Binary, Call, Expr, FloorDiv, FloorMod, Max, Min, Select, Var
from ....tir.stmt import Block, IterVar, Prefetch, Store
from ....tir.visit import accesses, found_in, free_vars, loads, stores, walk

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
    if not _may_be_one_row(block):
        return False
    before, last = block.iters[-2:]
    walks = ((last.extent, 1), (0, 0))
    return all(_steps(access, before, last) in walks for access in accesses(block.body))


def is_of_few_rows(block: Block) -> bool:
    """Whether the last two axes of a block are one row in memory where it writes, and it reads some
    rows along the first of them, of which the last one tells the number: what it writes lays them
    side by side, element by element.
    """
    if not _may_be_one_row(block):
        return False
    before, last = block.iters[-2:]
    written = {_steps(store, before, last) for store in stores(block.body)}
    read = {_steps(load, before, last) for load in loads(block.body)}
    along = all(steps is not None and steps[0] in (0, 1) for steps in read)
    return written == {(last.extent, 1)} and along and any(steps != (0, 0) for steps in read)


def _may_be_one_row(block: Block) -> bool:
    if len(block.iters) < 2:
        return False
    before, last = block.iters[-2:]
    if before.dim is not None or last.dim is not None or before.extent == 1:
        return False
    chosen = (node.condition for node in walk(block.body) if isinstance(node, Select))
    return not any(last.var in free_vars(condition) for condition in chosen)


def _steps(
    access: Load | Store | Prefetch, before: IterVar, last: IterVar
) -> tuple[int, int] | None:
    """How many elements an access goes on along the last two axes; None where that is no number."""
    pairs = zip(access.indices, access.buffer.strides, strict=True)
    place = sum((linear(index).scaled(stride) for index, stride in pairs), Linear((), 0))
    rest = place.without(before.var).without(last.var)
    if any({before.var, last.var} & free_vars(atom) for atom, _ in rest.terms):
        return None
    return place.coefficient(before.var), place.coefficient(last.var)


def steps_unevenly(block: Block) -> bool:
    """Whether a block reads elements that are not as far apart everywhere along its last axis, but
    as far as a number of the loop says: each vector has distances of its own.
    """
    last = block.iters[-1].var
    forms = (linear(item) for load in loads(block.body) for item in load.indices)
    atoms = (atom for form in forms for atom, _ in form.terms)
    return any(isinstance(atom, FloorDiv | FloorMod) and last in free_vars(atom) for atom in atoms)


def turning_points(block: Block, axis: IterVar) -> tuple[int, ...]:
    """Where, along an axis of a block, the conditions of its selects change, or which side of a
    minimum or a maximum is read at, if that is at a few places: between them no vector needs a
    mask, and what is read runs forwards or backwards.
    """
    found = set()
    for node in walk(block.body):
        if isinstance(node, Load):
            found |= set().union(*(_sides(item, axis.var, axis.extent) for item in node.indices))
        if not isinstance(node, Select):
            continue
        for condition in conjuncts(node.condition):
            if isinstance(condition, LT | LE) and free_vars(condition) == {axis.var}:
                found.add(_turn(condition, axis.var))
    return (
        tuple(sorted(n for n in found if 0 < n < axis.extent)) if len(found) <= MOST_TURNS else ()
    )


def _sides(place: Expr, var: Var, extent: int) -> set[int]:
    """The values of a variable, below `extent`, from which on other sides of the minima and maxima
    in an expression count than before.
    """
    found, open_pieces = set[int](), [(0, extent - 1)]
    while open_pieces and len(found) <= MOST_TURNS:
        low, high = open_pieces.pop()
        left = simplify(place, {var: (low, high)})
        choices = [*found_in(left, Min), *found_in(left, Max)]
        turns = (_turn(LE(n.a, n.b), var) for n in choices if _is_of(n, var))
        turn = next((n for n in turns if low < n <= high), None)
        if turn is not None:
            found.add(turn)
            open_pieces += [(low, turn - 1), (turn, high)]
    return found


def _is_of(choice: Binary, var: Var) -> bool:
    """Whether its sides are forms of a variable alone."""
    sides = linear(choice.a), linear(choice.b)
    return all(form.without(var).terms == () for form in sides)


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
