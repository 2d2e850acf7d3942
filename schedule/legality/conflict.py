"""Two runs that would conflict, found with integer sets: the witness of a refusal.

A rule that keeps the order of reads and writes says in which orders a run of one access must not
come before one of another. Asked of isl, exactly: a no is final, a yes comes with two iterations
and the element that both touch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import islpy as isl

from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.stmt import Block, For, Role
from ..canonical import origin_of
from ..conflict_note import ConflictNote
from ..proof.forms.affine import Undecided
from ..proof.forms.nest import Access, Nest, Statement
from ..proof.forms.statements import read_nest
from ..proof.relations.order import ANY, Equal, Order, common_loops
from ..proof.relations.sets import Sets
from ..proof.relations.witness import element_text, iteration, runs_of
from ..verdict import Iteration

MAX_OPERATIONS = 2_000_000  # of isl: some tenths of a second
SEEN = " (not proved otherwise)"  # in a message where it cannot be told

Orders = Callable[[Access, Access], Sequence[Order]]


@dataclass(frozen=True, slots=True)
class ConflictingRun:
    """A run of a block that writes or reads the element of a conflict.

    sure: whether it does whatever the data are; else it may.
    """

    run: Iteration
    write: bool
    sure: bool

    @property
    def verb(self) -> str:
        """What the block does with the element."""
        plain = "write" if self.write else "read"
        return f"{plain}s" if self.sure else f"may {plain}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two runs that touch one element, one of them writing."""

    first: ConflictingRun
    second: ConflictingRun
    element: str

    def __str__(self) -> str:
        one, two = self.first, self.second
        return (
            f"block '{one.run.block}' {one.verb} {self.element} in iteration {one.run.place}, "
            f"block '{two.run.block}' {two.verb} it in iteration {two.run.place}."
        )

    def note(self, sentence: str = "") -> ConflictNote:
        """The note of a refusal: the conflict in words, by default those of `str`."""
        return ConflictNote.of(sentence or str(self), self.first.run, self.second.run, self.element)


def find_conflict(
    func: PrimFunc,
    orders: Orders,
    above: Equal = (),
    *,
    anywhere: bool = False,
    families: Collection[str] | None = None,
) -> Conflict | None:
    """Two runs that touch one element, one of them writing, in one of the `orders` of the two
    accesses, and of which `above` holds; None where there are none. One that is sure comes first.

    above: forms of which the one of the first run is the greater. anywhere: an element is the same
    one also where each iteration has storage of its own, and in a staged copy of its tensor.
    families: of the blocks that are asked about; of all where nothing is said.
    Raises: Undecided for what integer sets cannot express, or not within MAX_OPERATIONS.
    """
    with _limited():
        return _found(read_nest(func, families), orders, above, anywhere)


@contextmanager
def _limited() -> Iterator[None]:
    """Raise Undecided where isl has had MAX_OPERATIONS."""
    try:
        yield
    except isl.Error as error:
        if "maximal number of operations" not in str(error):
            raise
        raise Undecided(f"it takes isl more than {MAX_OPERATIONS} operations") from error


def conflict_notes(
    func: PrimFunc, orders: Orders, above: Equal = (), *, anywhere: bool = False
) -> tuple[str, ...] | None:
    """None where isl shows that there is no conflict as of `find_conflict`; else the note of a
    refusal that names one, and no note where it cannot be told.
    """
    try:
        conflict = find_conflict(func, orders, above, anywhere=anywhere)
    except Undecided:
        return ()
    return None if conflict is None else (conflict.note(),)


def witness(func: PrimFunc, orders: Orders, above: Equal = ()) -> Conflict | None:
    """A conflict as of `find_conflict`; None also where it cannot be found."""
    try:
        return find_conflict(func, orders, above)
    except Undecided:
        return None


def _found(nest: Nest, orders: Orders, above: Equal, anywhere: bool) -> Conflict | None:
    sets = Sets(MAX_OPERATIONS, nest.func.dims, nest.func.facts)
    pairs = [
        (a, b)
        for a, b in itertools.product(nest.accesses, repeat=2)
        if _share(a, b, anywhere) and (a.write or b.write)
    ]
    for a, b in sorted(pairs, key=lambda pair: not (pair[0].exact and pair[1].exact)):
        one, two = a.statement, b.statement
        cells = (a.indices, b.indices) if anywhere else (a.cell, b.cell)
        equal = tuple(zip(*cells, strict=True))
        wanted = orders(a, b)
        possible = sets.possible(one, a.where, two, b.where, equal, wanted) if wanted else ()
        if not possible:
            continue
        runs = sets.pairs(one, a.where, two, b.where, equal, possible, above)
        if not sets.empty(runs):
            first, second = runs_of(runs.wrap().lexmin(), one, two)
            element = element_text((a.buffer.origin or a.buffer).name, a.indices, first)
            return Conflict(
                ConflictingRun(iteration(one, first), a.write, a.exact),
                ConflictingRun(iteration(two, second), b.write, b.exact),
                element,
            )
    return None


