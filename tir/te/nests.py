"""The plain loop nest of a definition: one block per computation, in order, each in loops of its
own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..analysis.update import named_update
from ..buffer import Buffer, Load, array
from ..checked import checks_of, has_checks, without_checks
from ..conditions import dims_below
from ..dim import Dim, Extent, most
from ..expr import TRUE, Expr, Var
from ..func import PrimFunc
from ..index_check import IndexCheck
from ..node import Node
from ..reduce import Reduce
from ..stmt import (
    Alloc,
    Block,
    Extern,
    For,
    ForKind,
    IterKind,
    Parameter,
    Stmt,
    Store,
    iter_var,
    seq,
)
from ..visit import free_vars, substitute, transform
from .elements import all_of
from .reductions import MAX
from .tensor import Computation, ExternComputation, Tensor

Place = Tensor | tuple[Computation, int]


def assemble(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    order: Sequence[Computation],
    sizes: Sequence[Dim] = (),
) -> PrimFunc:
    """The function of computations in order, with the checks of their indices as its last
    outputs; sizes: what no input tells.
    """
    checks = {made: check for computation in order for check, made in _checks(computation)}
    order = (*order, *checks)
    taken: set[str] = set()
    buffers: dict[Place, Buffer] = {
        t: array(_unique(t.name, taken), t.type, t.extents) for t in inputs
    }
    for made in order:
        results = zip(made.names, made.types, made.shapes, strict=True)
        for n, (own, kind, shape) in enumerate(results):
            buffers[made, n] = array(_unique(own, taken), kind, shape)
    body = seq(*(_nest(made, buffers) for made in order))
    kept: set[Place] = {*(_place(t) for t in outputs), *((made, 0) for made in checks)}
    for place, buffer in reversed(buffers.items()):
        if isinstance(place, tuple) and place not in kept:
            body = Alloc(buffer, body)
    parameters = [Parameter(buffers[t], "constant" if t.constant else "input") for t in inputs]
    parameters += [Parameter(buffers[_place(t)], "output") for t in outputs]
    parameters += [Parameter(buffers[made, 0], "output", check) for made, check in checks.items()]
    return PrimFunc(name, tuple(parameters), body, tuple(sizes))


def _checks(made: Computation) -> Iterator[tuple[IndexCheck, Computation]]:
    """The checks of a computation's indices, each with the element that it compares."""
    axes, values = dict(zip(made.axes, map(most, made.shape), strict=True)), made.values
    limits = {v: n for v, n in zip(made.axes, made.shape, strict=True) if isinstance(n, Dim)}
    where: Expr = TRUE
    if made.reduction is not None:
        reduction = made.reduction
        axes |= dict(zip(reduction.axes, reduction.extents, strict=True))
        values, where = reduction.values, reduction.where
        limits |= dims_below(where)
    if 0 in axes.values():
        return
    found = dict.fromkeys(
        one for value in (*values, where) if has_checks(value) for one in checks_of(value)
    )
    for check, used in found:
        used = _closed(made, used)
        free = free_vars(used)
        over = tuple(axis for axis in axes if axis in free)
        extents = tuple(axes[axis] for axis in over)
        there = all_of(*(axis < limits[axis] for axis in over if axis in limits))
        whole = Reduce(MAX, (used,), over, extents, there) if over else used
        yield check, Computation((f"{made.names[0]}_check",), (), (), (whole,))


def _closed(made: Computation, value: Expr) -> Expr:
    """An expression of a computation with the tensors that it gives in the place of its states."""
    if made.recurrence is None:
        return value
    given = {
        state: Tensor(state.name, state.type, state.shape, computation=made, output=n)
        for n, state in enumerate(made.recurrence.states)
    }

    def rule(node: Node) -> Node:
        if isinstance(node, Load) and isinstance(node.buffer, Tensor) and node.buffer in given:
            return replace(node, buffer=given[node.buffer])
        return node

    return transform(value, rule)


