"""Let rows of a product meet in pairs, where an instruction takes two rows of two columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeGuard

from ....tir.buffer import Buffer, Load
from ....tir.dtype import INT64
from ....tir.errors import InternalError
from ....tir.expr import Call, Expr, Select, Var, add, const
from ....tir.func import PrimFunc
from ....tir.instructions.tensor_intrinsics import TensorIntrinsic
from ....tir.lowered import Broadcast, Ramp, Reinterpret, Shuffle, Vector
from ....tir.node import Node
from ....tir.stmt import Alloc, For, LetStmt, Prefetch, Seq, Stmt, Store, seq
from ....tir.text.printer import print_expr
from ....tir.visit import free_vars, transform

LOWER, UPPER = (0, 1, 4, 5), (2, 3, 6, 7)  # halves of two vectors
COLUMNS = 4  # of what a row has in a register


@dataclass(frozen=True, slots=True)
class RowPairs:
    """Compute what two rows have of four columns by two instructions, each for two columns.

    for k in range(n):
        C0 = smmla(C0, broadcast(a0, 4), b)    # a0, a1: eight elements of a row; b: those of four
        C1 = smmla(C1, broadcast(a1, 4), b)    # columns
    ->  L, U = halves(C0, C1)                  # lanes (0, 1) of C0, then of C1; and lanes (2, 3)
        for k in range(n):
            L = smmla(L, (a0, a0, a1, a1), (b0, b1, b0, b1))
            U = smmla(U, (a0, a0, a1, a1), (b2, b3, b2, b3))
        C0, C1 = halves(L, U)

    A row that is left meets itself. The lanes say what the instruction means, so that an
    interpreter needs to know no more of it.
    Requires: Registers has run. Ensures: what such an instruction multiplies are such vectors.
    Raises: InternalError for operands of another form.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = _rewritten(func.body)
        return func if body is func.body else func.with_body(body)


