"""Integer sets: statements, cells and orders as isl sees them.

Relations are built constraint by constraint (isl's text parser costs more than the questions asked
afterwards). Every question counts, and the context gives up after a number of elementary
operations, so a proof always ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl

from ....tir.analysis.linear import linear
from ....tir.dim import Dim, Extent
from ....tir.expr import Expr, Var
from ....tir.stmt import For
from ..forms.affine import Affine, Quotient
from ..forms.budget import Budget
from ..forms.condition import Case, Cases, branches
from ..forms.nest import Statement
from .order import ANY, Equal, Order, orders_before, possible_orders
from .pairing import Tagged

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set
PARAMETER = isl.dim_type.param
Part = tuple[int, Affine, int]  # side, form, factor
Row = tuple[dict[int, int], int, bool]  # factors of columns, constant; == 0 instead of >= 0


@dataclass(slots=True)
class _System:
    """Constraints over the numbered variables of one or two sides; each quotient gets a column of
    its own. The sizes that a call decides are the columns -1, -2, ... of either side.
    """

    columns: Mapping[tuple[int, Var], int]
    width: int
    rows: list[Row] = field(default_factory=list)
    quotients: dict[tuple[int, Quotient], int] = field(default_factory=dict)

    def add(self, parts: Iterable[Part], constant: int = 0, *, equality: bool = False) -> None:
        """constant + sum of factor * form of a side (>= 0, or == 0)."""
        row: dict[int, int] = {}
        for side, form, factor in parts:
            constant += factor * form.constant
            for column, coefficient in self._columns_of(side, form):
                row[column] = row.get(column, 0) + factor * coefficient
        self.rows.append((row, constant, equality))

    def _columns_of(self, side: int, form: Affine) -> Iterator[tuple[int, int]]:
        for atom, coefficient in form.terms:
            if isinstance(atom, Var):
                yield self.columns[side, atom], coefficient
            else:
                assert isinstance(atom, Quotient), "minima and maxima are expanded before"
                yield self._quotient(side, atom), coefficient

    def _quotient(self, side: int, atom: Quotient) -> int:
        if (side, atom) not in self.quotients:
            column = self.width
            self.width += 1
            self.quotients[side, atom] = column
            inner = list(self._columns_of(side, atom.inner))
            low: dict[int, int] = {}
            for key, coefficient in (*inner, (column, -atom.divisor)):
                low[key] = low.get(key, 0) + coefficient
            high = {key: -coefficient for key, coefficient in low.items()}
            self.rows.append((low, atom.inner.constant, False))
            self.rows.append((high, atom.divisor - 1 - atom.inner.constant, False))
        return self.quotients[side, atom]

    def add_domain(self, side: int, loops: Sequence[For], case: Case) -> None:
        """The loops' ranges and the constraints of one case."""
        for loop in loops:
            column = self.columns[side, loop.var]
            self.rows.append(({column: 1}, 0, False))
            self.rows.append(({column: -1}, loop.extent - 1, False))
        for constraint in case:
            self.add([(side, constraint.form, 1)], equality=constraint.equality)


