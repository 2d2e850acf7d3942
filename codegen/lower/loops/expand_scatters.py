"""Replace scatters by the loops that they are: a copy, then one store for each update, in order.

    y = scatter_add(x, u, p)    ->    for i: y[i] = x[i]
                                      for k: at = max(min(p[k], n - 1), 0); y[at] = y[at] + u[k]

The clamp is the guard that the code carries: the proof of the lowered code reads it and knows no
other reason why a place should be inside. What is at an index of an axis before that of the places
is copied and updated on its own: threads share these out. Elsewhere they share out the copy, and
one of them writes the updates: where two write columns of one row, they wait for each other's cache
lines longer than one takes for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....tir.buffer import Load
from ....tir.dtype import FLOAT32, INT64, DType
from ....tir.expr import Add, Cast, Expr, Max, Min, Mul, Var, index, mul
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.scatter import ScatterFunction
from ....tir.stmt import NOTHING, Barrier, Extern, For, ForKind, If, LetStmt, Stmt, Store, seq
from ....tir.target.target import Target
from ....tir.visit import of_block, transform_statements
from ..threads.place_barriers import shares_out
from .in_vectors import in_vectors

CHUNKS = 16  # that threads share out of a copy

_Pair = Callable[[Expr, Expr], Expr]
_PAIR: dict[str, _Pair] = {"add": Add, "mul": Mul, "max": Max, "min": Min}


@dataclass(frozen=True, slots=True)
class ExpandScatters:
    """Make loops of each scatter.

    Requires: a CPU; stage NEST without blocks; a barrier parts each scatter that threads share out
    from what it depends on.
    Ensures: no call of a scatter is left.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        def rule(node: Node) -> Node:
            if isinstance(node, Extern) and isinstance(node.function, ScatterFunction):
                return of_block(_Scatter(node, self.target).loops(), node.outputs[0].name)
            return node

        return func.with_body(transform_statements(func.body, rule))