def _rewritten(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and (inner := _products_of(stmt)) is not None:
        return _in_pairs(inner, stmt)
    if _is_product(stmt):
        return _in_pairs([stmt], stmt)
    if not isinstance(stmt, Seq):
        return stmt.map_children(lambda c: _rewritten(c) if isinstance(c, Stmt) else c)
    made: list[Stmt] = []
    for is_product, group in groupby(stmt.body, _is_product):
        listed = list(group)
        made += [_in_pairs(listed, seq(*listed))] if is_product else map(_rewritten, listed)
    same = len(made) == len(stmt.body) and all(map(_is, made, stmt.body))
    return stmt if same else seq(*made)


def _is(a: Stmt, b: Stmt) -> bool:
    return a is b


def _products_of(loop: For) -> list[Stmt] | None:
    """The statements of the innermost of nested loops, where there are products, whose sums the
    loops do not choose, and beside them nothing but what asks for memory.
    """
    body, moving = loop.body, {loop.var}
    while isinstance(body, For):
        moving.add(body.var)
        body = body.body
    listed = list(body.body) if isinstance(body, Seq) else [body]
    products = [one for one in listed if _is_product(one)]
    plain = all(isinstance(one, Prefetch) or _is_product(one) for one in listed)
    still = all(free_vars(_place_of(one)).isdisjoint(moving) for one in products)
    return listed if products and plain and still else None


def _is_product(stmt: Stmt) -> TypeGuard[Store]:
    """Whether a sum gets what such an instruction adds to it, in all lanes or in some."""
    if not isinstance(stmt, Store):
        return False
    value = stmt.value.on_true if isinstance(stmt.value, Select) else stmt.value
    unit = value.intrinsic if isinstance(value, Call) else None
    return isinstance(unit, TensorIntrinsic) and unit.pairs_rows


def _call_of(product: Store) -> Call:
    value = product.value.on_true if isinstance(product.value, Select) else product.value
    assert isinstance(value, Call)
    return value


def _sum_of(product: Store) -> Expr:
    """What it adds to."""
    return _call_of(product).arguments[0]


def _place_of(product: Store) -> Expr:
    """The same, in the lanes that are on."""
    value, own = product.value, _sum_of(product)
    return replace(value, on_true=own) if isinstance(value, Select) else own


def _in_pairs(listed: Sequence[Stmt], around: Stmt) -> Stmt:
    """The statements `listed`, within `around`, with rows in pairs."""
    products = [one for one in listed if _is_product(one)]
    stored = {_place_of(one): one for one in products}
    pairs = [_Pair(stored[a], stored[b]) for a, b in _pairs(products)]
    of_last = {_place_of(pair.second): pair for pair in pairs}
    kept: dict[Expr, Store] = {}
    made: list[Stmt] = []
    for one in listed:
        if not _is_product(one):
            made.append(one)
        elif (pair := of_last.get(_place_of(one))) is None:
            kept[_place_of(one)] = one
        else:
            made += pair.both(kept.get(_place_of(pair.first), one), one)
    whole: Stmt = seq(
        *(pair.enter() for pair in pairs),
        _with_body(around, seq(*made)),
        *(pair.leave() for pair in pairs),
    )
    for pair in reversed(pairs):
        whole = Alloc(pair.lower, Alloc(pair.upper, whole))
    return whole


def _with_body(around: Stmt, body: Stmt) -> Stmt:
    if not isinstance(around, For):
        return body
    return replace(around, body=_with_body(around.body, body))


def _pairs(products: Sequence[Store]) -> Iterator[tuple[Expr, Expr]]:
    """The sums that are computed together: of the same columns, in the order of the text; one that
    is left with itself.
    """
    columns: dict[Expr, list[Expr]] = {}
    for one in products:
        columns.setdefault(_place_of(one), []).append(_operands(one)[1])
    groups: dict[tuple[Expr, ...], list[Expr]] = {}
    for own, read in columns.items():
        groups.setdefault(tuple(read), []).append(own)
    for alike in groups.values():
        yield from zip(alike[::2], alike[1::2], strict=False)
        if len(alike) % 2:
            yield alike[-1], alike[-1]


def _operands(product: Store) -> tuple[Expr, Reinterpret]:
    """Eight elements of a row, and those of four columns."""
    match _call_of(product):
        case Call(_, (Load(), Broadcast(row), Reinterpret(Load()) as columns)):
            return row, columns
    raise InternalError(
        f"row_pairs: '{product.buffer.name}' gets {print_expr(_call_of(product))}; expected a row "
        "that all lanes share, and columns in memory.",
        code="lower-row-pairs",
    )


class _Pair:
    """Two sums, or one beside itself. lower, upper: the sums of two columns each of both rows."""

    def __init__(self, first: Store, second: Store) -> None:
        self.first = first
        self.second = second
        kind = _sum_of(first).dtype
        self.lower, self.upper = (
            Buffer(f"{first.buffer.name}_{end}", kind, (), "register") for end in ("lower", "upper")
        )

    def enter(self) -> Stmt:
        """Read the sums."""
        a, b = (Var(name, self.lower.type) for name in "ab")
        halves = seq(
            Store(self.lower, (), Shuffle(a, b, LOWER)), Store(self.upper, (), Shuffle(a, b, UPPER))
        )
        return LetStmt(a, _sum_of(self.first), LetStmt(b, _sum_of(self.second), halves))

    def leave(self) -> Stmt:
        """Store them again."""
        rows = [_stored(self.first, self._joined(LOWER))]
        if self.second is not self.first:
            rows.append(_stored(self.second, self._joined(UPPER)))
        return seq(*rows)

    def _joined(self, order: tuple[int, ...]) -> Expr:
        return Shuffle(Load(self.lower, ()), Load(self.upper, ()), order)

    def both(self, first: Store, second: Store) -> list[Stmt]:
        """What both get of four columns."""
        (row, columns), (other, _) = _operands(first), _operands(second)
        a, b, c, d = (_column(columns.value, number) for number in range(COLUMNS))
        rows, unit = Vector((row, row, other, other)), _call_of(first).intrinsic
        return [
            Store(half, (), Call(unit, (Load(half, ()), rows, Vector(pair))), block=first.block)
            for half, pair in ((self.lower, (a, b, a, b)), (self.upper, (c, d, c, d)))
        ]


def _stored(product: Store, value: Expr) -> Stmt:
    """The store of another value, in the same lanes."""
    chosen = product.value
    own = replace(chosen, on_true=value) if isinstance(chosen, Select) else value
    return replace(product, value=own)


def _column(load: Expr, number: int) -> Expr:
    """The elements of one column, of the load of four, as a number."""

    def part(node: Node) -> Node:
        match node:
            case Ramp(base, stride, lanes):
                each = lanes // COLUMNS
                start = const(number * each * stride, base.dtype)
                return Ramp(add(base, start), stride, each)
            case Broadcast(value, lanes):
                return Broadcast(value, lanes // COLUMNS)
        return node

    return Reinterpret(transform(load, part), INT64)