def _place(tensor: Tensor) -> Place:
    """What tells the storage of a tensor apart: an input, or an output of a computation."""
    return tensor if tensor.computation is None else (tensor.computation, tensor.output)


def _unique(name: str, taken: set[str]) -> str:
    candidates = itertools.chain([name], (f"{name}_{n}" for n in itertools.count(1)))
    chosen = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(chosen)
    return chosen


def _nest(made: Computation, buffers: dict[Place, Buffer]) -> Stmt:
    """The plain loop nest of one computation: a loop per axis, the ordered one first, then one per
    reduction axis.
    """
    if isinstance(made, ExternComputation):
        inputs = tuple(buffers[_place(tensor)] for tensor in made.arguments)
        outputs = tuple(buffers[made, n] for n in range(len(made.names)))
        own_name = outputs[0].name
        return Block(own_name, (), (), Extern(made.function, inputs, outputs), family=own_name)
    reduction, order = made.reduction, made.recurrence
    axes: list[tuple[Var, Extent, IterKind]] = [
        (v, n, IterKind.SPATIAL) for v, n in zip(made.axes, made.shape, strict=True)
    ]
    if order is not None:
        own_axis = made.axes.index(order.axis)
        axes.insert(0, (order.axis, axes.pop(own_axis)[1], IterKind.ORDERED))
        buffers = dict(buffers)
        buffers.update((state, buffers[made, n]) for n, state in enumerate(order.states))
    if reduction is not None:
        axes += [
            (v, n, IterKind.REDUCE) for v, n in zip(reduction.axes, reduction.extents, strict=True)
        ]
    iters = tuple(iter_var(Var(f"v{v.name}"), n, kind) for v, n, kind in axes)
    points: dict[Var, Expr] = {v: it.var for (v, _, _), it in zip(axes, iters, strict=True)}
    if order is not None and order.reverse:
        points[order.axis] = iters[0].extent - 1 - iters[0].var
    targets = tuple(buffers[made, n] for n in range(len(made.names)))
    indices = tuple(points[v] for v in made.axes)

    def stored(values: Iterable[Expr]) -> Stmt:
        pairs = zip(targets, values, strict=True)
        return seq(*(Store(target, indices, value) for target, value in pairs))

    def local(values: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(_localise(value, points, buffers) for value in values)

    init: Stmt | None = None
    if reduction is None:
        body = stored(local(made.values))
    else:
        own = tuple(Load(target, indices) for target in targets)
        body = stored(_updates(reduction, own, local(reduction.values)))
        init = stored(reduction.reducer.identity(made.types))
    loops = tuple(Var(v.name) for v, _, _ in axes)
    name = targets[0].name
    counts = TRUE if reduction is None else local((reduction.where,))[0]
    nest: Stmt = Block(name, iters, loops, body, init, family=name, counts=counts)
    for (_, extent, _), loop in zip(reversed(axes), reversed(loops), strict=True):
        nest = For(loop, most(extent), ForKind.SERIAL, nest)
    return nest


def _updates(reduction: Reduce, own: tuple[Expr, ...], values: tuple[Expr, ...]) -> Iterable[Expr]:
    """What each accumulator becomes. The Lets of one are its own: variables are bound once."""
    reducer = reduction.reducer
    if not reducer.named:
        return reducer.combine(own, values)
    names = tuple(Var(f"x{n}", value.dtype) for n, value in enumerate(values))
    return [named_update(result, names, values) for result in reducer.combine(own, names)]


def _localise(value: Expr, points: dict[Var, Expr], buffers: dict[Place, Buffer]) -> Expr:
    def rule(node: Node) -> Node:
        if isinstance(node, Load):
            assert isinstance(node.buffer, Tensor)
            return Load(buffers[_place(node.buffer)], node.indices)
        return node

    return transform(substitute(without_checks(value), points), rule)
