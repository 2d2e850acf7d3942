"""Where the indices of lowered code lie over all iterations of its loops, conditions left out: most
accesses are inside of their buffers whatever the conditions say.

Variables are bound once in a function, so what an index is, and where it lies, is one answer for
all places at which it stands.
"""

from __future__ import annotations

from ....tir.buffer import Load
from ....tir.expr import Const, Expr, Var
from ....tir.func import PrimFunc
from ....tir.lowered import Broadcast, Ramp
from ....tir.stmt import Extern, For, IterVar, LetStmt, Store
from ....tir.visit import found_in, statements
from ..forms.affine import Affine, Undecided, affine, interval, variable
from ..forms.data import bounded
from .lanes import in_lane, lane_loop

Interval = tuple[int, int]


class Spans:
    """The forms of a function's indices, and the intervals in which they lie.

    ranges: of every dim, loop and lane; env: the forms of integers that the code names; values:
    what it names beside these, truth values and vectors among them.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.ranges: dict[Var, Interval] = {dim: (dim.low, dim.high) for dim in func.dims}
        self.env: dict[Var, Affine] = {}
        self.values: dict[Var, Expr] = {}
        self._forms: dict[Expr, Affine] = {}
        self._spans: dict[Expr, Interval | None] = {}
        for stmt in statements(func.body):
            if isinstance(stmt, For):
                self.ranges[stmt.var] = (0, stmt.extent - 1)
            elif isinstance(stmt, LetStmt):
                self.name(stmt.var, stmt.value)
            elif isinstance(stmt, Extern):
                for axis in found_in(stmt, IterVar):
                    self.ranges[axis.var] = (0, axis.extent - 1)

    def name(self, var: Var, value: Expr) -> None:
        """Let the variable stand for the value."""
        if value.dtype.is_float:
            return
        if value.dtype.is_integer and value.dtype.lanes == 1:
            try:
                self.env[var] = affine(value, self.env, self.ranges)
                return
            except Undecided:
                pass
        self.values[var] = value

    def form(self, expr: Expr) -> Affine:
        """The form of an index, in its lane where it is a vector. Raises: Undecided."""
        found = self._forms.get(expr)
        if found is None:
            found = self._forms[expr] = self._form(expr)
        return found

    def _form(self, expr: Expr) -> Affine:
        match expr:
            case Const():
                return Affine((), int(expr.value))
            case Ramp(base, stride, count):
                loop = lane_loop(count)
                self.ranges[loop.var] = (0, count - 1)
                return self.form(base) + variable(loop.var).scaled(stride)
            case Broadcast(value):
                return self.form(value)
        lanes = expr.dtype.lanes
        if lanes > 1:
            self.ranges[lane_loop(lanes).var] = (0, lanes - 1)
        return affine(in_lane(expr, self.values), self.env, self.ranges)

    def span(self, expr: Expr) -> Interval | None:
        """Where an index lies; None where that cannot be told."""
        if expr not in self._spans:
            self._spans[expr] = self._span(expr)
        return self._spans[expr]

    def _span(self, expr: Expr) -> Interval | None:
        try:
            return interval(self.form(expr), self.ranges)
        except Undecided:
            pass
        try:
            return bounded(in_lane(expr, self.values), self.env, self.ranges)
        except Undecided:
            return None

    def is_inside(self, access: Load | Store) -> bool:
        """Whether every index of an access is in its buffer, whatever the conditions are."""
        for item, extent in zip(access.indices, access.buffer.shape, strict=True):
            found = self.span(item)
            if found is None or found[0] < 0 or found[1] >= extent:
                return False
        return all(dim is None for dim in access.buffer.dims)
