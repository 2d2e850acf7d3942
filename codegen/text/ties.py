"""Which loops and blocks of a scheduled nest the lines of a source come from.

A store knows the block that it is a part of, through all passes. Loops keep their names, which are
hints: a loop is tied to those of its name around the blocks that it computes. A loop that was
unrolled, or became vectors, has no line: it is tied to the stores of its blocks. A value that gets
a name first is tied to the blocks that use it. What lowering adds of its own is tied to nothing:
barriers, prefetches, zeros that registers begin with, what stands around the body.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.initialise import INIT_SUFFIX
from ...tir.node import Node
from ...tir.stmt import Alloc, Block, Extern, For, ForKind, If, LetStmt, Seq, Stmt, Store, WarpSum
from ...tir.text.nest import BlockPlace, LoopPlace, Place, places
from ...tir.visit import free_vars, stores
from .marked import Mark, Marks

Places = frozenset[Place]
Loops = frozenset[LoopPlace]
Blocks = frozenset[BlockPlace]
_IN_PLACE = (ForKind.UNROLLED, ForKind.VECTORIZED, ForKind.TENSORIZED, ForKind.BLOCKIZED)


def ties(nest: PrimFunc, marks: Marks) -> tuple[Places, ...]:
    """For each line of a source, given by its mark, where it comes from in the text of `nest`."""
    known = _Nest(places(str(nest), nest.body))
    distinct = tuple(dict.fromkeys(mark for mark in marks if mark is not None))
    uses = _uses(known, distinct)
    loops = {mark: known.loops(mark.stmt) for mark in distinct if isinstance(mark.stmt, For)}
    shown = Loops().union(*loops.values())
    found: dict[Mark | None, Places] = {None: Places()}
    for mark in distinct:
        stmt = mark.stmt
        blocks = known.blocks(stmt)
        found[mark] = loops.get(mark) or blocks
        if isinstance(stmt, Store | WarpSum | LetStmt):
            around = Loops().union(*(loops.get(outer, ()) for outer in _around(mark)))
            found[mark] |= known.without_line(blocks, around, shown)
        if isinstance(stmt, LetStmt):
            found[mark] |= uses[stmt.var]
    return tuple(found[mark] for mark in marks)


def _around(mark: Mark | None) -> Iterator[Mark]:
    """A mark and those around it."""
    while mark is not None:
        yield mark
        mark = mark.outer


class _Nest:
    """The loops and blocks of a nest."""

    def __init__(self, listed: Iterable[Place]) -> None:
        self._loops: dict[For, LoopPlace] = {}
        self._blocks: dict[str, BlockPlace] = {}
        for place in listed:
            if isinstance(place, LoopPlace):
                self._loops[place.loop] = place
            else:
                self._blocks[place.block.name] = place

    def blocks(self, stmt: Stmt) -> Blocks:
        """The blocks that a statement computes something of."""
        match stmt:
            case Alloc():
                names = {s.block for s in stores(stmt.body) if s.buffer is stmt.buffer}
            case Seq():  # its own lines declare what all that stands in it uses
                return Blocks()
            case LetStmt():
                names = {stmt.body.block} if isinstance(stmt.body, Store) else set()
            case Extern():
                return frozenset(p for p in self._blocks.values() if _calls(p.block, stmt))
            case _:
                names = {store.block for store in stores(stmt)}
        return frozenset(place for name in names if (place := self._named(name)) is not None)

    def loops(self, loop: For) -> Loops:
        """The loops of a loop's name around the blocks that are computed in it. Where several have
        it, those with as many iterations: lowering cuts loops, and never makes them longer.
        """
        found = self._around(self.blocks(loop))
        alike = [place for place in found if place.loop.var.name == loop.var.name]
        long = (place for place in alike if place.loop.extent >= loop.extent)
        return frozenset(long) or frozenset(alike)

    def without_line(self, blocks: Blocks, around: Loops, shown: Loops) -> Loops:
        """The loops around some blocks that have no line of their own around a store. around: those
        that have; shown: those that have one anywhere.
        """
        found = self._around(blocks) - around
        return frozenset(p for p in found if p not in shown or p.loop.kind in _IN_PLACE)

    def _around(self, blocks: Blocks) -> Loops:
        return frozenset(self._loops[loop] for block in blocks for loop in block.around)

    def _named(self, name: str) -> BlockPlace | None:
        """The block of a name, or that whose sum begins in a block of the name."""
        return self._blocks.get(name) or self._blocks.get(name.removesuffix(INIT_SUFFIX))


def _calls(block: Block, call: Extern) -> bool:
    """Whether a block is the call of a C function that a statement is."""
    body = block.body
    if not isinstance(body, Extern) or body.function != call.function:
        return False
    return [b.name for b in body.outputs] == [b.name for b in call.outputs]


def _uses(known: _Nest, marks: Sequence[Mark]) -> dict[Var, set[Place]]:
    """For each variable the blocks whose lines need it, directly or through others."""
    uses: dict[Var, set[Place]] = defaultdict(set)
    for mark in reversed(marks):  # what is used stands before its use
        read: Node
        needed: set[Place] = set(known.blocks(mark.stmt))
        match mark.stmt:
            case LetStmt(var, value):
                read = value
                needed |= uses[var]
            case If(condition):
                read = condition
            case Store() | WarpSum():
                read = mark.stmt
            case _:
                continue
        for var in free_vars(read):
            uses[var] |= needed
    return uses
