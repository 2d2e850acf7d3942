"""What each stage admits, as data."""

from __future__ import annotations

from dataclasses import dataclass

from ..buffer import Buffer, Load
from ..dim import Dim
from ..expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Const,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)
from ..lowered import Broadcast, Exchange, Fma, Lanes, Ramp, Reinterpret, Shuffle, Vector
from ..node import Node
from ..stmt import (
    UNITS,
    Alloc,
    Barrier,
    Block,
    Commit,
    Extern,
    For,
    ForKind,
    If,
    IterVar,
    LetStmt,
    Prefetch,
    Role,
    Seq,
    Store,
    WarpSum,
)


@dataclass(frozen=True, slots=True)
class StageSpec:
    """What a stage admits.

    nodes: the kinds of nodes. loops: the kinds of loops. roles: the roles of blocks. tails: loops
    may mark an incomplete last iteration. guards: blocks may have a predicate, be padded or
    recomputed. init: blocks may hold their init.
    unique_blocks: no two blocks have one name. dims: axes of blocks may end where a call says.
    vectors: values may have lanes, accesses masks.
    """

    nodes: frozenset[type[Node]]
    loops: frozenset[ForKind] = frozenset(ForKind)
    roles: frozenset[Role] = frozenset(Role)
    tails: bool = False
    guards: bool = True
    init: bool = False
    unique_blocks: bool = False
    dims: bool = False
    vectors: bool = False


_ARITHMETIC = (Add, Sub, Mul, Div, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, And, Or, Not)
_BITS = (BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight)
_VALUES = (Var, Dim, Const, Select, Cast, Reinterpret, Call, Let, Load, Buffer)
_LOWERED = (Fma, Ramp, Broadcast, Lanes, Vector, Shuffle, Exchange)
_ACTIONS = (For, Store, Seq, Alloc, Extern)
_PLAIN: frozenset[type[Node]] = frozenset((*_ARITHMETIC, *_BITS, *_VALUES, *_ACTIONS))
_BLOCKS: frozenset[type[Node]] = _PLAIN | {Block, IterVar}

TENSOR = StageSpec(
    _BLOCKS,
    loops=frozenset({ForKind.SERIAL}),
    roles=frozenset({Role.COMPUTE}),
    guards=False,
    init=True,
    unique_blocks=True,
    dims=True,
)
SCHEDULED = StageSpec(
    _BLOCKS | {If, Prefetch}, tails=True, init=True, unique_blocks=True, dims=True
)
CONTRACTED = StageSpec(
    _BLOCKS | {If, Prefetch, Fma}, tails=True, init=True, unique_blocks=True, dims=True
)
NEST = StageSpec(_BLOCKS | {If, Prefetch, Fma, Barrier, Commit})
LOWERED = StageSpec(
    _PLAIN | {If, Prefetch, Barrier, Commit, LetStmt, WarpSum, *_LOWERED},
    loops=frozenset(ForKind) - frozenset(UNITS),
    vectors=True,
)

# while passes bring a function from one stage to the next, it holds what either admits
CONTRACTED_TO_NEST = StageSpec(CONTRACTED.nodes | NEST.nodes, tails=True, init=True, dims=True)
NEST_TO_LOWERED = StageSpec(NEST.nodes | LOWERED.nodes, vectors=True)
