"""What the blocks of a canonical function define: target[indices] = a value, or a reduction.

Canonical, as te.func and a canonical form are: blocks stand at the root in the order of their
definition, each over its whole domain in plain loops of its own, init inside, nothing folded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..analysis.update import Update, read_update
from ..buffer import Buffer
from ..conditions import conjuncts
from ..errors import IRError
from ..expr import LT, TRUE, Const, Expr, Select, Var
from ..func import PrimFunc
from ..stmt import Alloc, Block, Extern, For, IterKind, IterVar, Role, Seq, Stmt, Store
from ..visit import loads, stores


@dataclass(frozen=True, slots=True)
class Definition:
    """targets[indices] = value at each point of `axes`, or value combined over `reduced`.

    values: one for each target, but none of a C function. update: how they are combined; None when
    nothing is reduced.
    initial: what the reduction starts from.
    extern: the call that gives the targets whole, where a C function does.
    Where the first axis is ordered, a value may read what the targets hold of earlier steps.
    """

    block: str
    targets: tuple[Buffer, ...]
    indices: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    reduced: tuple[IterVar, ...]
    values: tuple[Expr, ...]
    update: Update | None = None
    initial: tuple[Expr, ...] = ()
    extern: Extern | None = None

    @property
    def target(self) -> Buffer:
        """The first target: all have its shape."""
        return self.targets[0]

    @property
    def value(self) -> Expr:
        """The value of the first target."""
        return self.values[0]

    @property
    def reducer(self) -> str | None:
        """The name of a reducer of the language; None for another one, and where nothing is
        reduced.
        """
        return None if self.update is None else self.update.reducer

    @property
    def plain(self) -> bool:
        """Whether each point of the axes is the element of the target at the same indices."""
        if len(self.axes) != len(self.indices):
            return False
        return all(i is axis.var for i, axis in zip(self.indices, self.axes, strict=True))

    @property
    def ordered(self) -> bool:
        """Whether the points of the first axis come one after the other."""
        return any(axis.kind is IterKind.ORDERED for axis in self.axes)

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
    if isinstance(block.body, Extern):
        call = block.body
        yield Definition(block.name, call.outputs, (), (), (), (), extern=call)
        return
    axes = tuple(axis for axis in block.iters if axis.kind is not IterKind.REDUCE)
    if any(axis.kind is IterKind.ORDERED for axis in axes[1:]):
        raise _not_canonical(block.name, "its ordered variable is not the first")
    found = _plain_stores(block, block.body)
    reduced = tuple(axis for axis in block.iters if axis.kind is IterKind.REDUCE)
    if axes and axes[0].kind is IterKind.ORDERED and _crossed(found):
        targets = tuple(store.buffer for store in found)
        values = tuple(store.value for store in found)
        yield Definition(block.name, targets, found[0].indices, axes, (), values)
        return
    if block.init is None and not reduced:
        for store in found:
            yield Definition(block.name, (store.buffer,), store.indices, axes, (), (store.value,))
        return
    if block.init is None:
        raise _not_canonical(block.name, "its initialisation stands elsewhere")
    yield _reduction(block, found, axes, reduced)


def _plain_stores(block: Block, body: Stmt) -> tuple[Store, ...]:
    """The stores of a body: to several targets at the same indices, none of which another reads but
    in a reduction and a recurrence.
    """
    listed = body.body if isinstance(body, Seq) else (body,)
    found = tuple(item for item in listed if isinstance(item, Store) and item.mask is None)
    if not found or len(found) != len(listed):
        raise _not_canonical(block.name, "its body is not a plain store")
    targets = {store.buffer for store in found}
    shared = len(targets) == len(found) and all(s.indices == found[0].indices for s in found)
    crossed = _crossed(found)
    together = block.init is not None or block.is_ordered
    if (crossed or block.init is not None) and not (together and shared):
        raise _not_canonical(block.name, "its stores do not define one element each")
    return found


def _crossed(found: Sequence[Store]) -> bool:
    """Whether one store reads the target of another."""
    targets = {store.buffer for store in found}
    return any(
        load.buffer in targets - {store.buffer} for store in found for load in loads(store.value)
    )


def _reduction(
    block: Block,
    found: tuple[Store, ...],
    axes: tuple[IterVar, ...],
    reduced: tuple[IterVar, ...],
) -> Definition:
    update = read_update(block)
    if update is None:
        raise IRError(
            f"evaluate: block '{block.name}' combines its values in an unknown way; "
            "expected a sum, a product, a minimum or a maximum with its own element.",
            code="evaluate-reducer",
        )
    assert block.init is not None
    begun = {store.buffer: store.value for store in stores(block.init)}
    targets = tuple(store.buffer for store in found)
    if begun.keys() != set(targets):
        raise _not_canonical(block.name, "its initialisation is not that of its accumulators")
    initial = tuple(begun[target] for target in targets)
    values = update.values
    if block.counts != TRUE:
        pairs = zip(values, initial, strict=True)
        values = tuple(Select(block.counts, value, start) for value, start in pairs)
        reduced = tuple(_shortened(axis, block.counts) for axis in reduced)
    return Definition(block.name, targets, found[0].indices, axes, reduced, values, update, initial)


def _shortened(axis: IterVar, counts: Expr) -> IterVar:
    """A reduced axis without the points that do not count because they lie behind a number."""
    ends = [
        part.b.value
        for part in conjuncts(counts)
        if isinstance(part, LT) and part.a is axis.var and isinstance(part.b, Const)
    ]
    extent = max(1, min((int(end) for end in ends), default=axis.extent))
    return axis if extent >= axis.extent else replace(axis, extent=extent)
