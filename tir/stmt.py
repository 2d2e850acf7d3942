"""Statements: loops, blocks and stores, and what each of them means.

- For runs its body for var = 0 .. extent-1. `serial` and `unrolled` run in order; iterations of
  `parallel` may run at once; iterations of `vectorized` run as the lanes of one vector. Those of
  `bound` loops may run at once too: each is the block or the thread of a grid that has the loop's
  number along `axis`. All loops of one axis are the same threads; where an axis has no loop its
  first thread runs what there is, and threads over which a block reduces join what each of them
  brings (tir/analysis/threads.py). A nest
  below a loop that is `blockized` or `tensorized` is one unit for a schedule; its loops run in
  order, and code generation makes one instruction, `intrinsic`, of the tensorized one, which
  rounds a sum of floats in its own way where it says so (tir/instructions/tensor_intrinsics.py).
- A Block is the unit that a schedule moves: the body for one point of its iteration variables,
  which `bindings` compute from the loops around it. It runs only where `predicate` holds. `init`
  runs before the first update of its element, wherever that lands: where a schedule has not placed
  it, lowering does. The body of a block is one Store, or several to different buffers: all their
  values are computed before any of them is written, and so are those of its `init`.
- `counts` says which points of a reduction count: at the others the body does not run, and the
  element is initialised all the same. It speaks of iteration variables and belongs to what the
  block means; `predicate` belongs to where a schedule runs it.
- An Alloc lives as long as its body. Inside a parallel loop each iteration has its own.
- An Extern calls a C function of the user's, or is a step that the language knows (tir/steps.py).
  It is the body of a block without iteration variables, at the root of a function, or stands there
  alone in lowered code.
- Barrier: every thread arrives before one leaves. It stands between statements at the root of a
  function, or, for the threads of one block, between statements that all of them run: outside of
  loops of threads. Without one, what different threads do has no order.
- Prefetch is not an access: it may name addresses past the end; proof and interpreter ignore it.
- A Commit ends a group of copies that run ahead; what they mean is as if they had ended there.
- A WarpSum is what a tensorized nest of a warp turns into (instructions/warp_products.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import is_
from typing import Self, cast

from .buffer import Buffer, Load
from .dim import Dim, Extent, most
from .dtype import DType
from .expr import TRUE, Const, Expr, Var
from .extern import ExternFunction
from .index_check import IndexCheck
from .node import Node
from .steps import StepFunction


class ForKind(Enum):
    """How the iterations of a loop are run."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    BOUND = "bound"
    BLOCKIZED = "blockized"
    TENSORIZED = "tensorized"


UNITS = (ForKind.BLOCKIZED, ForKind.TENSORIZED)
SHARED_OUT = (ForKind.PARALLEL, ForKind.BOUND)  # each iteration is a thread's, or a block's

BLOCK_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREAD_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
AXES = (*BLOCK_AXES, *THREAD_AXES)

ROW_BYTES = 16  # of what one thread points at when a warp loads by rows

# stages: places in shared memory for what the body fetches, all but one of them ahead of its use;
# stream: vectors that are stored below go past the caches, where they are parts of a parameter;
# unroll_hint: copies of the body that the C compiler should make
ANNOTATIONS = ("stages", "stream", "unroll_hint")


class Tail(Enum):
    """What becomes of a split's last, incomplete iteration: a late pass cuts it as marked."""

    GUARD = "guard"
    PARTITION = "partition"
    MASK = "mask"


class IterKind(Enum):
    """What order the points of an iteration variable need.

    SPATIAL: none; each point sets elements of its own, from other tensors. REDUCE: none; its points
    are combined into one element. ORDERED: points set elements of their own too, and may read those
    that the block sets at smaller values of the variable, so these run before.
    """

    SPATIAL = "spatial"
    REDUCE = "reduce"
    ORDERED = "ordered"


class Role(Enum):
    """What a block is for: to compute its tensor, to initialise a reduction, or to copy into or out
    of a staged buffer.
    """

    COMPUTE = "compute"
    INIT = "init"
    COPY = "copy"


