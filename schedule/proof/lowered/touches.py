"""Lowered code as the proof sees it: each load and store that is asked for, with its loops, the
conditions under which it happens, and its place among threads and barriers.

- A thread of a block runs what stands in loops of threads, and beside them what the emitter gives
  it (analysis/threads.py): along an axis without a loop an access is of the first thread or all.
- A warp that loads a factor by rows takes 16 bytes at each address, for any of its threads.
- An access of a vector is one of each of its lanes: a loop over them, innermost.
- Where a scalar chooses, only the branch that is taken is evaluated; where a vector does, both are,
  in every lane: nothing but a mask keeps a lane from loading.
- An access under a condition of data may happen, or not. What the condition says of the data counts
  where these never change, or where it stands in one expression with the access, between whose
  loads nothing is stored. One that would be of more than LONGEST nodes, names replaced by what they
  name, is left out, as if the access might always happen: it grows with each use of each name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ....tir.analysis.threads import Kept, done_by_first, kept_by_all
from ....tir.buffer import Buffer, Load
from ....tir.conditions import conjuncts
from ....tir.dim import Dim
from ....tir.dtype import INT64
from ....tir.expr import And, Expr, Let, Not, Or, Select, Var, index
from ....tir.lowered import Ramp
from ....tir.node import Node
from ....tir.stmt import (
    ROW_BYTES,
    SHARED_OUT,
    THREAD_AXES,
    Alloc,
    Barrier,
    Block,
    Commit,
    Extern,
    For,
    ForKind,
    Fragment,
    Held,
    If,
    IterVar,
    LetStmt,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
    WarpSum,
)
from ....tir.visit import found_in, free_vars, statements
from ..forms.affine import Affine, Undecided, variable
from ..forms.condition import ALWAYS, Cases, both, condition
from ..forms.nest import Access, BarrierAt, Branches, Statement
from ..forms.statements import access, narrowed
from ..grid_races import Threads
from .lanes import in_lane, lane_loop, size_in_lane
from .spans import Spans

LONGEST = 2_000

Wanted = Callable[[Load | Store], bool]
_NOTHING_STORED = Store(Buffer("", INT64, ()), (), index(0))
_NONE: frozenset[str] = frozenset()
_WARP = frozenset({THREAD_AXES[0]})


@dataclass(frozen=True, slots=True)
class GroupAt:
    """The end of a group of copies, below loops that all threads of a block run alike: `commit`."""

    root: int
    commit: Commit
    at: BarrierAt


@dataclass(slots=True)
class Touches:
    """A walk over a LOWERED function that keeps the accesses that are `wanted`.

    stored: the buffers that the function writes. undecided: for each of the wanted accesses that
    the proof cannot follow, why. extents: threads along each axis, by the number of the statement
    at the root; barriers, groups: inside of loops. wavering: the branches that serial loops hold.
    """

    spans: Spans
    wanted: Wanted
    stored: frozenset[Buffer]
    dims: tuple[Dim, ...] = ()
    found: list[Access] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    name: str = ""
    loops: tuple[For, ...] = ()
    positions: tuple[int, ...] = ()
    given: tuple[Expr, ...] = ()
    beside: frozenset[Expr] = frozenset()  # those of `given` in the expression of the access
    scopes: dict[Buffer, tuple[For, ...]] = field(default_factory=dict)
    count: int = 0
    root: int = -1
    segment: int = 0
    threads: bool = False
    branches: Branches = ()
    extents: dict[tuple[int, str], int] = field(default_factory=dict)
    barriers: list[BarrierAt] = field(default_factory=list)
    groups: list[GroupAt] = field(default_factory=list)
    wavering: set[If] = field(default_factory=set)
    _kept: Kept = field(default_factory=dict)
    _missing: frozenset[str] = _NONE  # axes with several threads and no loop around
    _first: frozenset[str] = _NONE  # those along which the first thread is alone
    _together: frozenset[str] = _NONE  # those along which threads load for each other
    _runners: dict[Access, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)
    _known: dict[Expr, tuple[Cases, bool, tuple[Expr, ...]]] = field(default_factory=dict)
    _seen: set[object] = field(default_factory=set)

    def visit(self, stmt: Stmt, at_root: bool = False) -> None:
        """Walk through a statement; at_root: it stands at the root of the function."""
        match stmt:
            case Seq():
                for child in stmt.body:
                    self.visit(child, at_root)
            case Alloc():
                self.scopes[stmt.buffer] = self.loops
                self.visit(stmt.body, at_root)
            case Barrier():
                self.segment += at_root
                if not at_root:
                    self.barriers.append(self._here())
            case Commit():
                self.groups.append(GroupAt(self.root, stmt, self._here()))
            case Prefetch():
                pass
            case _:
                if at_root:
                    self.root += 1
                    self.threads = isinstance(stmt, For) and stmt.kind in SHARED_OUT
                    self._gather(stmt)
                self._enter(stmt)

    def threads_of(self, access: Access) -> Threads:
        """Which threads of its block an access is of."""
        first, together = self._runners[access]
        loops = {loop.axis: loop for loop in access.statement.loops if loop.axis}
        return tuple(
            None
            if axis in together
            else variable(loops[axis].var)
            if axis in loops
            else Affine()
            if axis in first
            else None
            for axis in THREAD_AXES
        )

    def _here(self) -> BarrierAt:
        return BarrierAt(self.loops, self.branches, self._next())

    def _gather(self, root: Stmt) -> None:
        """Find the threads of the blocks of a statement at the root."""
        for loop in statements(root):
            if isinstance(loop, For) and loop.is_of_threads:
                key = self.root, loop.axis
                self.extents[key] = max(self.extents.get(key, 1), loop.extent)
        self._missing = frozenset(
            axis for axis in THREAD_AXES if self.extents.get((self.root, axis), 1) > 1
        )
        self._kept = kept_by_all(root) if self._missing else {}

    def _enter(self, stmt: Stmt) -> None:
        before = self._missing, self._first
        if self._missing and (first := done_by_first(stmt, self._missing, self._kept)):
            self._missing, self._first = _NONE, first
        self._run(stmt)
        self._missing, self._first = before

    def _run(self, stmt: Stmt) -> None:
        """A statement of the threads that are known by now."""
        match stmt:
            case For():
                self._missing -= {stmt.axis}
                self._inside(stmt, lambda: self.visit(stmt.body))
            case If():
                self._reads(stmt.condition, "a condition")
                if any(not loop.axis for loop in self.loops):
                    self.wavering.add(stmt)
                self._under(stmt.condition, lambda: self.visit(stmt.then), (stmt, True))
                if stmt.orelse is not None:
                    orelse = stmt.orelse
                    fails = Not(stmt.condition)
                    self._under(fails, lambda: self.visit(orelse), (stmt, False))
            case LetStmt():
                self._reads(stmt.value, stmt.var.name)
                self.visit(stmt.body)
            case Store():
                self._store(stmt)
            case WarpSum():
                for factor in (stmt.a, stmt.b):
                    self._together = _NONE if factor.how is Held.ELEMENTS else _WARP
                    for item in loads_of(factor):
                        self._reads(item, stmt.intrinsic)
                self._together = _NONE
                for store in stmt.sums:
                    self._store(store)
            case Extern():
                self._extern(stmt)
            case _:
                raise Undecided(f"a {type(stmt).__name__} stands in lowered code")

    def _inside(self, loop: For, walk: Callable[[], None]) -> None:
        before = self.loops, self.positions
        self.loops = (*self.loops, loop)
        self.positions = (*self.positions, self._next())
        walk()
        self.loops, self.positions = before

    def _under(self, item: Expr, walk: Callable[[], None], branch: tuple[If, bool]) -> None:
        before = self.given, self.branches
        self.given, self.branches = (*self.given, item), (*self.branches, branch)
        walk()
        self.given, self.branches = before

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _store(self, store: Store) -> None:
        for item in (*store.indices, store.value, store.mask):
            if item is not None:
                self._reads(item, store.buffer.name)
        if self.wanted(store):
            self.name = store.buffer.name
            self._add(store, store.mask)

    def _extern(self, call: Extern) -> None:
        """A C function touches every element of its tensors."""
        self.name = call.function.symbol
        axes: list[IterVar] = []
        for child in call.children():
            if isinstance(child, IterVar):
                axes.append(child)
            elif isinstance(child, Load | Store):
                self._whole(child, axes[-len(child.indices) :] if child.indices else [])

    def _whole(self, item: Load | Store, axes: list[IterVar]) -> None:
        if not axes:
            if self.wanted(item):
                self._add(item, None)
            return
        loop = For(axes[0].var, axes[0].extent, ForKind.SERIAL, Seq(()))
        self._inside(loop, lambda: self._whole(item, axes[1:]))

    # -- expressions

    def _reads(self, expr: Expr, name: str) -> None:
        """What an expression loads, for what is called `name`."""
        self.name = name
        if any(self.wanted(load) for load in found_in(expr, Load)):
            self._loads(expr, ())

    def _loads(self, node: Node, more: tuple[Expr, ...]) -> None:
        match node:
            case Select(chosen, on_true, on_false) if chosen.dtype.lanes == 1:
                self._loads(chosen, more)
                self._loads(on_true, (*more, chosen))
                self._loads(on_false, (*more, Not(chosen)))
                return
            case And(a, b) | Or(a, b) if a.dtype.lanes == 1:
                self._loads(a, more)
                self._loads(b, (*more, a if isinstance(node, And) else Not(a)))
                return
            case Let(var, value, body):
                self._loads(value, more)
                self.spans.name(var, value)
                self._loads(body, more)
                return
            case Load() if self.wanted(node):
                before = self.given
                self.given, self.beside = (*before, *more), frozenset(more)
                self._add(node, node.mask)
                self.given, self.beside = before, frozenset()
        for child in node.children():
            self._loads(child, more)

    def _add(self, item: Load | Store, mask: Expr | None) -> None:
        try:
            self.found += self._access(item, mask)
        except Undecided as undecided:
            verb = "store to" if isinstance(item, Store) else "load of"
            self.undecided.append(f"the {verb} '{item.buffer.name}': {undecided}")

    def _access(self, item: Load | Store, mask: Expr | None) -> list[Access]:
        """The access, unless it is a known one or its conditions never hold. Raises: Undecided."""
        if item.buffer not in self.scopes:
            raise Undecided(f"buffer '{item.buffer.name}' is used outside its Alloc")
        given = self.given if mask is None else (*self.given, mask)
        place = self.loops, self.root, len(self.barriers), len(self.groups)
        runners = self._first, self._together
        key = type(item), item.buffer, item.indices, given, place, runners
        if key in self._seen:
            return []
        self._seen.add(key)
        lanes = max((i.dtype.lanes for i in item.indices), default=1)
        loops, positions = self.loops, (*self.positions, self._next())
        if lanes > 1:
            loops, positions = (*loops, lane_loop(lanes)), (*positions, self._next())
            self.spans.ranges[lane_loop(lanes).var] = (0, lanes - 1)
        indices = tuple(in_lane(i, self.spans.values) for i in item.indices)
        where, exact, kept = self._cases(given, item.indices)
        if not where:
            return []
        statement = self._statement(item, loops, positions, where)
        if any(low > high for low, high in statement.ranges.values()):
            return []
        found = access(
            statement,
            item.buffer,
            indices,
            where,
            write=isinstance(item, Store),
            exact=exact,
            given=kept,
        )
        self._runners[found] = runners
        return [found]

    def _cases(
        self, given: tuple[Expr, ...], indices: tuple[Expr, ...]
    ) -> tuple[Cases, bool, tuple[Expr, ...]]:
        """Where conditions hold, those of data left out; whether there are none of these; and those
        of them that say something of an access with these indices.
        """
        found, exact = ALWAYS, True
        kept: tuple[Expr, ...] = ()
        for item in given:
            if item not in self._known:
                self._known[item] = self._case(item)
            holds, whole, of_data = self._known[item]
            found, exact = both(found, holds), exact and whole
            counts = item in self.beside and self._is_same_data(item, *indices)
            kept += tuple(part for part in of_data if counts or self._is_kept(part))
        return found, exact, kept

    def _case(self, item: Expr) -> tuple[Cases, bool, tuple[Expr, ...]]:
        """Where a condition holds, whether that is all that it says, and what it says of data."""
        found, exact = ALWAYS, True
        of_data: list[Expr] = []
        for whole in conjuncts(item):
            if size_in_lane(whole, self.spans.values) > LONGEST:
                exact = False
                continue
            for part in conjuncts(in_lane(whole, self.spans.values)):
                try:
                    holds = condition(part, self.spans.env, self.spans.ranges)
                except Undecided:
                    exact = False
                    of_data.append(part)
                else:
                    found = both(found, holds)
        return found, exact, tuple(of_data)

    def _is_same_data(self, *parts: Expr) -> bool:
        """Whether parts of one expression that load the same have the same values: each is loaded
        there, or all of them are what one variable was named before.
        """
        found = frozenset[Var]().union(*map(free_vars, parts))
        names = found & self.spans.values.keys()
        return not names or (len(names) == 1 and all(map(self._is_kept, parts)))

    def _is_kept(self, expr: Expr) -> bool:
        """Whether what an expression reads is the same wherever it is read."""
        return all(load.buffer not in self.stored for load in found_in(expr, Load))

    def _statement(
        self, item: Load | Store, loops: tuple[For, ...], positions: tuple[int, ...], where: Cases
    ) -> Statement:
        ranges = narrowed(self.spans.ranges, where)
        store = item if isinstance(item, Store) else _NOTHING_STORED
        return Statement(
            self.name,
            "",
            Role.COMPUTE,
            Block(self.name, (), (), store),
            store,
            loops,
            positions,
            where,
            self.spans.env,
            (),
            self.root,
            self.segment,
            self.threads,
            {var: ranges[var] for var in (*self.dims, *(loop.var for loop in loops))},
            self.scopes,
            self.dims,
            self.branches,
        )


def loads_of(factor: Fragment) -> tuple[Load, ...]:
    """What a thread of a warp loads for its part of a factor: the row where it points at one."""
    if factor.how is Held.ELEMENTS:
        return factor.loads
    (first,) = factor.loads
    count = ROW_BYTES // first.buffer.type.bytes
    return (replace(first, indices=(*first.indices[:-1], Ramp(first.indices[-1], 1, count))),)
