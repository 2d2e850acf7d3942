"""What the blocks of a canonical function define: target[indices] = a value, or a reduction.

Canonical, as te.func and a canonical form are: blocks stand at the root in the order of their
definition, each over its whole domain in plain loops of its own, init inside, nothing folded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from .buffer import Buffer, Load
from .errors import IRError
from .expr import TRUE, Add, Binary, Call, Const, Expr, Max, Min, Mul, Var, const
from .func import PrimFunc
from .lowered import Fma
from .stmt import Alloc, Block, For, IterKind, IterVar, Role, Seq, Stmt, Store

_REDUCERS: dict[type[Binary], str] = {Add: "sum", Mul: "prod", Min: "min", Max: "max"}


@dataclass(frozen=True, slots=True)
class Definition:
    """target[indices] = value at each point of `axes`, or value combined over `reduced`.

    reducer: "sum", "prod", "min", "max", "max_any", or None when nothing is reduced.
    initial: what the reduction starts from.
    """

    block: str
    target: Buffer
    indices: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    reduced: tuple[IterVar, ...]
    value: Expr
    reducer: str | None = None
    initial: Expr | None = None

    @property
    def plain(self) -> bool:
        """Whether each point of the axes is the element of the target at the same indices."""
        if len(self.axes) != len(self.indices):
            return False
        return all(i is axis.var for i, axis in zip(self.indices, self.axes, strict=True))

    @property
    def steps(self) -> int:
        """Values that are combined into one element."""
        return math.prod(axis.extent for axis in self.reduced)


def definitions(func: PrimFunc) -> tuple[Definition, ...]:
    """What each block of a canonical function defines, in order.

    Raises: IRError when the function is not canonical.
    """
    return tuple(d for block, loops in _blocks(func, func.body, ()) for d in _define(block, loops))


def _blocks(
    func: PrimFunc, stmt: Stmt, loops: tuple[For, ...]
) -> Iterator[tuple[Block, tuple[For, ...]]]:
    match stmt:
        case For():
            yield from _blocks(func, stmt.body, (*loops, stmt))
        case Alloc() if not loops:
            yield from _blocks(func, stmt.body, loops)
        case Seq() if not loops:
            for child in stmt.body:
                yield from _blocks(func, child, loops)
        case Block():
            yield stmt, loops
        case _:
            raise _not_canonical(func.name, f"a {type(stmt).__name__} stands among its blocks")


def _not_canonical(name: str, why: str) -> IRError:
    return IRError(
        f"evaluate: '{name}' is not in canonical form: {why}.",
        code="evaluate-form",
        hints=("evaluate the function that te.func made, or its canonical form.",),
    )


def _define(block: Block, loops: tuple[For, ...]) -> Iterator[Definition]:
    if block.role is not Role.COMPUTE:
        raise _not_canonical(block.name, f"it is a {block.role.value} block")
    if block.predicate != TRUE:
        raise _not_canonical(block.name, "it has a predicate")
    extents = {loop.var: loop.extent for loop in loops}
    for axis, binding in zip(block.iters, block.bindings, strict=True):
        whole = isinstance(binding, Var) and extents.pop(binding, None) == axis.extent
        if not whole and not (isinstance(binding, Const) and axis.extent == 1):
            raise _not_canonical(block.name, f"'{axis.var.name}' is not a loop of its own")
    if extents:
        raise _not_canonical(block.name, f"loop '{next(iter(extents)).name}' repeats it")
    stores = block.body.body if isinstance(block.body, Seq) else (block.body,)
    for store in stores:
        if not isinstance(store, Store) or store.mask is not None:
            raise _not_canonical(block.name, "its body is not a plain store")
        yield _definition(block, store)


def _definition(block: Block, store: Store) -> Definition:
    axes = tuple(axis for axis in block.iters if axis.kind is IterKind.SPATIAL)
    reduced = tuple(axis for axis in block.iters if axis.kind is IterKind.REDUCE)
    if block.init is None and not reduced:
        return Definition(block.name, store.buffer, store.indices, axes, (), store.value)
    if not isinstance(block.init, Store) or isinstance(block.body, Seq):
        raise _not_canonical(block.name, "its initialisation stands elsewhere")
    reducer, value = _update(block, store)
    return Definition(
        block.name,
        store.buffer,
        store.indices,
        axes,
        reduced,
        value,
        reducer,
        block.init.value,
    )


def _update(block: Block, store: Store) -> tuple[str, Expr]:
    """The reducer of an update and the value that it combines with the accumulator."""
    accumulator, update = Load(store.buffer, store.indices), store.value
    match update:
        case Fma(a, b, c) if c == accumulator:
            return "sum", Mul(a, b)
        case Add() | Mul() | Min() | Max() if accumulator in (update.a, update.b):
            return _REDUCERS[type(update)], update.b if update.a == accumulator else update.a
        case Call() if update.intrinsic.name == "max_any" and accumulator in update.arguments:
            a, b = update.arguments
            return "max_any", b if a == accumulator else a
        case Load() if update == accumulator:  # a folded neutral element was combined
            return "sum", const(0, store.buffer.type)
    raise IRError(
        f"evaluate: block '{block.name}' combines its values in an unknown way; "
        "expected a sum, a product, a minimum or a maximum with its own element.",
        code="evaluate-reducer",
    )
