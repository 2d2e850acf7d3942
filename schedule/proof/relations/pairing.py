"""What each access of the nest should touch, by the canonical form: its logical element.

A block of the nest and the canonical block of its family must compute the same expression. Both are
walked side by side: a load meets a load and is expected to bring the element that the canonical
index names; a select whose condition speaks of indices splits the points on either side, so a guard
that was dropped because it always holds still matches; Fma(a, b, c) meets a*b + c. What is equal
only on the points concerned becomes an obligation: a set that must be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer, Load, array
from ....tir.conditions import conjuncts
from ....tir.dim import Extent
from ....tir.expr import (
    Add,
    And,
    Const,
    Expr,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
    const,
    index,
)
from ....tir.lowered import Fma
from ....tir.node import field_names
from ....tir.stmt import Role, Stmt
from ....tir.text.printer import print_expr
from ....tir.visit import loads, replace_node, stores, substitute
from ..forms.affine import Affine, Undecided, affine
from ..forms.choices import choices
from ..forms.condition import Cases, both, condition, differ, fixed_values, inside, negated
from ..forms.data import data_of, datum_interval, without_data
from ..forms.families import Families
from ..forms.nest import Access, Nest, Statement
from ..forms.statements import access, holding, is_certain, reading
from .differences import differences

Offsets = tuple[frozenset[tuple[int, Affine]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """An access with the logical element that it should bring or set: `element` of `tensor`.

    own: a reduction's read of its own accumulators; into: the tensor that the statement sets.
    """

    access: Access
    tensor: str
    element: tuple[Affine, ...]
    own: bool = False
    into: str = ""
    _offsets: dict[tuple[bool, bool], Offsets] = field(default_factory=dict, init=False, repr=False)

    @property
    def statement(self) -> Statement:
        """The statement that loads or stores."""
        return self.access.statement

    def offsets(self, *, of_cell: bool, where: bool = False) -> Offsets:
        """How each index of the cell follows from the element, or each of the element from the
        cell. where: also by the values that the access's conditions leave of variables.

        For each index the pairs (n, form) such that it is the other side's index n (-1: nothing)
        plus the form, which speaks of nothing but the iteration in whose storage the cell lies.
        """
        key = of_cell, where
        if key not in self._offsets:
            cell, element = self.access.indices, self.element
            wanted, starts = (cell, element) if of_cell else (element, cell)
            values = fixed_values(self.access.where, self.statement.ranges) if where else {}
            still = frozenset(loop.var for loop in self.access.fresh)
            known = [form.fixed(values) for form in starts]
            self._offsets[key] = tuple(
                _found_from(f, starts, still) | _found_from(f.fixed(values), known, still)
                if where
                else _found_from(f, starts, still)
                for f in wanted
            )
        return self._offsets[key]


def _found_from(
    form: Affine, starts: Sequence[Affine], still: frozenset[Var]
) -> frozenset[tuple[int, Affine]]:
    offsets = ((number, form - start) for number, start in enumerate((Affine(), *starts), -1))
    return frozenset((n, rest) for n, rest in offsets if still.issuperset(rest.variables()))


@dataclass(frozen=True, slots=True, eq=False)
class Obligation:
    """No run of `statement` may be in `where`; `claim` says what would be wrong there."""

    statement: Statement
    where: Cases
    claim: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """The nest's accesses with their logical elements, and what remains to be shown of them."""

    writes: tuple[Tagged, ...]
    reads: tuple[Tagged, ...]
    obligations: tuple[Obligation, ...]
    assumptions: tuple[str, ...] = ()


