"""Whether a nest of loops does what a tensor intrinsic does; else where the two differ first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis.linear import Ranges, linear
from ..analysis.simplify import simplify
from ..buffer import Buffer, Load
from ..dtype import INT32, DType
from ..expr import Add, Call, Cast, Const, Expr, Mul, Var, add, index, mul
from ..func import PrimFunc
from ..lowered import Fma
from ..node import Node
from ..number import integer_range
from ..stmt import Block, For, If, Role, Stmt, Store
from ..target.target import Target
from ..text.printer import print_expr
from ..visit import free_vars, stores, substitute, transform
from .tensor_intrinsics import TensorIntrinsic
from .word_bits import WORD_BITS, WordBits, word_bits


@dataclass(frozen=True, slots=True)
class Operand:
    """A load of the nest that is an operand of the intrinsic.

    lanes_differ: each lane reads elements of its own; otherwise all read the same ones. bits: where
    elements are no loads, but numbers of few bits in a word; `load` stands for them.
    """

    load: Load
    lanes_differ: bool
    bits: WordBits | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A nest that is one instruction: its two loops, what it stores, and the operands in the order
    of the intrinsic's definition.
    """

    lanes: For
    points: For
    store: Store
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What a nest has, what the intrinsic needs in its place, and how a schedule may bring it
    about; an empty hint where it cannot.
    """

    found: str
    expected: str
    hint: str = ""


def match_intrinsic(
    intrinsic: TensorIntrinsic, nest: For, ranges: Ranges, target: Target | None = None
) -> Match | Mismatch:
    """Compare a nest of a block, or of a store, with the definition of an intrinsic.

    ranges: of the loops around the nest. target: one that has the intrinsic, in whose registers
    its lanes must fit; None: those of any. The operands may come in any order of sums and products;
    where the definition has an operand per lane, all lanes may share one.
    """
    loops, body = chain(nest)
    counts = [loop.extent for loop in loops]
    allowed = intrinsic.lanes if target is None else intrinsic.lanes_on(target)
    if len(loops) != 2 or counts[0] not in allowed or counts[1] != intrinsic.points:
        shown = ", ".join(f"'{loop.var.name}' of {loop.extent}" for loop in loops)
        lanes = " or ".join(map(str, allowed))
        return Mismatch(
            f"its loops are {shown}",
            f"a loop of {lanes} lanes and, directly inside, one of {intrinsic.points} reduction "
            "points",
            "split makes loops of these extents, reorder puts them innermost.",
        )
    store = sole_store(body)
    if isinstance(store, Mismatch):
        return store
    known = {**ranges, **{loop.var: (0, loop.extent - 1) for loop in loops}}
    return _Matcher(intrinsic, loops[0], loops[1], known).match(store)


def chain(nest: For) -> tuple[list[For], Stmt]:
    """The loops of a nest that stand directly in each other, and what the innermost one holds."""
    loops, body = [nest], nest.body
    while isinstance(body, For):
        loops.append(body)
        body = body.body
    return loops, body


def sole_store(body: Stmt) -> Store | Mismatch:
    """The one store that the nest runs at each of its points, over its loops' variables."""
    if not isinstance(body, Block | Store | If):
        return Mismatch(f"its innermost loop holds a {type(body).__name__}", "one block alone")
    found = stores(body.body if isinstance(body, Block) else body)
    if len(found) > 1:
        names = ", ".join(f"'{store.buffer.name}'" for store in found)
        return Mismatch(f"its block stores to {names}", "a block of one tensor")
    if not isinstance(body, Block):
        return found[0]
    if body.role is not Role.COMPUTE:
        return Mismatch(f"block '{body.name}' is no computation ({body.role.value})", "a reduction")
    values = {it.var: binding for it, binding in zip(body.iters, body.bindings, strict=True)}
    return substitute(found[0], values)


def match_update(func: PrimFunc, store: Store) -> tuple[Load, ...] | Mismatch:
    """The loads of a store that are the inputs of a definition, in their order, where the store
    does to an element what the definition's one block does.
    """
    (pattern,) = stores(func.blocks[0].body)
    loads: dict[Buffer, Load] = {}
    difference = _unify(pattern.value, store.value, loads, 0)
    if difference is not None:
        return Mismatch(
            f"it has {_typed(difference.found)}",
            f"{_typed(difference.expected)} of {print_expr(pattern.value)}",
        )
    own = loads.pop(pattern.buffer)
    if own.buffer is not store.buffer or own.indices != store.indices:
        return Mismatch(
            f"it adds to {print_expr(own)} and stores to "
            f"{print_expr(Load(store.buffer, store.indices))}",
            "one element for both",
        )
    return tuple(loads[buffer] for buffer in func.inputs)


@dataclass(frozen=True, slots=True)
class _Difference:
    """Where two expressions differ, and how much of them was the same before."""

    depth: int
    found: Expr
    expected: Expr


