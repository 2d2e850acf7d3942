"""What the block of a reduction combines, and how: read back from its stores.

A sum, a product, a minimum, a maximum, any and all are seen by their operator. Every other reducer
names its new values by Lets, as many around each store's value as the block has stores:

    best[vi] = let(x0, A[vi, vk], let(x1, vk, select(x0 < best[vi] ..., best[vi], x0)))
    at[vi] = let(x0, A[vi, vk], let(x1, vk, select(x0 < best[vi] ..., at[vi], x1)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..buffer import Load
from ..expr import Add, And, Binary, Call, Expr, Let, Max, Min, Mul, Or, Var, const
from ..lowered import Fma
from ..node import Node
from ..stmt import Block, Store
from ..visit import free_vars, loads, stores, substitute, transform

_OPERATORS: dict[type[Expr], str] = {
    Add: "sum",
    Mul: "prod",
    Min: "min",
    Max: "max",
    Or: "any",
    And: "all",
}


@dataclass(frozen=True, slots=True)
class Update:
    """One step of a reduction: the accumulators become `results`.

    values: what the point brings, one for each accumulator. own, new: the variables that stand, in
    `results`, for what the accumulators hold and for `values`.
    reducer: "sum", "prod", "min", "max", "max_any", "any" or "all"; None for any other.
    """

    values: tuple[Expr, ...]
    own: tuple[Var, ...]
    new: tuple[Var, ...]
    results: tuple[Expr, ...]
    reducer: str | None = None

    def stored(self, own: Sequence[Expr], new: Sequence[Expr]) -> tuple[Expr, ...]:
        """What becomes of accumulators that hold `own` when `new` comes to them, as a block stores
        it.
        """
        held = dict(zip(self.own, own, strict=True))
        if self.reducer is not None:
            values = {**held, **dict(zip(self.new, new, strict=True))}
            return tuple(substitute(result, values) for result in self.results)
        return tuple(named_update(substitute(r, held), self.new, new) for r in self.results)


def named_update(result: Expr, names: Sequence[Var], values: Sequence[Expr]) -> Expr:
    """`result` below Lets of its own that bind copies of `names` to `values`."""
    copies = tuple(Var(f"x{n}", value.dtype) for n, value in enumerate(values))
    update = substitute(result, dict(zip(names, copies, strict=True)))
    for var, value in zip(reversed(copies), reversed(values), strict=True):
        update = Let(var, value, update)
    return update


def read_update(block: Block) -> Update | None:
    """What the block of a reduction does at each point; None where its form does not say."""
    found = stores(block.body)
    if len(found) == 1 and not isinstance(found[0].value, Let):
        return _operator(found[0])
    return _named(found)


def _operator(store: Store) -> Update | None:
    accumulator = Load(store.buffer, store.indices)
    own, new = Var("own", store.buffer.type), Var("new", store.buffer.type)
    value: Expr | None = None
    result: Expr | None = None
    reducer = ""
    match store.value:
        case Fma(a, b, c) if c == accumulator:
            value, result, reducer = Mul(a, b), Add(own, new), "sum"
        case Call(intrinsic, (a, b)) if intrinsic.name == "max_any" and accumulator in (a, b):
            value = b if a == accumulator else a
            result, reducer = Call(intrinsic, (own, new)), "max_any"
        case Load() as same if same == accumulator:  # a folded neutral element was combined
            value, result, reducer = const(0, same.dtype), Add(own, new), "sum"
        case (Binary() | And() | Or()) as update if type(update) in _OPERATORS:
            if accumulator in (update.a, update.b):
                value = update.b if update.a == accumulator else update.a
                result, reducer = type(update)(own, new), _OPERATORS[type(update)]
    if value is None or result is None or accumulator in loads(value):
        return None
    return Update((value,), (own,), (new,), (result,), reducer)


def _named(found: Sequence[Store]) -> Update | None:
    own = tuple(Var(f"own{n}", store.buffer.type) for n, store in enumerate(found))
    new = tuple(Var(f"new{n}", store.buffer.type) for n, store in enumerate(found))
    accumulators = {
        Load(store.buffer, store.indices): var for store, var in zip(found, own, strict=True)
    }

    def rule(node: Node) -> Node:
        return accumulators.get(node, node) if isinstance(node, Load) else node

    values: tuple[Expr, ...] | None = None
    results: list[Expr] = []
    for store in found:
        body, mine = store.value, []
        names: dict[Var, Expr] = {}
        for var in new:
            if not isinstance(body, Let):
                return None
            mine.append(body.value)
            names[body.var] = var
            body = body.body
        if values is not None and values != tuple(mine):
            return None
        values = tuple(mine)
        result = transform(substitute(body, names), rule)
        if loads(result) or not free_vars(result) <= {*own, *new}:
            return None
        results.append(result)
    if values is None or any(load in accumulators for value in values for load in loads(value)):
        return None
    return Update(values, own, new, tuple(results))