class Stmt(Node):
    """An action; it has no value."""

    __slots__ = (
        "_accesses",
        "_below",
        "_blocks",
        "_buffers",
        "_ids",
        "_inner",
        "_loads",
        "_loops",
        "_statements",
        "_stores",
    )
    _accesses: tuple[Load | Store | Prefetch, ...]  # what tir/visit.py found below it, kept here
    _below: tuple[Stmt, ...]
    _inner: Stmt  # of an allocation
    _blocks: tuple[Block, ...]
    _buffers: frozenset[Buffer]
    _ids: frozenset[int]
    _loads: tuple[Load, ...]
    _loops: tuple[For, ...]
    _statements: tuple[Stmt, ...]
    _stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """Run `body` for `var` = 0 .. extent-1. `tail` is set on a loop whose last iteration may be
    incomplete.

    annotations: hints to the back end, each of `ANNOTATIONS` and its value, in the order of the
    keys; they change no meaning.
    intrinsic: the name of the one that a tensorized loop becomes; else empty.
    axis: of the grid, of `AXES`, to which a bound loop is bound; else empty.
    """

    var: Var
    extent: int
    kind: ForKind
    body: Stmt
    tail: Tail | None = None
    annotations: tuple[tuple[str, int], ...] = ()
    intrinsic: str = ""
    axis: str = ""

    @property
    def is_of_blocks(self) -> bool:
        """Whether its iterations are blocks of a grid."""
        return self.axis in BLOCK_AXES

    @property
    def is_of_threads(self) -> bool:
        """Whether its iterations are threads of a block."""
        return self.axis in THREAD_AXES


@dataclass(frozen=True, slots=True, eq=False)
class Store(Stmt):
    """Write `value` to `buffer` at `indices`, in the lanes that `mask` leaves on.

    block: in lowered code the name of the block that it is a part of, empty where it is of none; no
    part of what it means, so it is outside of ==.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None = None
    block: str = field(default="", compare=False, kw_only=True)

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        made = Node.map_children(self, visit)
        if made is not self and self.block:
            object.__setattr__(made, "block", self.block)
        return made


@dataclass(frozen=True, slots=True, eq=False)
class IterVar(Node):
    """An iteration variable of a block with the values 0 .. extent-1.

    dim: where a call decides how many values there are; `extent` is the upper bound then. The block
    does not run at points beyond them.
    """

    var: Var
    extent: int
    kind: IterKind
    dim: Dim | None = None

    @property
    def domain(self) -> Extent:
        """How many values there are: a number, or the dim that decides it."""
        return self.extent if self.dim is None else self.dim


@dataclass(frozen=True, slots=True, eq=False)
class Extern(Stmt):
    """Write every element of each of `outputs` with what a C function, or a step that the language
    knows, makes of `inputs`.

    Its children are what a walk wants to know: a load of each element that it reads, a store of
    each that it writes, at variables that run through the tensor. No rewriter meets those: the
    fields are the buffers.
    """

    function: ExternFunction | StepFunction
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]

    def children(self) -> tuple[Node, ...]:
        try:
            return self._children
        except AttributeError:
            found: list[Node] = []
            for buffer in (*self.inputs, *self.outputs):
                axes = tuple(Var(f"{buffer.name}_{axis}") for axis in range(len(buffer.shape)))
                found += elements_of(buffer, axes)
                if buffer in self.inputs:
                    found.append(Load(buffer, axes))
                else:
                    found.append(Store(buffer, axes, Const(0, buffer.type)))
            object.__setattr__(self, "_children", tuple(found))
            return self._children

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        """This node with `visit` applied to each buffer."""
        inputs, outputs = (
            tuple(cast(Buffer, visit(buffer)) for buffer in held)
            for held in (self.inputs, self.outputs)
        )
        same = all(map(is_, (*self.inputs, *self.outputs), (*inputs, *outputs)))
        return self if same else type(self)(self.function, inputs, outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """One point of a computation.

    bindings: the value of each iteration variable, from the loops around the block.
    init: what stands in the accumulator before the first update; None for a block without
    reduction, or once placed.
    role, family: what the block is for, and the name of the function's block that it is a part of.
    padded: points beyond the tensor's logical domain may be computed, since no valid point reads
    them.
    recomputed: a point may run more than once; each run writes the same value.
    counts: the points of a reduction that are combined, in iteration variables.
    """

    name: str
    iters: tuple[IterVar, ...]
    bindings: tuple[Expr, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: Expr = TRUE
    role: Role = Role.COMPUTE
    family: str = ""
    padded: bool = False
    recomputed: bool = False
    counts: Expr = TRUE

    @property
    def is_ordered(self) -> bool:
        """Whether it is a recurrence, which reads what it has set itself at earlier points."""
        return any(it.kind is IterKind.ORDERED for it in self.iters)


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Run the statements in order."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    """Run `then` where `condition` holds, else `orelse` when there is one."""

    condition: Expr
    then: Stmt
    orelse: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LetStmt(Stmt):
    """Run `body` with `var` standing for `value`, which is evaluated once. Lowered code only."""

    var: Var
    value: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(Stmt):
    """Run `body` with fresh, uninitialised storage for `buffer`."""

    buffer: Buffer
    body: Stmt

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        """As a node's, with few levels of the stack: hundreds stand one within the other."""
        buffer, body = visit(self.buffer), visit(self.body)
        same = buffer is self.buffer and body is self.body
        return self if same else type(self)(cast(Buffer, buffer), cast(Stmt, body))


