"""P2, flow: the last write that reaches each read set the logical element that the read expects.

Per physical buffer, isl computes for each read of a cell the last write before it (exact array
dataflow). Writes carry the element that they set: a block's own, or, for a copy, the one that it
moves, so copies are looked through. A read that nothing reaches is uninitialised. Inputs hold their
own elements from the start; outputs are read at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from ...tir.buffer import Buffer, Load
from ...tir.dim import Dim
from ...tir.expr import TRUE, Var
from ...tir.stmt import NOTHING, Block, For, ForKind, Parameter, Store, elements_of
from ..verdict import Failure
from .forms.affine import variable
from .forms.condition import ALWAYS, Cases, both, differ, inside
from .forms.families import Families
from .forms.nest import Access, Nest
from .forms.statements import plain_statement
from .relations.pairing import Pairs, Tagged
from .relations.sets import Sets
from .relations.shortcuts import all_implied, earlier_run, same_cell_same_element
from .relations.witness import Finding, element_text, iteration, runs_of

LAST = 1 << 40
END = "the end of the function"


@dataclass(frozen=True, slots=True)
class Reach:
    """For a read: which write reaches it at which runs (runs of `write` -> runs of `read`)."""

    write: Tagged
    read: Tagged
    runs: isl.Map


@dataclass(frozen=True, slots=True)
class Reaching:
    """The dataflow of one buffer; unwritten: the runs of reads that no write reaches."""

    reaches: tuple[Reach, ...]
    unwritten: tuple[tuple[Tagged, isl.Set], ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """What P2 found, and what P3 goes on with: the writes to each buffer, the reads of outputs at
    the end.
    """

    findings: tuple[Finding, ...]
    writes: Mapping[Buffer, Sequence[Tagged]]
    ends: tuple[Tagged, ...]


def boundary(parameter: Parameter, tensor: str, dims: tuple[Dim, ...], *, end: bool) -> Tagged:
    """An access to each element of a parameter at the start of the function, or at its end."""
    buffer = parameter.buffer
    loops = tuple(
        For(Var(f"i{axis}"), extent, ForKind.SERIAL, NOTHING)
        for axis, extent in enumerate(buffer.shape)
    )
    at = tuple(loop.var for loop in loops)
    forms = tuple(variable(var) for var in at)
    store = Store(buffer, at, Load(buffer, at))
    name = END if end else "the start of the function"
    iters = elements_of(buffer, [Var(var.name) for var in at])
    block = Block(name, iters, at, store, None, TRUE)
    statement = plain_statement(name, block, loops, dims, LAST if end else 0)
    where = inside(forms, buffer.extents, statement.ranges)
    access = Access(statement, buffer, forms, where, (), not end)
    return Tagged(access, tensor, forms)


def check_flow(sets: Sets, nest: Nest, pairs: Pairs, families: Families) -> Flow:
    """Check P2 for every buffer of the nest."""
    findings: list[Finding] = []
    ends: list[Tagged] = []
    parameters = {p.buffer: p for p in nest.func.parameters}
    writes: dict[Buffer, list[Tagged]] = {}
    reads: dict[Buffer, list[Tagged]] = {}
    for tagged in pairs.writes:
        writes.setdefault(tagged.access.buffer, []).append(tagged)
    for tagged in pairs.reads:
        reads.setdefault(tagged.access.buffer, []).append(tagged)
    for buffer, parameter in parameters.items():
        if parameter.role == "output" and buffer.size:
            result = families.results.get(parameter.name, "")
            last = boundary(parameter, result, sets.dims, end=True)
            ends.append(last)
            reads.setdefault(buffer, []).append(last)
        elif parameter.role != "output" and buffer in writes:
            writes[buffer].append(boundary(parameter, parameter.name, sets.dims, end=False))
    for buffer, wanted in reads.items():
        if buffer in writes:
            findings += _written(sets, writes[buffer], wanted)
        elif buffer in parameters and parameters[buffer].role != "output":
            findings += _only_read(sets, parameters[buffer], wanted)
        else:
            findings += _never_written(sets, wanted)
    return Flow(tuple(findings), writes, tuple(ends))


def _only_read(sets: Sets, parameter: Parameter, reads: Iterable[Tagged]) -> Iterable[Finding]:
    """An input that nobody writes holds its own elements: indices must be the expected ones."""
    for read in reads:
        statement = read.statement
        wrong: Cases = read.access.where
        if read.tensor == parameter.name:
            apart = differ(read.access.indices, read.element, statement.ranges)
            wrong = both(wrong, apart)
        if not wrong:
            continue
        runs = sets.domain(statement, wrong)
        if not sets.empty(runs):
            (at,) = runs_of(runs, statement)
            needed = element_text(read.tensor, read.element, at)
            found = element_text(parameter.name, read.access.indices, at)
            message = f"block '{statement.name}' needs {needed}, but reads {found}"
            failure = Failure("P2", message, (iteration(statement, at),), needed)
            yield Finding(failure, read.access.exact)


def _never_written(sets: Sets, reads: Iterable[Tagged]) -> Iterable[Finding]:
    for read in reads:
        statement = read.statement
        runs = sets.domain(statement, read.access.where)
        if not sets.empty(runs):
            yield _uninitialised(read, runs)


def _uninitialised(read: Tagged, runs: isl.Set) -> Finding:
    statement = read.statement
    (at,) = runs_of(runs, statement)
    needed = element_text(read.tensor, read.element, at)
    cell = element_text(read.access.buffer.name, read.access.indices, at)
    if statement.name == END:
        return Finding(Failure("P2", f"nothing is ever stored to {cell}", (), needed))
    message = f"block '{statement.name}' needs {needed}, but nothing was stored to {cell} before"
    failure = Failure("P2", message, (iteration(statement, at),), needed)
    return Finding(failure, read.access.exact)


def _written(sets: Sets, writes: Sequence[Tagged], reads: Sequence[Tagged]) -> list[Finding]:
    """What is wrong in the dataflow of one buffer; isl looks at the reads that are not plainly
    right.
    """
    if sets.shortcuts:
        reads = [read for read in reads if not shown(sets, writes, read)]
    if not reads:
        return []
    found = reaching(sets, writes, reads)
    wrong = (_wrong_element(sets, reach.write, reach.read, reach.runs) for reach in found.reaches)
    return [
        *(_uninitialised(read, runs) for read, runs in found.unwritten),
        *(finding for finding in wrong if finding is not None),
    ]


def reaching(sets: Sets, writes: Sequence[Tagged], reads: Sequence[Tagged]) -> Reaching:
    """Exact dataflow of one buffer: the last write before each read of a cell.

    It is the latest of the times at which writes set the cell. isl's own dataflow is not asked: of
    two writes in one iteration, where only the first recurs, it named the first (islpy 2026.2.2).
    """
    depth = max(len(t.statement.loops) for t in (*writes, *reads))
    times = {f"W{n}": sets.time(t.statement, f"W{n}", depth, 1) for n, t in enumerate(writes)}
    stored = [_cells(sets, t, f"W{n}").reverse() for n, t in enumerate(writes)]
    set_at = _union([cells.apply_range(times[f"W{n}"]) for n, cells in enumerate(stored)])
    reaches, unwritten = [], []
    for n, read in enumerate(reads):
        cells = _cells(sets, read, f"R{n}")
        now = sets.time(read.statement, f"R{n}", depth, 0)
        before = now.apply_range(isl.Map.lex_gt(now.get_space().range()))
        last = cells.apply_range(set_at).intersect(before).lexmax()
        lost = cells.domain().subtract(last.domain())
        if not sets.empty(lost):
            unwritten.append((read, lost))
        for number, write in enumerate(writes):
            runs = times[f"W{number}"].apply_range(last.reverse())
            if not sets.empty(runs):
                reaches.append(Reach(write, read, runs))
    return Reaching(tuple(reaches), tuple(unwritten))


def _cells(sets: Sets, tagged: Tagged, name: str) -> isl.Map:
    """The cell that each run accesses."""
    return sets.image(tagged.statement, tagged.access.where, tagged.access.cell, name, "B")


def _union(maps: Sequence[isl.Map]) -> isl.Map:
    result = maps[0]
    for other in maps[1:]:
        result = result.union(other)
    return result


def shown(sets: Sets, writes: Sequence[Tagged], read: Tagged) -> bool:
    """Whether it is plain that each run of `read` finds its element.

    A write is right when sharing a cell with the read means setting the element that it expects. It
    is enough that some right write comes before each run of the read, and that each of the others
    either never comes before the read, or never after a right one: then the last write before the
    read is right.
    """
    right: list[Tagged] = []
    wrong: list[Tagged] = []
    for write in writes:
        (right if same_cell_same_element(write, read) else wrong).append(write)
    if not _written_before(sets, right, read):
        return False
    return all(
        not sets.may_precede(write, read) or not any(sets.may_precede(w, write) for w in right)
        for write in wrong
    )


def _written_before(sets: Sets, right: Sequence[Tagged], read: Tagged) -> bool:
    """Whether each run of `read` has a run of one of the writes before it that sets its cell."""
    statement = read.statement
    covered = None
    for write in reversed(right):
        earlier = earlier_run(write, read)
        if earlier is None:
            continue
        if all_implied(read.access.where, earlier, statement.ranges):
            return True
        runs = sets.domain(statement, both(read.access.where, earlier))
        covered = runs if covered is None else covered.union(runs)
    if covered is None:
        return False
    sets.questions += 1
    return bool(sets.domain(statement, read.access.where).is_subset(covered))


def _wrong_element(sets: Sets, write: Tagged, read: Tagged, runs: isl.Map) -> Finding | None:
    """A run of `write` that reaches one of `read`, which expects another element."""
    runs = sets.unnamed(runs)
    if write.tensor == read.tensor:
        equal = tuple(zip(write.element, read.element, strict=True))
        runs = runs.subtract(sets.pairs(write.statement, ALWAYS, read.statement, ALWAYS, equal))
    if sets.empty(runs):
        return None
    wrote, at = runs_of(runs, write.statement, read.statement)
    needed = element_text(read.tensor, read.element, at)
    found = element_text(write.tensor, write.element, wrote)
    end = read.statement.name == END
    reader = "at the end" if end else f"block '{read.statement.name}' needs {needed}, but"
    cell = element_text(read.access.buffer.name, read.access.indices, at)
    message = f"{reader} {cell} holds {found}"
    both_runs = (iteration(write.statement, wrote), iteration(read.statement, at))
    return Finding(Failure("P2", message, both_runs[: 1 if end else 2], needed), read.access.exact)