class _Matcher:
    def __init__(self, intrinsic: TensorIntrinsic, lanes: For, points: For, ranges: Ranges) -> None:
        self.intrinsic = intrinsic
        self.lanes = lanes
        self.points = points
        self.ranges = ranges
        self._bits: dict[Buffer, WordBits] = {}  # by what stands for them

    def match(self, store: Store) -> Match | Mismatch:
        plain = transform(store, self._without_bits)
        assert isinstance(plain, Store)
        found = match_update(self.intrinsic.define(self.lanes.extent), plain)
        if isinstance(found, Mismatch):
            return found
        own = Load(store.buffer, store.indices)
        steps = self._steps(own)
        if steps != (1, 0):
            return self._strides(own, steps, "1 and 0")
        return self._operands(found, store)

    def _operands(self, loads: Sequence[Load], store: Store) -> Match | Mismatch:
        operands: list[Operand] = []
        for load in loads:
            bits = self._bits.get(load.buffer)
            if bits is not None:
                steps = self._steps(bits.word)
                if steps != (1, 0):
                    return self._strides(bits.word, steps, "1 and 0")
                operands.append(Operand(load, True, bits))
                continue
            if load.buffer.scope == "register":
                return Mismatch(
                    f"'{load.buffer.name}' is kept in registers",
                    "operands in memory, which the instruction or a load reads",
                    'stage it in scope "thread".',
                )
            steps = self._steps(load)
            if steps not in ((self.intrinsic.points, 1), (0, 1)):
                allowed = f"{self.intrinsic.points} and 1, or 0 and 1"
                return self._strides(load, steps, allowed)
            operands.append(Operand(load, steps[0] != 0))
        return Match(self.lanes, self.points, store, tuple(operands))

    def _without_bits(self, node: Node) -> Node:
        """A number of few bits as the element of an operand, of the first type that holds it, that
        stands for it.
        """
        points = self.intrinsic.points
        if not isinstance(node, Expr) or self.intrinsic.carried != INT32:
            return node
        found = word_bits(node, self.points.var, WORD_BITS // points)
        kinds = [b.type for b in self.intrinsic.define(self.lanes.extent).inputs]
        kind = next((k for k in kinds if found and k.is_integer and _holds(k, found.mask)), None)
        if found is None or kind is None:
            return node
        known = next((buffer for buffer, bits in self._bits.items() if bits == found), None)
        standing = known or Buffer(found.word.buffer.name, kind, (self.lanes.extent, points))
        self._bits[standing] = found
        return Cast(Load(standing, (self.lanes.var, self.points.var)), node.dtype)

    def _strides(self, load: Load, steps: tuple[int | None, int | None], allowed: str) -> Mismatch:
        lane, point = ("no fixed number of" if step is None else str(step) for step in steps)
        return Mismatch(
            f"from one iteration to the next of '{self.lanes.var.name}' and of "
            f"'{self.points.var.name}', {print_expr(load)} moves {lane} and {point} elements",
            allowed,
            "cache_read makes a copy, and transform_layout puts its elements in this order.",
        )

    def _steps(self, load: Load) -> tuple[int | None, int | None]:
        """How many elements of its buffer a load moves with each of the two loops; None where the
        distance is not one number.
        """
        offset: Expr = index(0)
        for extent, item in zip(load.buffer.shape, load.indices, strict=True):
            offset = add(mul(offset, index(extent)), item)
        form = linear(simplify(offset, self.ranges))
        return (_step(form.terms, self.lanes.var), _step(form.terms, self.points.var))


def _unify(pattern: Expr, expr: Expr, loads: dict[Buffer, Load], depth: int) -> _Difference | None:
    """Compare an expression with one of the definition; its loads are kept in `loads`."""
    if isinstance(expr, Fma):
        expr = Add(Mul(expr.a, expr.b), expr.c)
    if isinstance(pattern, Load):
        return _operand(pattern, expr, loads, depth)
    if not _same_operation(pattern, expr):
        return _Difference(depth, expr, pattern)
    best: _Difference | None = None
    for order in _orders(expr):
        found = dict(loads)
        difference = _children(pattern, order, found, depth + 1)
        if difference is None:
            loads.update(found)
            return None
        if best is None or difference.depth > best.depth:
            best = difference
    return best


def _children(
    pattern: Expr, order: tuple[Expr, ...], loads: dict[Buffer, Load], depth: int
) -> _Difference | None:
    wanted = [child for child in pattern.children() if isinstance(child, Expr)]
    for number, (child, expr) in enumerate(zip(wanted, order, strict=True)):
        difference = _unify(child, expr, loads, depth + number)
        if difference is not None:
            return difference
    return None


def _operand(
    pattern: Load, expr: Expr, loads: dict[Buffer, Load], depth: int
) -> _Difference | None:
    fits = isinstance(expr, Load) and expr.dtype == pattern.dtype and expr.mask is None
    known = loads.setdefault(pattern.buffer, expr) if isinstance(expr, Load) and fits else None
    return None if fits and known == expr else _Difference(depth, expr, pattern)


def _same_operation(pattern: Expr, expr: Expr) -> bool:
    """Whether two expressions do the same with their operands; those without any are the same."""
    if isinstance(pattern, Call) and isinstance(expr, Call):
        return pattern.intrinsic == expr.intrinsic and pattern.dtype == expr.dtype
    if isinstance(pattern, Const | Var):
        return pattern == expr
    return type(pattern) is type(expr) and pattern.dtype == expr.dtype


def _orders(expr: Expr) -> Iterator[tuple[Expr, ...]]:
    """The operands of an expression, in each order that means the same."""
    operands = tuple(child for child in expr.children() if isinstance(child, Expr))
    yield operands
    if isinstance(expr, Add | Mul):
        yield operands[::-1]


def _holds(kind: DType, number: int) -> bool:
    return number <= integer_range(kind)[1]


def _step(terms: tuple[tuple[Expr, int], ...], var: Var) -> int | None:
    step = 0
    for atom, coefficient in terms:
        if atom is var:
            step = coefficient
        elif var in free_vars(atom):
            return None
    return step


def _typed(expr: Expr) -> str:
    return f"{expr.dtype} {print_expr(expr)}"