@dataclass(frozen=True, slots=True, eq=False)
class Barrier(Stmt):
    """Wait until every thread of the team, or of the block, has come here."""


@dataclass(frozen=True, slots=True, eq=False)
class Commit(Stmt):
    """What was copied to `buffers` since the last one is one group of copies, which may go on while
    the threads run: where a barrier parts them from their use, it waits for all groups but the
    newest `ahead - 1`.
    """

    buffers: tuple[Buffer, ...]
    ahead: int


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch(Stmt):
    """Ask for the cache line of an element: for writing or reading, into cache level 1, 2 or 3."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    write: bool = False
    level: int = 1


class Held(Enum):
    """How a thread comes by its part of a factor.

    ELEMENTS: it loads each element. ROWS, COLUMNS: the warp loads the factor from shared memory by
    rows of 16 bytes, of which each thread points at one; a row holds terms of one sum, or one term
    of several sums.
    """

    ELEMENTS = "elements"
    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True, eq=False)
class Fragment(Node):
    """The part of a factor that a thread brings to a product of its warp.

    loads: its elements in the order of the instruction's registers, lowest bits first; or one load,
    the first element of the row that the thread points at.
    """

    how: Held
    loads: tuple[Load, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WarpSum(Stmt):
    """The threads of a warp together add the product of two factors to what each of them holds of
    the result. Lowered code for a GPU only.

    intrinsic: the name of the instruction. sums: the elements of a thread, each as a store of what
    it held, in the order of the instruction's registers.
    """

    intrinsic: str
    sums: tuple[Store, ...]
    a: Fragment
    b: Fragment


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function: an input, a constant (bound when a kernel is built) or an
    output.

    check: what an output says that is no result but a check of indices.
    """

    buffer: Buffer
    role: str
    check: IndexCheck | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.buffer}"

    __repr__ = __str__

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self.buffer.name

    @property
    def dtype(self) -> DType:
        """The type of an element."""
        return self.buffer.type


def iter_var(var: Var, extent: Extent, kind: IterKind) -> IterVar:
    """The iteration variable with the values 0 .. extent-1, where a dim may decide the extent."""
    return IterVar(var, most(extent), kind, extent if isinstance(extent, Dim) else None)


def elements_of(buffer: Buffer, variables: Sequence[Var]) -> tuple[IterVar, ...]:
    """Spatial iteration variables that run over the elements of a buffer."""
    return tuple(
        iter_var(var, extent, IterKind.SPATIAL)
        for var, extent in zip(variables, buffer.extents, strict=True)
    )


def seq(*stmts: Stmt) -> Stmt:
    """The statements in order, nested sequences flattened; a single statement stands for itself."""
    flat: list[Stmt] = []
    for stmt in stmts:
        flat += stmt.body if isinstance(stmt, Seq) else (stmt,)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


NOTHING = Seq(())
