"""Simplify integer and boolean expressions, given the ranges of the variables.

Sums become linear forms in a fixed order; quotients, remainders, comparisons, minima and selects
that the ranges decide disappear. Arithmetic on data (floats, and integers that come from a tensor,
a conversion or a call) is left as written: it may wrap around, and a proof compares it with its
definition. Idempotent; the same object comes back when nothing applied.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..buffer import Load
from ..dim import Dim
from ..dtype import BOOL, INT64, DType
from ..expr import (
    EQ,
    FALSE,
    LE,
    LT,
    NE,
    TRUE,
    Add,
    And,
    Compare,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
    compare,
    const,
    floordiv,
    floormod,
    is_const,
)
from ..lowered import Broadcast, Ramp
from ..node import NodeT
from ..stmt import (
    NOTHING,
    SHARED_OUT,
    Alloc,
    Block,
    For,
    ForKind,
    If,
    LetStmt,
    Seq,
    Stmt,
    Store,
    WarpSum,
    seq,
)
from ..visit import free_vars, substitute
from .bounds import bounds, form_bounds
from .iterations import LaneRange, iterations
from .linear import UNBOUNDED, Interval, Linear, Ranges, combine, expression, linear, rejoin
from .narrow import is_point, narrowed
from .sums import is_data, simplify_sum

_SUMS = (Add, Sub, Mul)
_BOOLEANS = (Compare, And, Or, Not)
_NUMBERS = (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)


class Known(dict[Var, Interval]):
    """The ranges of one scope, complete when it is first asked, and what its loads became: one that
    stands in several places, as one object, is simplified once.
    """

    __slots__ = ("loads",)

    def __init__(self, ranges: Ranges) -> None:
        super().__init__(ranges)
        self.loads: dict[int, tuple[Load, Expr]] = {}  # by identity of the loads, which are kept


def simplify(expr: Expr, ranges: Ranges | None = None) -> Expr:
    """The simplest expression found that is equal to `expr` for all values in `ranges`."""
    return _expr(expr, ranges or {})


def simplify_stmt(stmt: Stmt, ranges: Ranges | None = None) -> Stmt:
    """The statement with its expressions simplified, decided branches and empty loops gone.

    A loop that runs once is replaced by its body; a loop that never runs disappears.
    """
    return _stmt(stmt, Known(ranges or {}))


def _expr(expr: Expr, ranges: Ranges) -> Expr:
    if isinstance(expr, Var):
        low, high = ranges.get(expr, UNBOUNDED)
        return expr if low is None or low != high else const(low, expr.type)
    if isinstance(expr, Const):
        return expr
    if isinstance(expr, Select):
        return _select(expr, ranges)
    if isinstance(expr, _SUMS) and expr.dtype == INT64 and not is_data(expr):
        return simplify_sum(expr, ranges, lambda part: _expr(part, ranges))
    if isinstance(expr, Load) and isinstance(ranges, Known):
        if id(expr) not in ranges.loads:
            ranges.loads[id(expr)] = expr, _operands(expr, ranges)
        return ranges.loads[id(expr)][1]
    node = _operands(expr, ranges)
    if isinstance(node, _BOOLEANS):
        return _boolean(node, ranges)
    if not isinstance(node, _NUMBERS):
        return node
    if not node.dtype.is_integer:
        return node
    return _integer(node, ranges) if node.dtype.lanes == 1 else _vector(node)


def _operands(node: NodeT, ranges: Ranges) -> NodeT:
    """The node with its expressions simplified."""
    return node.map_children(
        lambda child: _expr(child, ranges) if isinstance(child, Expr) else child
    )


def _vector(node: Expr) -> Expr:
    """ramp + broadcast -> ramp; broadcast op broadcast -> broadcast"""
    if not isinstance(node, Add | Sub | Mul):
        return node
    a, b = node.a, node.b
    match a, b:
        case Broadcast(), Broadcast():
            return Broadcast(type(node)(a.value, b.value), a.lanes)
        case Ramp(), Broadcast() if not isinstance(node, Mul):
            return Ramp(type(node)(a.base, b.value), a.stride, a.lanes)
        case Broadcast(), Ramp() if isinstance(node, Add):
            return Ramp(Add(a.value, b.base), b.stride, b.lanes)
    return node


def _integer(node: Expr, ranges: Ranges) -> Expr:
    result = _integer_rules(node, ranges)
    return node if result == node else result


def _integer_rules(node: Expr, ranges: Ranges) -> Expr:
    if is_data(node):
        return node
    low, high = bounds(node, ranges)
    if low is not None and low == high:
        return const(low, node.dtype)
    if not isinstance(node, Add | Sub | Mul) and _may_wrap(node.dtype):
        return node
    match node:
        case FloorDiv(a, Const() as c) if c.value > 0:
            return _floordiv(a, int(c.value), ranges)
        case FloorMod(a, Const() as c) if c.value > 0:
            return _floormod(a, int(c.value), ranges)
        case Min(a, b) | Max(a, b):
            return _extremum(node, a, b, ranges)
        case Add() | Sub() | Mul():
            form = rejoin(linear(node))
            if not form.terms:
                return const(form.constant, node.dtype)
            return expression(form)
    return node


def _may_wrap(dtype: DType) -> bool:
    """Whether arithmetic on variables may wrap around: that on int64 is index arithmetic, proved
    not to.
    """
    return dtype != INT64


def _extremum(node: Expr, a: Expr, b: Expr, ranges: Ranges) -> Expr:
    low, high = form_bounds(linear(a) - linear(b), ranges)
    smaller, larger = (a, b) if isinstance(node, Min) else (b, a)
    if high is not None and high <= 0:  # a <= b
        return smaller
    return larger if low is not None and low >= 0 else node


def _divided(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """form = quotient * divisor + rest, with every coefficient of the quotient integral."""
    whole = tuple((atom, c // divisor) for atom, c in form.terms if c % divisor == 0)
    rest = tuple((atom, c) for atom, c in form.terms if c % divisor != 0)
    return Linear(whole, form.constant // divisor), Linear(rest, form.constant % divisor)


def _floordiv(a: Expr, divisor: int, ranges: Ranges) -> Expr:
    if isinstance(a, FloorDiv) and isinstance(a.b, Const) and a.b.value > 0:  # x//b//c -> x//(b*c)
        return _floordiv(a.a, divisor * int(a.b.value), ranges)
    form = linear(a)
    quotient, rest = _divided(form, divisor)
    low, high = form_bounds(rest, ranges)
    if low is not None and high is not None and low // divisor == high // divisor:
        # (q*c + r)//c -> q + r//c, and r//c is one number
        return expression(Linear(quotient.terms, quotient.constant + low // divisor))
    reduced = _common_factor(rest, divisor, ranges)
    if reduced is not None:  # (q*c + g*r + s)//c -> q + r//(c/g), 0 <= s < g
        smaller, factor = reduced
        inner = floordiv(expression(smaller), const(divisor // factor, a.dtype))
        return expression(
            combine(
                (*quotient.terms, *linear(inner).terms), quotient.constant + linear(inner).constant
            )
        )
    if quotient.terms or quotient.constant:
        return expression(
            combine(
                (*quotient.terms, (floordiv(expression(rest), const(divisor, a.dtype)), 1)),
                quotient.constant,
            )
        )
    return floordiv(a, const(divisor, a.dtype))


def _common_factor(form: Linear, divisor: int, ranges: Ranges) -> tuple[Linear, int] | None:
    """form // divisor with terms below a common factor of the others dropped: (smaller form,
    factor).
    """
    for factor in sorted({math.gcd(c, divisor) for _, c in form.terms}, reverse=True):
        if factor == 1:
            continue
        kept, dropped = _divided(form, factor)
        low, high = form_bounds(dropped, ranges)
        if low is not None and high is not None and low >= 0 and high < factor:
            return kept, factor
    return None


def _floormod(a: Expr, divisor: int, ranges: Ranges) -> Expr:
    _, rest = _divided(linear(a), divisor)
    low, high = form_bounds(rest, ranges)
    if low is not None and high is not None and low // divisor == high // divisor:
        # (q*c + r)%c -> r - c*(r//c), and r//c is one number
        return expression(Linear(rest.terms, rest.constant - low // divisor * divisor))
    return floormod(expression(rest), const(divisor, a.dtype))


def _boolean(node: Expr, ranges: Ranges) -> Expr:
    match node:
        case And(a, b):
            if is_const(a, 0) or is_const(b, 0):
                return _same_lanes(FALSE, node)
            return b if is_const(a, 1) else a if is_const(b, 1) or a == b else node
        case Or(a, b):
            if is_const(a, 1) or is_const(b, 1):
                return _same_lanes(TRUE, node)
            return b if is_const(a, 0) else a if is_const(b, 0) or a == b else node
        case Not(Const() as a):
            return const(not a.value, BOOL)
        case Not(Not(a)) if not is_data(a):
            return a
    if isinstance(node, Compare) and node.a.dtype.is_integer and node.a.dtype.lanes == 1:
        return _compare(node, ranges)
    return node


def _same_lanes(value: Expr, like: Expr) -> Expr:
    return value if like.dtype.lanes == 1 else Broadcast(value, like.dtype.lanes)


def _compare(node: Compare, ranges: Ranges) -> Expr:
    if isinstance(node.a, Const) and isinstance(node.b, Const):
        return compare(type(node), node.a, node.b)
    a, b = linear(node.a), linear(node.b)
    if _may_wrap(node.a.dtype) or is_data(node):
        return node
    form = rejoin(a - b)
    low, high = form_bounds(form, ranges)
    decided: bool | None = None
    match node:
        case LT() | LE():
            least = 0 if isinstance(node, LT) else 1  # the least difference that is too large
            if high is not None and high < least:
                decided = True
            elif low is not None and low >= least:
                decided = False
        case EQ() | NE():
            apart = (low is not None and low > 0) or (high is not None and high < 0)
            same = low == high == 0
            if apart or same:
                decided = same == isinstance(node, EQ)
    if decided is not None:
        return const(decided, BOOL)
    return _arranged(node, form)


def _arranged(node: Compare, form: Linear) -> Expr:
    """The comparison with terms on the left and the constant on the right; where dims are there to
    compare with, these alone.
    """
    positive = combine(form.terms, 0)
    sizes = tuple((atom, c) for atom, c in positive.terms if isinstance(atom, Dim) and c < 0)
    others = tuple(term for term in positive.terms if term not in sizes)
    if sizes and others:
        left, right = Linear(others, form.constant), Linear(sizes, 0).scaled(-1)
        match others:
            case ((FloorDiv(a, Const() as c), 1),) if c.value > 0 and isinstance(node, LT):
                # a//c + k < n -> a + k*c < n*c: parts of a fused loop say the same in one way
                factor = int(c.value)
                left = linear(a) + Linear((), form.constant * factor)
                return _arranged(node, left - right.scaled(factor))
        return _compared(node, expression(left), expression(right))
    if all(c < 0 for _, c in positive.terms):  # -x < c -> -c < x
        return _compared(node, const(form.constant, node.a.dtype), expression(positive.scaled(-1)))
    return _compared(node, expression(positive), const(-form.constant, node.a.dtype))


def _compared(node: Compare, left: Expr, right: Expr) -> Expr:
    return node if (left, right) == (node.a, node.b) else type(node)(left, right)


def _select(expr: Select, ranges: Ranges) -> Expr:
    condition = _expr(expr.condition, ranges)
    if is_const(condition, 1):
        return _expr(expr.on_true, ranges)
    if is_const(condition, 0):
        return _expr(expr.on_false, ranges)
    on_true, on_false = _expr(expr.on_true, ranges), _expr(expr.on_false, ranges)
    if condition is expr.condition and on_true is expr.on_true and on_false is expr.on_false:
        return expr
    return Select(condition, on_true, on_false)


def _stmt(stmt: Stmt, ranges: Known) -> Stmt:
    match stmt:
        case For():
            return _for(stmt, ranges)
        case If():
            return _if(stmt, ranges)
        case Seq():
            body = tuple(_stmt(child, ranges) for child in stmt.body)
            kept = tuple(child for child in body if child != NOTHING)
            same = len(kept) == len(stmt.body) and all(
                a is b for a, b in zip(kept, stmt.body, strict=True)
            )
            return stmt if same and len(kept) != 1 else seq(*kept)
        case Block():
            return _block(stmt, ranges)
        case Alloc():
            inner = _stmt(stmt.body, ranges)
            return (
                NOTHING
                if inner == NOTHING
                else stmt
                if inner is stmt.body
                else Alloc(stmt.buffer, inner)
            )
        case LetStmt():
            value = _expr(stmt.value, ranges)
            inner = _stmt(stmt.body, ranges)
            same = value is stmt.value and inner is stmt.body
            return stmt if same else LetStmt(stmt.var, value, inner)
        case Store():
            return _store(stmt, ranges)
        case WarpSum():
            sums = tuple(_operands(store, ranges) for store in stmt.sums)
            a, b = (
                replace(f, loads=tuple(_operands(load, ranges) for load in f.loads))
                for f in (stmt.a, stmt.b)
            )
            return replace(stmt, sums=sums, a=a, b=b)
    return _operands(stmt, ranges)


def _store(stmt: Store, ranges: Ranges) -> Stmt:
    node = _operands(stmt, ranges)
    if node.mask is not None and isinstance(node.mask, Broadcast):
        if is_const(node.mask.value, 0):
            return NOTHING
        if is_const(node.mask.value, 1):
            return replace(node, mask=None)
    return node


def _for(stmt: For, ranges: Known, *, in_unit: bool = False) -> Stmt:
    if stmt.extent == 0:
        return NOTHING
    if stmt.extent == 1 and stmt.kind not in SHARED_OUT and not in_unit:
        return _stmt(substitute(stmt.body, {stmt.var: const(0, stmt.var.type)}), ranges)
    values = LaneRange((0, stmt.extent - 1)) if in_unit else iterations(stmt)
    known = Known({**ranges, stmt.var: values})
    if stmt.kind is ForKind.TENSORIZED and isinstance(stmt.body, For):
        body = _for(stmt.body, known, in_unit=True)
    else:
        body = _stmt(stmt.body, known)
    if body == NOTHING:
        return NOTHING
    return stmt if body is stmt.body else replace(stmt, body=body)


def _if(stmt: If, ranges: Known) -> Stmt:
    condition = _expr(stmt.condition, ranges)
    if is_const(condition, 1):
        return _stmt(stmt.then, ranges)
    if is_const(condition, 0):
        return NOTHING if stmt.orelse is None else _stmt(stmt.orelse, ranges)
    then = _stmt(stmt.then, Known(narrowed(ranges, condition)))
    outside = Known(narrowed(ranges, Not(condition)))
    orelse = None if stmt.orelse is None else _stmt(stmt.orelse, outside)
    orelse = None if orelse == NOTHING else orelse
    if then == NOTHING:
        return NOTHING if orelse is None else If(_expr(Not(condition), ranges), orelse)
    if condition is stmt.condition and then is stmt.then and orelse is stmt.orelse:
        return stmt
    return If(condition, then, orelse)


def _block(stmt: Block, ranges: Known) -> Stmt:
    predicate = _expr(stmt.predicate, ranges)
    if is_const(predicate, 0):
        return NOTHING
    outer, ranges = ranges, Known(narrowed(ranges, predicate))
    kept = {**ranges, **{var: outer[var] for var in outer if is_point(ranges[var])}}
    bindings = tuple(_expr(binding, kept) for binding in stmt.bindings)
    inner = Known(ranges)
    for it, binding in zip(stmt.iters, bindings, strict=True):
        found = bounds(binding, ranges)
        values = _within(found, it.extent, stmt.padded)
        in_lanes = any(isinstance(ranges.get(var), LaneRange) for var in free_vars(binding))
        inner[it.var] = LaneRange(found if is_point(values) else values) if in_lanes else values
    body = _stmt(stmt.body, Known(narrowed(inner, stmt.counts)))
    init = None if stmt.init is None else _stmt(stmt.init, inner)
    counts = _expr(stmt.counts, inner)
    same = (
        counts is stmt.counts
        and predicate is stmt.predicate
        and body is stmt.body
        and init is stmt.init
    )
    if same and all(a is b for a, b in zip(bindings, stmt.bindings, strict=True)):
        return stmt
    fields = (
        stmt.name,
        stmt.iters,
        bindings,
        body,
        init,
        predicate,
        stmt.role,
        stmt.family,
        stmt.padded,
    )
    return Block(*fields, stmt.recomputed, counts)


def _within(point: Interval, extent: int, padded: bool) -> Interval:
    """The range of an iteration variable: a point outside the domain is computed in padded blocks
    only.
    """
    if padded:
        return point
    low, high = point
    return (
        0 if low is None else max(low, 0),
        extent - 1 if high is None else min(high, extent - 1),
    )


def provable(condition: Expr, ranges: Ranges) -> bool:
    """Whether `condition` holds for all values in `ranges`, as far as this simplifier can see."""
    return is_const(simplify(condition, ranges), 1)
