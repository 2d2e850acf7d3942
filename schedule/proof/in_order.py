"""The order of sums, for strict builds: an accumulator of floats takes the points of its reduction
in the order in which the definition numbers them, the last axis fastest.

It is asked of a nest that is proved, where each point of a family runs once: so of two points of
one element, the one with the greater number must not run first. What does not round may run in any
order: integers, minima and maxima, and reducers that only choose.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import islpy as isl

from ...tir.analysis.threads import joined_by
from ...tir.analysis.update import read_update
from ...tir.buffer import Load
from ...tir.expr import Add, Call, Div, Mul, Sub
from ...tir.func import PrimFunc
from ...tir.lowered import Fma
from ...tir.stmt import Block, For, IterKind, Role
from ...tir.visit import loads, statements, stores, walk
from ..nest import is_reduction, targets_of
from ..verdict import Failure
from .coverage import Group, groups_of
from .forms.affine import Undecided
from .forms.budget import MAX_OPERATIONS, used_up
from .forms.families import read_families
from .forms.nest import Statement
from .forms.statements import read_nest
from .relations.order import may_exceed, orders_before
from .relations.sets import Sets
from .relations.witness import iteration, runs_of

_CHOOSES = ("min", "max", "max_any", "any", "all")
_ROUNDS = (Add, Sub, Mul, Div, Fma, Call)


def reordered_sums(original: PrimFunc, canonical: PrimFunc, nest: PrimFunc) -> list[Failure]:
    """The sums of `original` whose points run in another order, or are summed in parts; with two
    iterations that show it. Also what cannot be decided, as a Failure without iterations.

    canonical, nest: of a schedule of `original`; the nest has been proved to compute the former.
    """
    wanted = [block for block in original.blocks if is_reduction(block) and rounds(block)]
    found = [failure for block in wanted for failure in _parted(block, canonical)]
    found += _joined(nest) if wanted else ()
    if found or not wanted:
        return found
    sets = Sets(MAX_OPERATIONS, nest.dims, nest.facts)
    try:
        groups = groups_of(read_nest(nest), read_families(canonical))
        names = {sums.name for block in wanted for sums in _summing(block, canonical)}
        sums = [g for g in groups if g.family.name in names and g.role is Role.COMPUTE]
        swapped = (_swapped(sets, group) for group in sums if group.number == 0)
        return [failure for failure in swapped if failure is not None]
    except Undecided as undecided:
        return [Failure("P3", f"the order of a sum cannot be told: {undecided}")]
    except isl.Error as error:
        why = used_up(error, MAX_OPERATIONS)
        return [Failure("P3", f"the order of a sum cannot be told: {why}")]


def rounds(block: Block) -> bool:
    """Whether the order of a reduction's points may show in its result."""
    if not any(target.type.is_float for target in targets_of(block)):
        return False
    update = read_update(block)
    if update is None or update.reducer is not None:
        return update is None or update.reducer not in _CHOOSES
    return any(isinstance(node, _ROUNDS) for result in update.results for node in walk(result))


def _parted(block: Block, canonical: PrimFunc) -> Iterator[Failure]:
    """A sum that the schedule has made another one: a sum of parts."""
    same = _summing(block, canonical)
    if not same or _reduced(same[0]) != _reduced(block):
        yield Failure("P3", f"block '{block.name}' is summed in parts")


def _summing(block: Block, canonical: PrimFunc) -> list[Block]:
    """The block that sums what `block` did, perhaps for one under its name that copies."""
    found = [b for b in canonical.blocks if (b.family or b.name) == block.name]
    while found and not is_reduction(found[0]) and isinstance(stores(found[0].body)[0].value, Load):
        (load,) = loads(found[0].body)
        found = [b for b in canonical.blocks if load.buffer in targets_of(b)]
    return found


def _joined(nest: PrimFunc) -> Iterator[Failure]:
    """Sums that threads join in a tree."""
    for loop in (x for x in statements(nest.body) if isinstance(x, For)):
        made = joined_by(loop)
        if made is not None and rounds(made):
            name = made.family or made.name
            yield Failure("P3", f"threads of loop '{loop.var.name}' join block '{name}'")


def _reduced(block: Block) -> list[int]:
    return [it.extent for it in block.iters if it.kind is IterKind.REDUCE]


def _swapped(sets: Sets, group: Group) -> Failure | None:
    """Two points of one element, of which the one with the greater number runs first."""
    for one, two in itertools.product(group.statements, repeat=2):
        found = _exchanged(sets, group, one, two)
        if found is not None:
            return found
    return None


def _exchanged(sets: Sets, group: Group, one: Statement, two: Statement) -> Failure | None:
    places = range(len(group.iters))
    same = [n for n in places if group.iters[n].kind is not IterKind.REDUCE]
    where = group.valid(one), group.valid(two)
    before = orders_before(one, two, group.rounds)
    for n in (n for n in places if group.iters[n].kind is IterKind.REDUCE):
        equal = tuple((one.point[m], two.point[m]) for m in same)
        above = one.point[n], two.point[n]
        orders = [order for order in before if may_exceed(*above, one, two, order)]
        orders = sets.possible(one, where[0], two, where[1], equal, orders)
        runs = sets.pairs(one, where[0], two, where[1], equal, orders, (above,))
        if orders and not sets.empty(runs):
            first, second = runs_of(runs, one, two)
            texts = [
                ", ".join(
                    f"{it.var.name}={form.value(at)}"
                    for it, form in zip(group.iters, statement.point, strict=True)
                )
                for statement, at in ((one, first), (two, second))
            ]
            message = f"block '{group.family.name}' adds point ({texts[0]}) before ({texts[1]})"
            return Failure("P3", message, (iteration(one, first), iteration(two, second)))
        same.append(n)
    return None
