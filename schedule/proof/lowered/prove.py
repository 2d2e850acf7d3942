"""prove_lowered: does lowered code stay inside of its buffers, and do its threads keep out of each
other's way? P4 and P5 once more, of what a back end writes.

Passes behind the proof of the nest drop masks, fold conditions, move loads, name values and place
barriers anew. Plain arithmetic answers for nearly all accesses; integer sets are asked of the rest,
each with the conditions under which it happens. Threads of one block of a grid are asked about with
the barriers that stand between them now (team_races.py), copies that go on with the waits for them
(running_copies.py).

Not proved of lowered code: which values threads exchange in registers, and that all threads of a
warp come to an instruction that they run together. Whether a value is right is for the check of the
kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import islpy as isl

from ....tir.buffer import Buffer, Load
from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import SHARED_OUT, Alloc, Barrier, Extern, For, Seq, Stmt, Store, WarpSum
from ....tir.visit import loads, statements, stores
from ...verdict import PROVED, REFUTED, UNKNOWN, Failure, Verdict
from ..bounds import beyond, shape_text
from ..forms.affine import Undecided
from ..forms.budget import Budget, used_up
from ..forms.nest import Access
from ..races import AT_ONCE, conflicts_of_loops, conflicts_of_roots
from ..relations.sets import Sets
from ..relations.witness import Finding, element_text, iteration
from .blocks import blocks_keep_apart
from .cells import CellTable
from .running_copies import check_copies
from .shares import unshared
from .spans import Spans
from .team_races import LoweredTeam, check_team
from .touches import Touches, Wanted, loads_of

MAX_OPERATIONS = 500_000  # of isl, for both properties
MAX_RELATIONS = 2_000  # likewise
GRID = 6  # times as many of both for a function of a grid, which rarely runs where it is built


def prove_lowered(func: PrimFunc, max_operations: int | None = None) -> Verdict:
    """Prove P4 and P5 of a function of stage LOWERED.

    "refuted" comes with concrete iterations, in which `lane` is that of a vector; "unknown" names
    the access and says why, or that isl would take more than `max_operations`, by default
    MAX_OPERATIONS, or that it would take too many relations.
    """
    started = time.perf_counter()
    proof = _Proof(func, max_operations)
    proof.run("P4", proof.bounds)
    proof.run("P5", proof.races)
    return proof.verdict((time.perf_counter() - started) * 1e3)


class _Proof:
    """What was found so far."""

    def __init__(self, func: PrimFunc, max_operations: int | None) -> None:
        scale = GRID if any(s.is_of_threads for s in _loops(func.body)) else 1
        self._func = func
        self._spans = Spans(func)
        self._most = scale * MAX_OPERATIONS if max_operations is None else max_operations
        self._budget = Budget(scale * MAX_RELATIONS)
        self._sets: Sets | None = None
        self._failures: list[Failure] = []
        self._reasons: list[str] = []

    @property
    def sets(self) -> Sets:
        """Made when first asked: most functions need none."""
        if self._sets is None:
            func = self._func
            self._sets = Sets(self._most, func.dims, func.facts, budget=self._budget)
        return self._sets

    def run(self, name: str, check: Callable[[], Iterable[Finding]]) -> None:
        """Check one property, with what the other left of the operations."""
        try:
            for finding in check():
                if finding.sure:
                    self._failures.append(finding.failure)
                else:
                    self._reasons.append(f"it may be that {finding.failure}")
        except Undecided as undecided:
            self._reasons.append(f"{name} of '{self._func.name}', lowered: {undecided}")
        except isl.Error as error:
            why = used_up(error, self._most)
            self._reasons.append(f"{name} of '{self._func.name}', lowered: {why}")

    def verdict(self, milliseconds: float) -> Verdict:
        """All findings as one value."""
        status = REFUTED if self._failures else UNKNOWN if self._reasons else PROVED
        return Verdict(
            status,
            tuple(dict.fromkeys(self._failures)),
            reasons=tuple(dict.fromkeys(self._reasons)),
            milliseconds=milliseconds,
            operations=0 if self._sets is None else self._sets.questions,
        )

    # -- P4

    def bounds(self) -> Iterator[Finding]:
        """Accesses outside of their buffers."""
        body, spans = self._func.body, self._spans
        touched: tuple[Load | Store, ...] = (*loads(body), *stores(body), *_rows(body))
        left = {(item.buffer, item.indices) for item in touched if not spans.is_inside(item)}
        if not left:
            return
        for access in self._walk(lambda item: (item.buffer, item.indices) in left, "P4").found:
            at = beyond(self.sets, access)
            if at is None:
                continue
            element = element_text(access.buffer.name, access.indices, at)
            verb = "stores to" if access.write else "loads"
            message = (
                f"'{self._func.name}', lowered, {verb} {element}; "
                f"'{access.buffer.name}' has shape [{shape_text(access.buffer)}]"
            )
            where = iteration(access.statement, at)
            yield Finding(Failure("P4", message, (where,), element), access.exact)

    # -- P5

    def races(self) -> Iterator[Finding]:
        """Conflicts of iterations that run at once, or of statements that no barrier parts."""
        parts = tuple(_root_statements(self._func.body))
        meeting = _meeting(parts)
        shared = {b for _, part in parts for b in self._shared(part, frozenset())}
        of_teams = {b for _, part in parts for b in _of_teams(part)}
        open_ones = meeting | shared | of_teams
        if not open_ones:
            return
        walk = self._walk(lambda item: item.buffer in open_ones, "P5")
        by_buffer: dict[Buffer, list[Access]] = {}
        for access in walk.found:
            by_buffer.setdefault(access.buffer, []).append(access)
        for buffer, accesses in by_buffer.items():
            if buffer in shared and not blocks_keep_apart(accesses):
                yield from conflicts_of_loops(self.sets, accesses)
            if buffer in meeting:
                yield from conflicts_of_roots(self.sets, accesses)
            if buffer in of_teams:
                table = CellTable(LoweredTeam(walk))
                yield from check_team(lambda: self.sets, walk, table, accesses)
                yield from check_copies(lambda: self.sets, walk, table, accesses)

    def _shared(self, stmt: Stmt, around: frozenset[Var]) -> Iterator[Buffer]:
        """The buffers of which it is not plain that iterations which run at once keep apart."""
        if isinstance(stmt, For):
            if stmt.kind in AT_ONCE and not stmt.is_of_threads and stmt.extent > 1:
                yield from unshared(stmt, around, self._spans)
            around = around | {stmt.var}
        for child in stmt.children():
            if isinstance(child, Stmt) and not isinstance(child, Store | Extern):
                yield from self._shared(child, around)

    def _walk(self, wanted: Wanted, name: str) -> Touches:
        stored = frozenset(store.buffer for store in stores(self._func.body))
        walk = Touches(self._spans, wanted, stored, self._func.dims)
        walk.scopes = {parameter.buffer: () for parameter in self._func.parameters}
        walk.visit(self._func.body, True)
        self._reasons += [
            f"{name} of '{self._func.name}', lowered: {reason}" for reason in walk.undecided
        ]
        return walk


def _of_teams(part: Stmt) -> set[Buffer]:
    """The buffers that several threads of a block share and one of them writes."""
    if not any(loop.is_of_threads and loop.extent > 1 for loop in _loops(part)):
        return set()
    return {store.buffer for store in stores(part) if not store.buffer.is_private}


def _rows(body: Stmt) -> Iterator[Load]:
    """What the warps of a function load by rows."""
    for stmt in statements(body):
        if isinstance(stmt, WarpSum):
            yield from (*loads_of(stmt.a), *loads_of(stmt.b))


def _loops(body: Stmt) -> Iterator[For]:
    return (stmt for stmt in statements(body) if isinstance(stmt, For))


def _root_statements(body: Stmt) -> Iterator[tuple[int, Stmt]]:
    """The statements at the root, each with the number of barriers before it."""
    segment = 0
    for stmt in _flat(body):
        if isinstance(stmt, Barrier):
            segment += 1
        else:
            yield segment, stmt


def _flat(stmt: Stmt) -> Iterator[Stmt]:
    match stmt:
        case Seq():
            for child in stmt.body:
                yield from _flat(child)
        case Alloc():
            yield from _flat(stmt.body)
        case _:
            yield stmt


def _meeting(parts: Iterable[tuple[int, Stmt]]) -> set[Buffer]:
    """The buffers that two statements touch, one of them writing, one of them run by all threads,
    where no barrier stands between the two or each thread has a buffer of its own.
    """
    found: set[Buffer] = set()
    earlier: dict[Buffer, list[tuple[int, bool, bool]]] = {}
    for segment, part in parts:
        threads = isinstance(part, For) and part.kind in SHARED_OUT
        written = {store.buffer for store in stores(part)}
        for buffer in {load.buffer for load in loads(part)} | written:
            mine = segment, buffer in written, threads
            for other in earlier.setdefault(buffer, []):
                near = other[0] == segment or buffer.scope != "global"
                if near and (mine[1] or other[1]) and (mine[2] or other[2]):
                    found.add(buffer)
            earlier[buffer].append(mine)
    return found
