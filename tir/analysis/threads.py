"""Which threads of a block run what, beside what loops of threads say.

- Where a block reduces over a loop of threads, each of them brings what its iteration computes, and
  they join that in halves: each with the one half of them away, then with the one a quarter away,
  and so on. All threads along the axis hold the result, where the accumulator is a buffer of each
  thread's own; one that they share is written by the first.
- What stands outside of loops of an axis is done by the first thread along it; but what sets a
  buffer of each thread's own, to which a loop of that axis comes too, is done by all: each has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..buffer import Buffer
from ..node import Node
from ..stmt import Alloc, Barrier, Block, Commit, For, If, IterKind, LetStmt, Seq, Stmt, Store
from ..visit import free_vars, loads, statements, stores

WARP = 32  # threads that join values without memory, neighbours along threadIdx.x

Kept = Mapping[Buffer, frozenset[str]]


def reduces_over(block: Block, loop: For) -> bool:
    """Whether the block combines what the iterations of a loop bring."""
    return any(
        it.kind is IterKind.REDUCE and loop.var in free_vars(binding)
        for it, binding in zip(block.iters, block.bindings, strict=True)
    )


def joined_by(loop: For) -> Block | None:
    """The block whose values the threads of a loop join; None for any other loop."""
    block = loop.body
    if loop.is_of_threads and isinstance(block, Block) and reduces_over(block, loop):
        return block
    return None


def has_threads(stmt: Stmt) -> bool:
    """Whether a loop of threads stands below a statement, or it is one."""
    return any(isinstance(node, For) and node.is_of_threads for node in statements(stmt))


def done_by_first(stmt: Stmt, missing: frozenset[str], kept: Kept) -> frozenset[str]:
    """The axes along which the first thread alone does all of a statement of lowered code. missing:
    those of which no loop stands around it.
    """
    if isinstance(stmt, Alloc | Barrier | Commit | Seq) or has_threads(stmt):
        return frozenset()
    found = {missing - kept.get(store.buffer, frozenset()) for store in stores(stmt)}
    return found.pop() if len(found) == 1 else frozenset()


def kept_by_all(root: Stmt) -> Kept:
    """For each buffer of a thread's own the axes along which every thread has it set: those of
    which some loop comes to it, or to what is made of it outside of such a loop.
    """
    found = _Found()
    found.visit(root, frozenset(), frozenset())
    waiting = True
    while waiting:
        waiting = False
        for target, axes, read in found.made:
            outside = found.kept.get(target, frozenset()) - axes
            for buffer in read:
                if not outside <= found.kept[buffer]:
                    found.kept[buffer] |= outside
                    waiting = True
    return found.kept


@dataclass(slots=True)
class _Found:
    """What a walk has found. made: what is set, the axes of the loops around, and of what."""

    kept: dict[Buffer, frozenset[str]] = field(default_factory=dict)
    made: list[tuple[Buffer, frozenset[str], frozenset[Buffer]]] = field(default_factory=list)

    def visit(self, stmt: Stmt, axes: frozenset[str], given: frozenset[Buffer]) -> None:
        """A statement below loops of threads of these axes. given: what decides whether it runs,
        and what names in it stand for.
        """
        while isinstance(stmt, Alloc | LetStmt):
            given |= self.read((stmt.value,), axes) if isinstance(stmt, LetStmt) else given
            stmt = stmt.body
        match stmt:
            case Store():
                read = given | self.read(stmt.children(), axes)
                if stmt.buffer.is_private:
                    self.touch(stmt.buffer, axes)
                    self.made.append((stmt.buffer, axes, read))
                return
            case If():
                given |= self.read((stmt.condition,), axes)
            case For() if stmt.is_of_threads:
                axes |= {stmt.axis}
        for child in stmt.children():
            if isinstance(child, Stmt):
                self.visit(child, axes, given)

    def read(self, nodes: Iterable[Node], axes: frozenset[str]) -> frozenset[Buffer]:
        """The buffers of a thread's own that expressions load, which are noted."""
        found = {load.buffer for node in nodes for load in loads(node) if load.buffer.is_private}
        for buffer in found:
            self.touch(buffer, axes)
        return frozenset(found)

    def touch(self, buffer: Buffer, axes: frozenset[str]) -> None:
        """Note that loops of these axes come to a buffer."""
        self.kept[buffer] = self.kept.get(buffer, frozenset()) | axes