def _share(a: Access, b: Access, anywhere: bool) -> bool:
    """Whether two accesses may touch one element."""
    if anywhere:
        return origin_of(a.buffer) is origin_of(b.buffer)
    return a.buffer is b.buffer


def runs_twice(
    func: PrimFunc, block: str, tensor: Buffer, loops: Sequence[Var]
) -> tuple[str, ...] | None:
    """None where no two iterations of `loops` run a block for one point of its axes; else the note
    of a refusal that names two and what they touch of a tensor, or of another one where they never
    touch that; and no note where it cannot be told.
    """
    try:
        runs = [
            access
            for access in read_nest(func).accesses
            if access.statement.name == block and access.statement.role is not Role.INIT
        ]
        if not runs:
            return None
        access = next((one for one in runs if one.buffer is tensor), runs[0])
        with _limited():
            return _run_again(Sets(MAX_OPERATIONS, func.dims, func.facts), access, loops)
    except Undecided:
        return ()


def leaves_out(func: PrimFunc, tensor: Buffer) -> bool:
    """Whether a tensor has elements that no block writes; also where it cannot be told."""
    try:
        written = [
            x for x in read_nest(func).accesses if x.write and x.buffer is tensor and x.exact
        ]
        with _limited():
            sets = Sets(MAX_OPERATIONS, func.dims, func.facts)
            left = sets.box(tensor.shape)
            for access in written:
                made = sets.image(access.statement, access.where, access.indices)
                left = left.subtract(made.range())
            return not sets.empty(left)
    except Undecided:
        return True


def _run_again(sets: Sets, access: Access, loops: Sequence[Var]) -> tuple[str, ...] | None:
    one = access.statement
    equal = tuple(zip(one.point, one.point, strict=True))
    orders = [Order(level, "<") for level, var in enumerate(one.variables) if var in loops]
    runs = sets.pairs(one, one.domain, one, one.domain, equal, orders)
    if sets.empty(runs):
        return None
    first, second = runs_of(runs.wrap().lexmin(), one, one)
    element = element_text(access.buffer.name, access.indices, first)
    early, late = iteration(one, first), iteration(one, second)
    places = f"{early.place} and {late.place}"
    sentence = f"block '{one.name}' would run twice for {element}, in iterations {places}."
    return (ConflictNote.of(sentence, early, late, element),)


# -- orders that rules ask about ------------------------------------------------------------------


def written_twice(tensor: Buffer, loops: Sequence[For]) -> Orders:
    """Two runs write one element of a tensor, or of one copy of it, the first ahead in one of
    `loops`.
    """

    def orders(a: Access, b: Access) -> Sequence[Order]:
        one, two = a.statement, b.statement
        ours = origin_of(a.buffer) is origin_of(tensor) and a.write and b.write
        if not ours or Role.INIT in (one.role, two.role):
            return ()
        common = one.loops[: common_loops(one, two)]
        return [Order(common.index(loop), "<") for loop in loops if loop in common]

    return orders


def flow_notes(
    func: PrimFunc, tensor: Buffer, writers: Sequence[Block], readers: Sequence[Block]
) -> tuple[str, ...]:
    """A run of one of the `writers` and one of the `readers` that share an element of a tensor, in
    words; nothing where none is found.
    """

    def orders(a: Access, b: Access) -> Sequence[Order]:
        wanted = a.buffer is tensor and a.write and not b.write
        ours = any(a.statement.block is x for x in writers)
        return (ANY,) if wanted and ours and any(b.statement.block is x for x in readers) else ()

    found = witness(func, orders)
    return () if found is None else (found.note(),)


def in_other_iterations(a: Statement, b: Statement, loop: For) -> Sequence[Order]:
    """The two run in different iterations of a loop, and in one of those around it."""
    if loop.var not in a.variables or loop.var not in b.variables:
        return ()
    level = a.variables.index(loop.var)
    return Order(level, "<"), Order(level, ">")
