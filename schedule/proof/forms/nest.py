"""The statements of a nest, its accesses and its barriers, as values: statements.py reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....tir.buffer import Buffer
from ....tir.dim import Dim
from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import Block, For, If, Role, Store
from ....tir.text.printer import identifier
from .affine import Affine, variable
from .condition import Cases

Branches = tuple[tuple[If, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One store of one block.

    name: the block's; loops: around it, outermost first; positions: one more than loops.
    point: the block's iteration variables, as forms of the loops; root, segment: the statement at
    the function's root that holds it, and the number of barriers before that; threads: whether that
    statement is a parallel loop, or one of a grid.
    ranges: of each dim and each loop's variable, as its bounds in the domain narrow it; scopes: the
    buffers that may be used, each with the loops around its Alloc; dims: of the
    function; branches: the If statements around it, each with the side that it stands in.
    """

    name: str
    family: str
    role: Role
    block: Block
    store: Store
    loops: tuple[For, ...]
    positions: tuple[int, ...]
    domain: Cases
    env: Mapping[Var, Affine]
    point: tuple[Affine, ...]
    root: int
    segment: int
    threads: bool
    ranges: Mapping[Var, tuple[int, int]]
    scopes: Mapping[Buffer, tuple[For, ...]]
    dims: tuple[Dim, ...] = ()
    branches: Branches = ()

    @property
    def variables(self) -> tuple[Var, ...]:
        """The loops' variables."""
        return tuple(loop.var for loop in self.loops)

    @property
    def loop_names(self) -> tuple[str, ...]:
        """The loops' names, made unique as the printer makes them."""
        used: list[str] = []
        for loop in self.loops:
            hint, count = identifier(loop.var.name), 0
            name = hint
            while name in used:
                count += 1
                name = f"{hint}_{count}"
            used.append(name)
        return tuple(used)


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or store of one element of a buffer in each run of a statement.

    where: the statement's domain, narrowed by the select conditions on the way to a load; exact:
    whether it happens at all these points, rather than, depending on data, at some.
    fresh: the loops around the buffer's Alloc.
    """

    statement: Statement
    buffer: Buffer
    indices: tuple[Affine, ...]
    where: Cases
    fresh: tuple[For, ...]
    write: bool
    exact: bool = True

    @property
    def cell(self) -> tuple[Affine, ...]:
        """What tells cells apart: the iteration whose storage it is, then the indices."""
        return (*(variable(loop.var) for loop in self.fresh), *self.indices)


@dataclass(frozen=True, slots=True)
class BarrierAt:
    """A barrier below loops that all threads of a block run alike: the loops and branches around
    it, and its place in the text.
    """

    loops: tuple[For, ...]
    branches: Branches
    position: int

    def runs_with(self, statement: Statement) -> bool:
        """Whether it runs wherever, in an iteration of the loops around both, the statement may."""
        return self.branches == statement.branches[: len(self.branches)]


@dataclass(frozen=True, slots=True)
class Nest:
    """A function's statements in the order of the text, its accesses, and the barriers that stand
    inside of loops.
    """

    func: PrimFunc
    statements: tuple[Statement, ...]
    accesses: tuple[Access, ...]
    barriers: tuple[BarrierAt, ...] = ()