class Sets:
    """A context in which to build relations and to ask about them.

    dims: the sizes that a call decides. They are parameters of every relation, in their bounds: a
    relation is empty where it is so for all their values. facts: linear forms of dims that are
    negative for none of these values. budget: for all relations and questions.
    """

    def __init__(
        self,
        max_operations: int,
        dims: Sequence[Dim] = (),
        facts: Sequence[Expr] = (),
        *,
        shortcuts: bool = True,
        budget: Budget | None = None,
    ) -> None:
        self.shortcuts = shortcuts
        self.max_operations = max_operations
        self._budget = budget
        self.dims = tuple(dims)
        self._rows = [*self._bounds_of_dims(), *map(self._fact, facts)]
        self.context = isl.Context()
        self.context.set_max_operations(max_operations)
        self.questions = 0
        self._values: dict[int, isl.Val] = {}

    def _value(self, number: int) -> isl.Val:
        if number not in self._values:
            self._values[number] = isl.Val.int_from_si(self.context, number)
        return self._values[number]

    def _bounds_of_dims(self) -> Iterator[Row]:
        for place, dim in enumerate(self.dims):
            yield {-1 - place: 1}, -dim.low, False
            yield {-1 - place: -1}, dim.high, False

    def _fact(self, fact: Expr) -> Row:
        form = linear(fact)
        places: dict[Expr, int] = {dim: -1 - place for place, dim in enumerate(self.dims)}
        return {places[atom]: factor for atom, factor in form.terms}, form.constant, False

    def _space(self, n_in: int, n_out: int) -> isl.Space:
        space = isl.Space.alloc(self.context, len(self.dims), n_in, n_out)
        for place in range(len(self.dims)):
            space = space.set_dim_name(PARAMETER, place, f"d{place}")
        return space

    def _columns(self, *sides: Sequence[For]) -> dict[tuple[int, Var], int]:
        """The column of each loop's variable, side after side, and of each dim."""
        columns: dict[tuple[int, Var], int] = {}
        start = 0
        for side, loops in enumerate(sides):
            columns |= {(side, dim): -1 - place for place, dim in enumerate(self.dims)}
            columns |= {(side, loop.var): column for column, loop in enumerate(loops, start)}
            start += len(loops)
        return columns

    def _map(self, system: _System, n_in: int, n_out: int) -> isl.Map:
        if self._budget is not None:
            self._budget.take_relation()
        extra = system.width - n_in - n_out
        space = self._space(n_in, n_out + extra)
        system.rows += self._rows
        local = isl.LocalSpace.from_space(space)
        result = isl.BasicMap.universe(space)
        for row, constant, equality in system.rows:
            make = isl.Constraint.alloc_equality if equality else isl.Constraint.alloc_inequality
            constraint = make(local).set_constant_val(self._value(constant))
            for column, factor in row.items():
                kind, place = (IN, column) if column < n_in else (OUT, column - n_in)
                if column < 0:
                    kind, place = PARAMETER, -1 - column
                constraint = constraint.set_coefficient_val(kind, place, self._value(factor))
            result = result.add_constraint(constraint)
        if extra:
            result = result.project_out(OUT, n_out, extra)
        return isl.Map.from_basic_map(result)

    def image(
        self,
        statement: Statement,
        where: Cases,
        forms: Sequence[Affine],
        name: str = "",
        to: str = "",
    ) -> isl.Map:
        """The relation from the runs of a statement, called `name`, to the values of `forms`,
        called `to`.
        """
        n_in, n_out = len(statement.loops), len(forms)
        columns = self._columns(statement.loops)
        result = None
        for choice, plain in branches(tuple(forms)):
            for case in where:
                system = _System(columns, n_in + n_out)
                system.add_domain(0, statement.loops, (*case, *choice))
                for column, form in enumerate(plain, n_in):
                    system.add([(0, form, 1)], equality=True)
                    system.rows[-1][0][column] = -1
                piece = self._map(system, n_in, n_out)
                result = piece if result is None else result.union(piece)
        if result is None:
            result = isl.Map.empty(self._space(n_in, n_out))
        if not name:
            return result
        return result.set_tuple_name(IN, name).set_tuple_name(OUT, to)

    def domain(self, statement: Statement, where: Cases) -> isl.Set:
        """The runs of a statement."""
        return self.image(statement, where, ()).domain()

    def box(self, extents: Sequence[Extent]) -> isl.Set:
        """The points 0 .. extent-1 of each dimension."""
        columns = self._columns(())
        system = _System(columns, len(extents))
        for column, extent in enumerate(extents):
            system.rows.append(({column: 1}, 0, False))
            if isinstance(extent, Dim):
                system.rows.append(({column: -1, columns[0, extent]: 1}, -1, False))
            else:
                system.rows.append(({column: -1}, extent - 1, False))
        return self._map(system, 0, len(extents)).range()

    def union_of(self, pieces: Iterable[isl.Set]) -> isl.Set | None:
        """The union of sets of one space; None of none."""
        result = None
        for piece in pieces:
            result = piece if result is None else result.union(piece)
        return result

    def member(self, points: isl.Set) -> tuple[int, ...]:
        """The coordinates of one member of a set that is not empty."""
        found = sample(points)
        assert found is not None, "asked for a member of an empty set"
        return found[len(self.dims) :]

    def time(self, statement: Statement, name: str, depth: int, last: int) -> isl.Map:
        """The relation from the runs of a statement to times of 2*depth + 2 numbers, the last being
        `last`.
        """
        forms: list[Affine] = []
        for position, loop in zip(statement.positions, statement.loops, strict=False):
            forms += [Affine((), position), Affine(((loop.var, 1),))]
        forms.append(Affine((), statement.positions[-1]))
        forms += [Affine()] * (2 * depth + 1 - len(forms)) + [Affine((), last)]
        n_in, n_out = len(statement.loops), len(forms)
        columns = self._columns(statement.loops)
        system = _System(columns, n_in + n_out)
        for column, form in enumerate(forms, n_in):
            system.add([(0, form, 1)], equality=True)
            system.rows[-1][0][column] = -1
        return self._map(system, n_in, n_out).set_tuple_name(IN, name).set_tuple_name(OUT, "T")

    def pairs(
        self,
        a: Statement,
        a_where: Cases,
        b: Statement,
        b_where: Cases,
        equal: Equal,
        orders: Iterable[Order] = (ANY,),
        above: Equal = (),
    ) -> isl.Map:
        """The pairs of runs (of `a`, of `b`) at which forms are equal and one of `orders` holds.

        above: forms of which the one of `a` is the greater, too.
        """
        n_in, n_out = len(a.loops), len(b.loops)
        result = isl.Map.empty(self._space(n_in, n_out))
        columns = self._columns(a.loops, b.loops)
        possible = self.possible(a, a_where, b, b_where, equal, orders)
        compared = (*equal, *above)
        for a_choice, left in branches(tuple(form for form, _ in compared)):
            for b_choice, right in branches(tuple(form for _, form in compared)):
                for a_case, b_case, order in itertools.product(a_where, b_where, possible):
                    system = _System(columns, n_in + n_out)
                    _add_order(system, a.loops, order)
                    for n, (one, two) in enumerate(zip(left, right, strict=True)):
                        same = n < len(equal)
                        system.add([(0, one, 1), (1, two, -1)], 0 if same else -1, equality=same)
                    system.add_domain(0, a.loops, (*a_case, *a_choice))
                    system.add_domain(1, b.loops, (*b_case, *b_choice))
                    result = result.union(self._map(system, n_in, n_out))
        return result

    def possible(
        self,
        a: Statement,
        a_where: Cases,
        b: Statement,
        b_where: Cases,
        equal: Equal,
        orders: Iterable[Order],
    ) -> list[Order]:
        """Those of `orders` that plain arithmetic does not exclude."""
        if self._budget is not None:
            self._budget.check_time()
        if not self.shortcuts:
            return list(orders)
        return possible_orders(a, a_where, b, b_where, equal, orders)

    def may_precede(self, a: Tagged, b: Tagged) -> bool:
        """Whether a run of `a` comes before one of `b` that touches the same cell."""
        equal = tuple(zip(a.access.cell, b.access.cell, strict=True))
        one, two = a.statement, b.statement
        before = orders_before(one, two)
        orders = self.possible(one, a.access.where, two, b.access.where, equal, before)
        if not orders:
            return False
        runs = self.pairs(one, a.access.where, two, b.access.where, equal, orders)
        return not self.empty(runs)

    def unnamed(self, relation: isl.Map) -> isl.Map:
        """A relation without the names of its statements."""
        return relation.reset_tuple_id(IN).reset_tuple_id(OUT)

    def empty(self, relation: isl.Map | isl.Set | isl.UnionMap | isl.UnionSet) -> bool:
        """Whether nothing is in the relation."""
        self.questions += 1
        return bool(relation.is_empty())


def _add_order(system: _System, loops: Sequence[For], order: Order) -> None:
    for loop in loops[: order.same]:
        form = Affine(((loop.var, 1),))
        system.add([(0, form, 1), (1, form, -1)], equality=True)
    if order.sign:
        form = Affine(((loops[order.same].var, 1),))
        ahead = 1 if order.sign == ">" else -1
        system.add([(0, form, ahead), (1, form, -ahead)], -1)


def sample(relation: isl.Map | isl.Set) -> tuple[int, ...] | None:
    """The coordinates of one member, the sizes of the call first; None of an empty relation."""
    whole = relation.wrap().flatten() if isinstance(relation, isl.Map) else relation.flatten()
    point = whole.sample_point()
    if point.is_void():
        return None
    return tuple(
        point.get_coordinate_val(kind, n).to_python()
        for kind in (PARAMETER, SET)
        for n in range(whole.dim(kind))
    )


def run_at(statement: Statement, values: Sequence[int]) -> Mapping[Var, int]:
    """A run of a statement from the sizes of the call and the values of its loops."""
    return dict(zip((*statement.dims, *statement.variables), values, strict=True))