def pair(nest: Nest, families: Families, is_empty: Callable[[Statement, Cases], bool]) -> Pairs:
    """The logical elements of a nest's accesses.

    Loads are looked at where the point is in the family's domain: what a padded point reads is
    nobody's business.
    is_empty: whether no run of a statement lies in a domain. Raises: Undecided when the two compute
    in different ways.
    """
    writes: list[Tagged] = []
    reads: list[Tagged] = []
    obligations: list[Obligation] = []
    assumptions: list[str] = []
    for statement in nest.statements:
        one = _Pairing(statement, families, is_empty)
        writes.append(one.pair())
        reads += one.distinct()
        obligations += one.obligations
        assumptions += one.assumptions
    return Pairs(tuple(writes), tuple(reads), tuple(obligations), tuple(assumptions))


class _Mismatch(Undecided):
    """The nest and the canonical form compute with different operators."""


@dataclass(slots=True)
class _Pairing:
    """The pairing of one statement."""

    statement: Statement
    families: Families
    is_empty: Callable[[Statement, Cases], bool]
    env: dict[Var, Affine] = field(default_factory=dict)
    tensor: str = ""
    reads: list[Tagged] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    given: tuple[Expr, ...] = ()  # conditions of data that hold where the walk is

    def pair(self) -> Tagged:
        statement = self.statement
        if statement.role is Role.COPY:
            indices, value, extents = self.copied()
        else:
            indices, value, extents = self.computed()
        valid = both(statement.domain, inside(statement.point, extents, statement.ranges))
        if valid and statement.role is Role.COMPUTE:
            counts = self.families.blocks[statement.family].block.counts
            valid = both(valid, condition(counts, self.env, statement.ranges))
        mine = statement.store
        try:
            self.match(mine.value, value, valid, True, top=True)
        except _Mismatch as mismatch:
            self.in_order(mine.value, value, valid, mismatch)
        stored = access(statement, mine.buffer, mine.indices, statement.domain, write=True)
        element = tuple(affine(i, self.env, statement.ranges) for i in indices)
        return Tagged(stored, self.tensor, element, into=self.tensor)

    def copied(self) -> tuple[tuple[Expr, ...], Expr, tuple[Extent, ...]]:
        """A copy moves element `point` of its family's tensor."""
        statement = self.statement
        shape = self.families.shapes.get(statement.family)
        if shape is None or len(shape) != len(statement.point):
            raise Undecided(
                f"block '{statement.name}' copies '{statement.family}', which is no tensor"
            )
        self.tensor = statement.family
        indices = tuple(it.var for it in statement.block.iters)
        self.env = dict(zip(indices, statement.point, strict=True))
        origin = array(statement.family, statement.store.buffer.type, shape)
        return indices, Load(origin, indices), shape

    def computed(self) -> tuple[tuple[Expr, ...], Expr, tuple[Extent, ...]]:
        statement = self.statement
        family = self.families.blocks.get(statement.family)
        if family is None:
            raise Undecided(f"block '{statement.name}' is of no family of the canonical form")
        iters = family.iters(statement.role)
        body: Stmt | None = family.block.init if statement.role is Role.INIT else family.block.body
        if body is None or len(iters) != len(statement.point):
            raise Undecided(
                f"block '{statement.name}' has another shape than family '{family.name}'"
            )
        number = family.counterpart(statement)
        self.tensor = family.tensors[number]
        self.env = {it.var: form for it, form in zip(iters, statement.point, strict=True)}
        wanted = family.stores[number].buffer
        store = next(store for store in stores(body) if store.buffer is wanted)
        return store.indices, store.value, tuple(it.domain for it in iters)

    def distinct(self) -> list[Tagged]:
        """The reads, each once where an expression loads one element several times."""
        kept: dict[tuple[object, ...], Tagged] = {}
        for read in self.reads:
            taken = read.access
            key = taken.buffer, taken.indices, taken.where, taken.exact, read.tensor, read.element
            kept.setdefault(key, read)
        return list(kept.values())

    def in_order(self, nest: Expr, canon: Expr, where: Cases, mismatch: _Mismatch) -> None:
        """Pair the loads in the order of the text, assuming that the rest is equal arithmetic."""
        mine, theirs = loads(nest), loads(canon)
        if len(mine) != len(theirs):
            raise mismatch
        self.reads.clear()
        self.obligations.clear()
        for left, right in zip(mine, theirs, strict=True):
            self.read(left, right, where, False)
        self.assumptions.append(
            f"block '{self.statement.name}' may compute {print_expr(nest)} for {print_expr(canon)}"
        )

    def match(
        self, nest: Expr, canon: Expr, where: Cases, exact: bool, *, top: bool = False
    ) -> None:
        """Pair the loads of two expressions at points `where`; top: they are the whole value."""
        if isinstance(nest, Let) or isinstance(canon, Let):
            self.named(nest, canon, where, exact, top=top)
            return
        if isinstance(nest, Load) and nest.mask is not None:
            other = nest.other if nest.other is not None else const(0, nest.dtype)
            nest = Select(nest.mask, Load(nest.buffer, nest.indices), other)
        if isinstance(nest, Select) or isinstance(canon, Select):
            if self.split(nest, canon, where, exact, top=top):
                return
        elif isinstance(nest, Load) and isinstance(canon, Load):
            self.read(nest, canon, where, exact)
            return
        elif top and _unlike(nest, canon):
            claim = (
                f"{print_expr(nest)} is stored, where the canonical form has {print_expr(canon)}"
            )
            self.obligations.append(Obligation(self.statement, where, claim))
            return
        elif self.same_index(nest, canon, where):
            return
        elif bool(loads(nest)) != bool(loads(canon)) and self.decided(nest, canon, where, exact):
            return  # where a select went, what is left may be index arithmetic, in another order
        try:
            self.attempt(self.alternatives(nest, canon), nest, canon, where, exact)
        except _Mismatch:
            if not self.decided(nest, canon, where, exact):
                raise

    def named(self, nest: Expr, canon: Expr, where: Cases, exact: bool, *, top: bool) -> None:
        """Pair the loads of two expressions, one of which is a Let at least."""
        if isinstance(nest, Let) and isinstance(canon, Let):
            if self.same_value(nest, canon, where, exact):
                body = substitute(nest.body, {nest.var: canon.var})
                self.match(body, canon.body, where, exact, top=top)
                return
        elif self.split(nest, canon, where, exact, top=top):
            return
        if isinstance(nest, Let):
            nest = substitute(nest.body, {nest.var: nest.value})
        if isinstance(canon, Let):
            canon = substitute(canon.body, {canon.var: canon.value})
        self.match(nest, canon, where, exact, top=top)

    def same_value(self, nest: Let, canon: Let, where: Cases, exact: bool) -> bool:
        """Whether two Lets name values that are computed alike, whatever becomes of them: then what
        they name is one value, and its loads are paired once, under no condition of a branch.
        """
        kept = len(self.reads), len(self.obligations)
        try:
            self.match(nest.value, canon.value, where, exact)
        except _Mismatch:
            del self.reads[kept[0] :], self.obligations[kept[1] :]
            return False
        return True

    def decided(self, nest: Expr, canon: Expr, where: Cases, exact: bool) -> bool:
        """Go on where one side's operators went with a select inside that is decided on the points,
        or with constants; False where there is neither.
        """
        for expr, env in ((canon, self.env), (nest, self.statement.env)):
            for part, choice in choices(expr):
                holds = self.chosen(choice, env)
                if holds is None:
                    continue
                sides = both(where, holds), both(where, negated(holds, self.statement.ranges))
                for side, branch in zip(sides, (choice.on_true, choice.on_false), strict=True):
                    if self.is_empty(self.statement, side):
                        continue
                    taken = simplify(replace_node(expr, part, branch))
                    left, right = (nest, taken) if expr is canon else (taken, canon)
                    self.match(left, right, side, exact)
                return True
        left, right = simplify(nest), simplify(canon)  # constants that one side has folded
        if left is nest and right is canon:
            return False
        self.match(left, right, where, exact)
        return True

    def split(self, nest: Expr, canon: Expr, where: Cases, exact: bool, *, top: bool) -> bool:
        """Go on along the branches of selects over indices; False where the condition depends on
        data.
        """
        ranges = self.statement.ranges
        mine = self.chosen(nest, self.statement.env)
        theirs = self.chosen(canon, self.env)
        if mine is None and theirs is None:
            return False
        if (
            mine == theirs
            and isinstance(nest, Select)
            and isinstance(canon, Select)
            and mine is not None
        ):
            self.match(nest.on_true, canon.on_true, both(where, mine), exact, top=top)
            otherwise = both(where, negated(mine, ranges))
            self.match(nest.on_false, canon.on_false, otherwise, exact, top=top)
            return True
        holds = theirs if theirs is not None else mine
        assert holds is not None
        for side, taken in (
            (both(where, holds), True),
            (both(where, negated(holds, ranges)), False),
        ):
            if self.is_empty(self.statement, side):
                continue
            left, right = nest, canon
            if theirs is not None:
                assert isinstance(canon, Select)
                right = canon.on_true if taken else canon.on_false
            else:
                assert isinstance(nest, Select)
                left = nest.on_true if taken else nest.on_false
            self.match(left, right, side, exact, top=top)
        return True

    def chosen(self, expr: Expr, env: Mapping[Var, Affine]) -> Cases | None:
        if not isinstance(expr, Select):
            return None
        try:
            return condition(expr.condition, env, self.statement.ranges)
        except Undecided:
            return None

    def read(self, nest: Load, canon: Load, where: Cases, exact: bool) -> None:
        if not where:
            return
        statement = self.statement
        reader, values, within = reading(statement, nest.buffer, nest.indices)
        meant = self.same_data(nest, canon, values, where, exact)
        element = tuple(
            affine(without_data(i, meant), self.env, reader.ranges) for i in canon.indices
        )
        mine = tuple(without_data(i, values) for i in nest.indices)
        sure = exact and is_certain(values)
        where = both(where, within, holding(self.given, reader, values))
        taken = access(reader, nest.buffer, mine, where, exact=sure)
        copied = statement.role is Role.COPY
        tensor = self.tensor if copied else self.families.sources[statement.family, canon.buffer]
        family = None if copied else self.families.blocks[statement.family]
        own = family is not None and tensor in family.tensors
        self.reads.append(Tagged(taken, tensor, element, own, self.tensor))

    def same_data(
        self, nest: Load, canon: Load, values: Mapping[Expr, Expr], where: Cases, exact: bool
    ) -> dict[Expr, Expr]:
        """What stands for the data of the canonical indices: each meets a datum of the nest's, in
        order, and must be computed alike. A datum of one possible value is that value.

        Raises: _Mismatch where one has more data: then other operands may correspond.
        """
        meant: dict[Expr, Expr] = {}
        data = data_of(canon.indices, self.env, self.statement.ranges)
        for datum in data:
            low, high = datum_interval(datum, self.env, self.statement.ranges)
            if low == high:
                meant[datum] = index(low)
        mine = [datum for datum, value in values.items() if not isinstance(value, Const)]
        theirs = [datum for datum in data if datum not in meant]
        if len(theirs) != len(mine):
            raise _Mismatch(
                f"block '{self.statement.name}' loads {print_expr(nest)}, where the canonical form "
                f"loads {print_expr(canon)}: their indices depend on other data"
            )
        for datum, partner in zip(mine, theirs, strict=True):
            self.match(datum, partner, where, exact)
            meant[partner] = values[datum]
        return meant

    def same_index(self, nest: Expr, canon: Expr, where: Cases) -> bool:
        """Whether both are index arithmetic or conditions of indices: then they must be equal on
        the points.
        """
        if loads(nest) or loads(canon):
            return False
        try:
            differing = self.differing(nest, canon)
        except Undecided:
            return False
        apart = both(where, differing)
        if apart:
            claim = (
                f"{print_expr(nest)} is computed, where the canonical form has {print_expr(canon)}"
            )
            self.obligations.append(Obligation(self.statement, apart, claim))
        return True

    def differing(self, nest: Expr, canon: Expr) -> Cases:
        """Where two indices, or two conditions of indices, have different values.

        Raises: Undecided where they are neither.
        """
        mine, theirs, ranges = self.statement.env, self.env, self.statement.ranges
        if nest.dtype.is_bool and canon.dtype.is_bool:
            left, right = condition(nest, mine, ranges), condition(canon, theirs, ranges)
            either = both(left, negated(right, ranges)), both(negated(left, ranges), right)
            return either[0] + either[1]
        if nest.dtype.is_integer and canon.dtype.is_integer:
            return differ((affine(nest, mine, ranges),), (affine(canon, theirs, ranges),), ranges)
        raise Undecided(f"{print_expr(nest)} is no index")

    def alternatives(self, nest: Expr, canon: Expr) -> Iterator[Sequence[tuple[Expr, Expr]]]:
        """The ways in which operands of the two may correspond."""
        if type(nest) is type(canon):
            left, right = nest.children(), canon.children()
            if len(left) == len(right) and _plain(nest) == _plain(canon):
                yield [
                    (a, b)
                    for a, b in zip(left, right, strict=True)
                    if isinstance(a, Expr) and isinstance(b, Expr)
                ]
        if isinstance(canon, And | Or | Min | Max) and type(nest) is not type(canon):
            yield [(nest, canon.a), (nest, canon.b)]  # both are one value, which was folded
        if isinstance(nest, Fma) and isinstance(canon, Add):
            for product, rest in ((canon.b, canon.a), (canon.a, canon.b)):
                if isinstance(product, Mul):
                    yield [(nest.a, product.a), (nest.b, product.b), (nest.c, rest)]
        if isinstance(nest, Fma) and isinstance(canon, Sub):
            yield from differences(nest, canon)

    def attempt(
        self,
        ways: Iterator[Sequence[tuple[Expr, Expr]]],
        nest: Expr,
        canon: Expr,
        where: Cases,
        exact: bool,
    ) -> None:
        kept, given = (len(self.reads), len(self.obligations)), self.given
        for way in ways:
            try:
                for number, (left, right) in enumerate(way):
                    branch = isinstance(nest, Select) and number > 0
                    self.given = (*given, *_taken(nest, number)) if branch else given
                    self.match(left, right, where, exact and not branch)
            except _Mismatch:
                del self.reads[kept[0] :], self.obligations[kept[1] :]
                continue
            finally:
                self.given = given
            return
        raise _Mismatch(
            f"block '{self.statement.name}' computes {print_expr(nest)}, "
            f"where the canonical form has {print_expr(canon)}"
        )


def _taken(choice: Expr, number: int) -> tuple[Expr, ...]:
    """What holds where a select takes its first or second branch."""
    assert isinstance(choice, Select)
    return conjuncts(choice.condition) if number == 1 else (Not(choice.condition),)


def _unlike(nest: Expr, canon: Expr) -> bool:
    """Whether one is a constant and the other is a load or another constant."""
    leaves = isinstance(nest, Const | Load) and isinstance(canon, Const | Load)
    return leaves and not (isinstance(nest, Load) and isinstance(canon, Load)) and nest != canon


def _plain(expr: Expr) -> tuple[object, ...]:
    """The fields of a node that are no nodes: a constant's value and type, a call's intrinsic."""
    values = (getattr(expr, name) for name in field_names(type(expr)))
    if isinstance(expr, Const | Var):
        return (expr,)
    return tuple(v for v in values if not isinstance(v, Expr | Buffer | tuple))
