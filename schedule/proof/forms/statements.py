"""The nest as the proof sees it: each Store of a block is a statement with its loops, its domain,
its place in time.

- A statement runs for each point of its loops at which its conditions hold: those of the If
  statements around it, the block's predicate and the store's mask.
- The stores of one block share a position: all their loads come before all their writes.
- Its time is position, loop, position, loop, ..., position: positions number loops and stores in
  the order of the text, so comparing times from the left says which of two runs comes first. Within
  one run the loads come before the store.
- A buffer has fresh storage in each iteration of the loops around its Alloc; a cell is those loops'
  values and the physical indices. Two tensors that share storage mention one buffer and so the same
  cells.
- A load at an index that depends on data may be of any element that the index can name: it is as if
  one more loop, innermost, ran through them, as far as the dims of this call let it. A C function
  loads each element of its inputs so.
- A block whose init stands inside gets a second statement, which runs where every loop that no
  spatial binding mentions is at 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ....tir.buffer import Buffer, Load
from ....tir.conditions import conjuncts
from ....tir.dim import Dim
from ....tir.expr import Const, Expr, Not, Select, Var, add, index
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import (
    NOTHING,
    SHARED_OUT,
    Alloc,
    Barrier,
    Block,
    Commit,
    For,
    ForKind,
    If,
    IterKind,
    LetStmt,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
)
from ....tir.visit import loads
from .affine import Affine, Undecided, affine, variable
from .condition import ALWAYS, Cases, Constraint, at_least, both, condition, negated
from .data import Each, ceilings, data_of, datum_interval, without_data
from .externs import without_externs
from .nest import Access, BarrierAt, Branches, Nest, Statement


@dataclass(slots=True)
class _Walk:
    """The state of one walk over a function's text; what holds inside a subtree is put
    back after it.
    """

    dims: tuple[Dim, ...] = ()
    loops: tuple[For, ...] = ()
    positions: tuple[int, ...] = ()
    domain: Cases = ALWAYS
    env: dict[Var, Affine] = field(default_factory=dict)
    count: int = 0
    root: int = -1
    segment: int = 0
    threads: bool = False
    ranges: dict[Var, tuple[int, int]] = field(default_factory=dict)
    scopes: dict[Buffer, tuple[For, ...]] = field(default_factory=dict)
    allocated: set[Buffer] = field(default_factory=set)
    branches: Branches = ()
    barriers: list[BarrierAt] = field(default_factory=list)
    found: list[Statement] = field(default_factory=list)

    def visit(self, stmt: Stmt, at_root: bool) -> None:
        match stmt:
            case Seq():
                for child in stmt.body:
                    self.visit(child, at_root)
                return
            case Alloc():
                if stmt.buffer in self.allocated:
                    raise Undecided(f"buffer '{stmt.buffer.name}' is allocated twice")
                self.allocated.add(stmt.buffer)
                outer = self.scopes
                self.scopes = {**outer, stmt.buffer: self.loops}
                self.visit(stmt.body, at_root)
                self.scopes = outer
                return
            case Barrier():
                if at_root:
                    self.segment += 1
                else:
                    self.barriers.append(BarrierAt(self.loops, self.branches, self.next()))
                return
            case Prefetch() | Commit():
                return
        if at_root:
            self.root += 1
            self.threads = isinstance(stmt, For) and stmt.kind in SHARED_OUT
        self.enter(stmt)

    def enter(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                before = self.loops, self.positions
                self.loops = (*self.loops, stmt)
                self.ranges[stmt.var] = (0, stmt.extent - 1)
                self.positions = (*self.positions, self.next())
                self.visit(stmt.body, False)
                self.loops, self.positions = before
            case If():
                outer, ranges = self.domain, self.ranges
                holds = condition(stmt.condition, self.env, ranges)
                self.domain = both(outer, holds)
                self.ranges = narrowed(ranges, holds)
                around = self.branches
                self.branches = (*around, (stmt, True))
                self.visit(stmt.then, False)
                if stmt.orelse is not None:
                    fails = negated(holds, ranges)
                    self.domain = both(outer, fails)
                    self.ranges = narrowed(ranges, fails)
                    self.branches = (*around, (stmt, False))
                    self.visit(stmt.orelse, False)
                self.domain, self.ranges, self.branches = outer, ranges, around
            case LetStmt():
                self.env[stmt.var] = affine(stmt.value, self.env, self.ranges)
                self.visit(stmt.body, False)
            case Block():
                self.block(stmt)
            case _:
                raise Undecided(f"a {type(stmt).__name__} stands outside of a block")

    def next(self) -> int:
        self.count += 1
        return self.count

    def block(self, block: Block) -> None:
        ranges = self.ranges
        point = tuple(affine(binding, self.env, ranges) for binding in block.bindings)
        limits = both(
            *(
                at_least(variable(it.dim) - form.plus(1), ranges)
                for form, it in zip(point, block.iters, strict=True)
                if it.dim is not None
            )
        )
        env = {**self.env, **{it.var: form for it, form in zip(block.iters, point, strict=True)}}
        domain = both(self.domain, limits, condition(block.predicate, env, ranges))
        counted = both(domain, condition(block.counts, env, ranges))
        if block.init is not None:
            spatial = tuple(
                f for f, it in zip(point, block.iters, strict=True) if it.kind is IterKind.SPATIAL
            )
            used = {var for form in spatial for var in form.variables()}
            start = tuple(
                Constraint(variable(loop.var), equality=True)
                for loop in self.loops
                if loop.var not in used
            )
            position = self.next()
            for store in _stores_of(block.init):
                self.add(block, store, position, Role.INIT, both(domain, (start,)), env, spatial)
        position = self.next()
        for store in _stores_of(block.body):
            self.add(block, store, position, block.role, counted, env, point)

    def add(
        self,
        block: Block,
        store: Store,
        position: int,
        role: Role,
        domain: Cases,
        env: Mapping[Var, Affine],
        point: tuple[Affine, ...],
    ) -> None:
        if store.mask is not None:
            domain = both(domain, condition(store.mask, env, self.ranges))
        ranges = narrowed(self.ranges, domain)
        self.found.append(
            Statement(
                block.name,
                block.family or block.name,
                role,
                block,
                store,
                self.loops,
                (*self.positions, position),
                domain,
                env,
                point,
                self.root,
                self.segment,
                self.threads,
                {var: ranges[var] for var in (*self.dims, *(loop.var for loop in self.loops))},
                self.scopes,
                self.dims,
                self.branches,
            )
        )


def narrowed(ranges: dict[Var, tuple[int, int]], domain: Cases) -> dict[Var, tuple[int, int]]:
    """The ranges as far as the bounds on single variables, of a domain of one case, narrow them."""
    if len(domain) != 1:
        return ranges
    result = dict(ranges)
    for constraint in domain[0]:
        form = constraint.form
        if len(form.terms) != 1 or not isinstance(form.terms[0][0], Var):
            continue
        ((var, factor),) = form.terms
        assert isinstance(var, Var)
        low, high = result[var]
        if factor > 0:  # factor * var + constant >= 0
            low = max(low, -(form.constant // factor))
        if factor < 0 or constraint.equality:
            high = min(high, form.constant // -factor)
        result[var] = (low, high)
    return result


def _stores_of(body: Stmt) -> Iterator[Store]:
    if isinstance(body, Seq):
        for stmt in body.body:
            yield from _stores_of(stmt)
    elif isinstance(body, Store):
        yield body
    else:
        raise Undecided(f"a block's body holds a {type(body).__name__}")


def read_nest(func: PrimFunc, families: Collection[str] | None = None) -> Nest:
    """The statements and accesses of a function at stage NEST (or earlier); families: those of the
    blocks whose accesses are wanted, of all where nothing is said.

    Raises: Undecided for what integer sets cannot express: conditions or indices that depend on
    data.
    """
    walk = _Walk(
        dims=func.dims,
        ranges={dim: (dim.low, dim.high) for dim in func.dims},
        scopes={p.buffer: () for p in func.parameters},
    )
    walk.visit(without_externs(func).body, True)
    statements = tuple(s for s in walk.found if s.domain and _runs(s))
    wanted = (s for s in statements if families is None or s.family in families)
    accesses = tuple(a for s in wanted for a in accesses_of(s))
    return Nest(func, statements, accesses, tuple(walk.barriers))


def _runs(statement: Statement) -> bool:
    return all(low <= high for low, high in statement.ranges.values())


def accesses_of(statement: Statement) -> Iterator[Access]:
    """The loads of a statement in the order of the text, each once, then its store."""
    store = statement.store
    found = (
        found
        for item in (*store.indices, store.value)
        for found in _loads(item, statement, statement.domain, True, ())
    )
    for load, where, exact, given in dict.fromkeys(found):
        yield access(statement, load.buffer, load.indices, where, exact=exact, given=given)
    yield access(statement, store.buffer, store.indices, statement.domain, write=True)


def access(
    statement: Statement,
    buffer: Buffer,
    indices: tuple[Expr, ...],
    where: Cases,
    *,
    write: bool = False,
    exact: bool = True,
    given: tuple[Expr, ...] = (),
) -> Access:
    """An access of a statement. given: conditions of data that hold where it happens; those of the
    data of its indices narrow it. Raises: Undecided for an index that is not affine.
    """
    reader, values = statement, dict[Expr, Expr]()
    if not write:
        reader, values, within = reading(statement, buffer, indices)
        where = both(where, within, holding(given, reader, values))
    forms = tuple(affine(without_data(i, values), reader.env, reader.ranges) for i in indices)
    if buffer not in statement.scopes:
        raise Undecided(f"buffer '{buffer.name}' is used outside its Alloc")
    sure = exact and is_certain(values)
    return Access(reader, buffer, forms, where, statement.scopes[buffer], write, sure)


def reading(
    statement: Statement, buffer: Buffer, indices: tuple[Expr, ...]
) -> tuple[Statement, dict[Expr, Expr], Cases]:
    """The statement with one more loop for each datum of the indices at which it loads, what stands
    for the data there, and where dims let the data be it.

    Raises: Undecided for a datum that only its type bounds.
    """
    values: dict[Expr, Expr] = {}
    loops: list[For] = []
    ranges = dict(statement.ranges)
    within = ALWAYS
    for datum in data_of(indices, statement.env, statement.ranges):
        low, high = datum_interval(datum, statement.env, statement.ranges)
        values[datum] = index(low)
        if low == high:
            continue
        loop = For(Var(_name_of(datum)), high - low + 1, ForKind.SERIAL, NOTHING)
        loops.append(loop)
        ranges[loop.var] = (0, high - low)
        values[datum] = add(loop.var, index(low))
        for most in ceilings(datum, statement.env, statement.ranges):
            within = both(within, at_least(most - variable(loop.var).plus(low), ranges))
    if not loops:
        return statement, values, ALWAYS
    if buffer is statement.store.buffer:
        raise Undecided(f"block '{statement.name}' reads '{buffer.name}' at data while it sets it")
    last = statement.positions[-1]
    whole = (*statement.loops, *loops)
    positions = (*statement.positions, *(last for _ in loops))
    return replace(statement, loops=whole, positions=positions, ranges=ranges), values, within


def _name_of(datum: Expr) -> str:
    """What the loop is called that runs through the values of a datum."""
    if isinstance(datum, Each):
        return datum.name
    read = loads(datum)
    return read[0].buffer.name if read else "at"


def is_certain(values: Mapping[Expr, Expr]) -> bool:
    """Whether a load happens at all the values that stand for data of its indices."""
    return all(isinstance(datum, Each) or isinstance(v, Const) for datum, v in values.items())


def holding(given: tuple[Expr, ...], reader: Statement, values: Mapping[Expr, Expr]) -> Cases:
    """The cases in which conditions of data hold, as far as `values` stand for all their data."""
    found = ALWAYS
    for item in given:
        plain = without_data(item, values)
        cases = None if loads(plain) else index_condition(plain, reader)
        found = found if cases is None else both(found, cases)
    return found


def _loads(
    node: Node, statement: Statement, where: Cases, exact: bool, given: tuple[Expr, ...]
) -> Iterator[tuple[Load, Cases, bool, tuple[Expr, ...]]]:
    if isinstance(node, Select):
        chosen = index_condition(node.condition, statement)
        if chosen is None:
            holds = (*given, *conjuncts(node.condition))
            fails = (*given, Not(node.condition))
            yield from _loads(node.condition, statement, where, exact, given)
            yield from _loads(node.on_true, statement, where, False, holds)
            yield from _loads(node.on_false, statement, where, False, fails)
        else:
            otherwise = negated(chosen, statement.ranges)
            yield from _loads(node.on_true, statement, both(where, chosen), exact, given)
            yield from _loads(node.on_false, statement, both(where, otherwise), exact, given)
        return
    if isinstance(node, Load):
        if node.mask is not None:
            mask = index_condition(node.mask, statement)
            where, exact = (where, False) if mask is None else (both(where, mask), exact)
        if where:
            yield node, where, exact, given
    for child in node.children():
        yield from _loads(child, statement, where, exact, given)


def index_condition(expr: Expr, statement: Statement) -> Cases | None:
    """The cases of a select's condition; None when it depends on data, so that either branch may be
    taken.
    """
    try:
        return condition(expr, statement.env, statement.ranges)
    except Undecided:
        return None


def plain_statement(
    name: str, block: Block, loops: tuple[For, ...], dims: tuple[Dim, ...], position: int = 0
) -> Statement:
    """A statement of a block in loops of its own, which stand at one place in time."""
    ranges: dict[Var, tuple[int, int]] = {dim: (dim.low, dim.high) for dim in dims}
    ranges |= {loop.var: (0, loop.extent - 1) for loop in loops}
    point = tuple(variable(loop.var) for loop in loops)
    places = (position,) * (len(loops) + 1)
    store = next(_stores_of(block.body))
    return Statement(
        name,
        "",
        Role.COPY,
        block,
        store,
        loops,
        places,
        ALWAYS,
        {},
        point,
        -1,
        0,
        False,
        ranges,
        {},
        dims,
    )