class _Scatter:
    """One scatter on its way to loops."""

    def __init__(self, call: Extern, target: Target) -> None:
        assert isinstance(call.function, ScatterFunction)
        self.function = call.function
        self.x, self.updates, *self.places = call.inputs
        (self.y,) = call.outputs
        self.target = target
        self.lanes = max(1, target.lanes(self.y.type))
        self.shared = shares_out(call)

    def loops(self) -> Stmt:
        """The copy and the updates."""
        rows = self.y.shape[: self.function.axis]
        if math.prod(rows) > 1 and 0 not in self.updates.shape:
            return self._by_rows(rows)
        copied, rest = self._shared_copy() if self.shared else (self._copy(()), NOTHING)
        if 0 in self.updates.shape:
            return seq(copied, rest)
        between = Barrier() if self.shared else NOTHING
        return seq(copied, between, rest, self._update(()))

    def _by_rows(self, rows: Sequence[int]) -> Stmt:
        """What is at each index of the first axes: a copy and updates of its own."""
        own = [Var(f"i{d}") if size > 1 else index(0) for d, size in enumerate(rows)]
        update = self._update(own)
        for at, size, given in zip(own, rows, self.updates.shape, strict=False):
            if given < size:
                update = If(at < given, update)
        body = seq(self._copy(own), update)
        loops = [(at, size) for at, size in zip(own, rows, strict=True) if isinstance(at, Var)]
        for n, (row, size) in reversed(list(enumerate(loops))):
            kind = ForKind.PARALLEL if self.shared and n == 0 else ForKind.SERIAL
            body = For(row, size, kind, body)
        return body

    # -- the copy

    def _shared_copy(self) -> tuple[Stmt, Stmt]:
        """A copy that threads share out, and what is left of it for one of them."""
        deep = self._deep(0)
        if deep:
            copied = self._copy(())
            assert isinstance(copied, For)
            return replace(copied, kind=ForKind.PARALLEL), NOTHING
        extent = self.y.shape[0]
        step = -(-extent // (CHUNKS * self.lanes)) * self.lanes
        whole, chunk = extent // step, Var("chunk")
        body = self._row((), 0, mul(chunk, index(step)), step)
        rest = self._row((), 0, index(whole * step), extent % step) if extent % step else NOTHING
        return For(chunk, whole, ForKind.PARALLEL, body), rest

    def _deep(self, known: int) -> int:
        """The last axis behind `known` ones that has several elements."""
        shape = self.y.shape
        return max((d for d in range(known, len(shape)) if shape[d] > 1), default=known)

    def _copy(self, known: Sequence[Expr]) -> Stmt:
        """Copy the elements at `known` indices of the first axes, in vectors where axes allow."""
        shape, deep = self.y.shape, self._deep(len(known))
        before = [Var(f"i{d}") for d in range(len(known), deep)]
        body = self._row((*known, *before), deep, index(0), shape[deep])
        for d in range(deep - 1, len(known) - 1, -1):
            body = For(before[d - len(known)], shape[d], ForKind.SERIAL, body)
        return body

    def _row(self, at: Sequence[Expr], deep: int, first: Expr, extent: int) -> Stmt:
        """Copy `extent` elements from `first` on along axis `deep`, at indices `at` of those before
        it; all behind it have one.
        """

        def copy(i: Expr) -> Stmt:
            rest: tuple[Expr, ...] = (index(0),) * (len(self.y.shape) - deep - 1)
            place = (*at, i, *rest)
            begun = Load(self.x, place if self.x.shape else ())
            return Store(self.y, place, begun)

        return in_vectors(copy, first, extent, self.y.type, self.target)

    # -- the updates

    def _update(self, known: Sequence[Expr]) -> Stmt:
        """Write the updates at `known` indices of the first axes, in order."""
        shape, axis = self.updates.shape, self.function.axis
        held = len(self.places[0].shape)
        own = [Var(f"u{d}") for d in range(len(known), len(shape))]
        variables = [*known, *own]
        along = tuple(Var(f"at{n}", INT64) for n in range(len(self.places)))

        def write(last: Expr | None) -> Stmt:
            here: list[Expr] = list(variables)
            if last is not None:
                here[-1] = last
            place = (*here[:axis], *along, *here[axis + self.function.span :])
            update = Load(self.updates, tuple(here))
            return Store(self.y, place, self._combined(Load(self.y, place), update))

        end = len(shape)
        body: Stmt
        if held < end:  # a row of neighbours goes to one place
            end -= 1
            body = in_vectors(write, index(0), shape[end], self.y.type, self.target)
        else:
            body = write(None)
        for d in range(end - 1, held - 1, -1):
            body = For(own[d - len(known)], shape[d], ForKind.SERIAL, body)
        for n, (var, place) in reversed(list(enumerate(zip(along, self.places, strict=True)))):
            found = Load(place, tuple(variables[:held]))
            body = LetStmt(var, self._inside(found, axis + n), body)
        for d in range(held - 1, len(known) - 1, -1):
            body = For(own[d - len(known)], shape[d], ForKind.SERIAL, body)
        return body

    def _inside(self, place: Expr, axis: int) -> Expr:
        value = place if place.dtype == INT64 else Cast(place, INT64)
        return Max(Min(value, index(self.y.shape[axis] - 1)), index(0))

    def _combined(self, own: Expr, update: Expr) -> Expr:
        name = self.function.combining
        if name == "none":
            return update
        kind = _computed(own.dtype)
        a, b = (x if x.dtype == kind else Cast(x, kind) for x in (own, update))
        made = _PAIR[name](a, b)
        return made if kind == own.dtype else Cast(made, own.dtype)


def _computed(kind: DType) -> DType:
    """The type in which numbers of a type are combined."""
    return FLOAT32 if kind.is_float and kind.bits < 32 else kind
