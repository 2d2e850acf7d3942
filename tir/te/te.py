"""The tensor-expression language: what is computed, nothing about how.

    A = te.placeholder((M, K), "float32", name="A")
    B = te.placeholder((K, N), "float32", name="B", constant=True)
    k = te.reduce_axis(K, name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    matmul = te.func(A, B, C, name="matmul")

Expressions are pure and each element is assigned once, so a schedule may reorder everything but the
accumulation of strict builds. `te.func` turns the computation behind its outputs into a PrimFunc:
the plain loop nest, one block per te.compute. Reductions stand in `reductions`, recurrences in
`scans`, C functions in `externs`.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, overload

from ..analysis.update import named_update
from ..buffer import Buffer, Load, array
from ..checked import checks_of, has_checks, without_checks
from ..dim import Dim, Extent, dims_of, most
from ..dtype import DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, IRTypeError
from ..expr import TRUE, Expr, Number, Var
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
from ..visit import free_vars, substitute, transform, walk
from .checks import check_element, check_elements, checked_shape, output_names
from .dims import check_constant, check_dims, dim
from .elements import (
    abs,
    all_of,
    any_of,
    cast,
    checked,
    clamp_index,
    const,
    eq,
    erf,
    exp,
    exp2,
    floor,
    gelu,
    log,
    logical_not,
    maximum,
    min_any,
    minimum,
    ne,
    pow,
    round,
    select,
    sqrt,
    tanh,
)
from .externs import check_symbols, extern
from .parts import in_parts
from .reductions import (
    MAX,
    Axes,
    ReduceAxis,
    all,
    any,
    argmax,
    argmin,
    comm_reducer,
    max,
    max_any,
    min,
    prod,
    reduce_axis,
    sum,
)
from .scans import scan, state
from .tensor import Computation, ExternComputation, Tensor
from .vocabulary import unknown_name

__all__ = [
    "Axes",
    "ReduceAxis",
    "Tensor",
    "abs",
    "all",
    "all_of",
    "any",
    "any_of",
    "argmax",
    "argmin",
    "cast",
    "checked",
    "clamp_index",
    "comm_reducer",
    "compute",
    "const",
    "dim",
    "eq",
    "erf",
    "exp",
    "exp2",
    "extern",
    "floor",
    "func",
    "gelu",
    "log",
    "logical_not",
    "max",
    "max_any",
    "maximum",
    "min",
    "min_any",
    "minimum",
    "ne",
    "placeholder",
    "pow",
    "prod",
    "reduce_axis",
    "round",
    "scan",
    "select",
    "sqrt",
    "state",
    "sum",
    "tanh",
]


def placeholder(
    shape: Sequence[Extent] | Extent, dtype: str | DType, *, name: str, constant: bool = False
) -> Tensor:
    """An input of `shape` and element type `dtype`.

    constant: it is bound when a kernel is built, so what is computed from it alone costs nothing
    per call.
    Raises: IRError for an extent that is no integer of 0 or more and no dim, for a dim elsewhere
    than outermost, or in a constant, and for an unknown type.
    """
    extents = checked_shape(shape, name)
    if constant:
        check_constant(name, extents)
    return Tensor(
        name, as_dtype(dtype), tuple(map(most, extents)), dims=dims_of(extents), constant=constant
    )


@overload
def compute(
    shape: Sequence[Extent] | Extent, element: Callable[..., Expr | Number], *, name: str
) -> Tensor: ...


@overload
def compute(
    shape: Sequence[Extent] | Extent,
    element: Callable[..., Expr | Number | tuple[Expr, ...]],
    *,
    name: tuple[str, ...],
) -> tuple[Tensor, ...]: ...


def compute(
    shape: Sequence[Extent] | Extent,
    element: Callable[..., Expr | Number | tuple[Expr, ...]],
    *,
    name: str | tuple[str, ...],
) -> Tensor | tuple[Tensor, ...]:
    """The tensor whose element at (i, j, ...) is `element(i, j, ...)`.

    Where the element is a tuple, or a reduction of several values (te.argmax), there is a tensor of
    this shape for each, computed together: `name` lists their names.
    The axes take the parameter names of `element`; what follows with a default value is left alone.
    Raises: IRError for a reduction below the top of the expression, and for a variable that is
    neither an axis nor reduced over.
    """
    title = name if isinstance(name, str) else ", ".join(name)
    extents = checked_shape(shape, title)
    axes = tuple(Var(hint) for hint in _axis_names(element, len(extents), title))
    made = element(*axes)
    values = check_elements(title, made if isinstance(made, tuple) else (made,))
    sizes = dict(zip(axes, extents, strict=True))
    values = tuple(in_parts(title, value, sizes) for value in values)
    for value in values:
        check_element(title, value, {axis: most(extent) for axis, extent in sizes.items()})
    count = len(values[0].values) if isinstance(values[0], Reduce) else len(values)
    computation = Computation(output_names(name, count), extents, axes, values)
    tensors = tuple(
        Tensor(
            own,
            kind,
            tuple(map(most, extents)),
            dims=dims_of(extents),
            computation=computation,
            output=n,
        )
        for n, (own, kind) in enumerate(zip(computation.names, computation.types, strict=True))
    )
    return tensors[0] if isinstance(name, str) else tensors


def _axis_names(element: Callable[..., object], rank: int, name: str) -> list[str]:
    hints: list[str] = []
    for parameter in inspect.signature(element).parameters.values():
        optional = parameter.default is not inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            hints += [f"i{n}" for n in range(rank - len(hints))]
        elif not (optional and len(hints) == rank):
            hints.append(parameter.name)
    if len(hints) != rank:
        raise IRError(
            f"te.compute: the element function of '{name}' takes {len(hints)} indices; "
            f"expected {rank}.",
            code="te-rank",
        )
    return hints


def func(*tensors: Tensor, name: str) -> PrimFunc:
    """The PrimFunc that computes the last tensors from the first.

    tensors: the placeholders in the order of the call, then the outputs (those made by te.compute).
    Tensors in between that are not listed become intermediates. Names are made unique by appending
    _1, _2.
    Raises: IRError when an output reads a placeholder that is not listed, an input stands after an
    output, or a tensor is listed twice; IRTypeError for what is no tensor.
    """
    _check_tensors(tensors, name)
    inputs = tuple(t for t in tensors if t.computation is None)
    outputs = tensors[len(inputs) :]
    if not outputs or None in (t.computation for t in outputs):
        raise IRError(
            f"te.func: '{name}' lists {', '.join(t.name for t in tensors)}; "
            "expected placeholders first and at least one computed tensor last.",
            code="te-func-order",
        )
    twice = next((t for n, t in enumerate(tensors) if t in tensors[:n]), None)
    if twice is not None:
        raise IRError(
            f"te.func: '{name}' lists '{twice.name}' twice; expected each tensor once.",
            code="te-func-twice",
        )
    order = _definition_order(outputs)
    for tensor in (t for made in order for t in made.inputs if t.computation is None):
        if tensor.state:
            raise _open_state(tensor, name)
        if tensor not in inputs:
            raise IRError(
                f"te.func: '{name}' reads placeholder '{tensor.name}', which is not among its "
                "parameters.",
                code="te-func-missing",
                hints=(
                    f"te.func({', '.join(t.name for t in (*inputs, tensor, *outputs))}, "
                    f"name='{name}')",
                ),
            )
    check_symbols(name, order)
    check_dims(name, inputs, (e for made in order for e in _sizes(made)))
    return _assembled(name, inputs, outputs, order)


def _sizes(made: Computation) -> Iterator[Extent]:
    """The extents of a computation, and the dims that its values mention."""
    yield from made.shape
    yield from (node for v in made.values for node in walk(v) if isinstance(node, Dim))


def _assembled(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    order: Sequence[Computation],
) -> PrimFunc:
    """The function of computations in order, with the checks of their indices as its last
    outputs.
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
    return PrimFunc(name, tuple(parameters), body)


def _checks(made: Computation) -> Iterator[tuple[IndexCheck, Computation]]:
    """The checks of a computation's indices, each with the element that it compares."""
    axes, values = dict(zip(made.axes, map(most, made.shape), strict=True)), made.values
    limits = {v: n for v, n in zip(made.axes, made.shape, strict=True) if isinstance(n, Dim)}
    where: Expr = TRUE
    if made.reduction is not None:
        reduction = made.reduction
        axes |= dict(zip(reduction.axes, reduction.extents, strict=True))
        values, where = reduction.values, reduction.where
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


Place = Tensor | tuple[Computation, int]


def _place(tensor: Tensor) -> Place:
    """What tells the storage of a tensor apart: an input, or an output of a computation."""
    return tensor if tensor.computation is None else (tensor.computation, tensor.output)


def _unique(name: str, taken: set[str]) -> str:
    candidates = itertools.chain([name], (f"{name}_{n}" for n in itertools.count(1)))
    chosen = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(chosen)
    return chosen


def _check_tensors(tensors: Sequence[object], name: str) -> None:
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise IRTypeError(
                f"te.func: '{name}' lists {tensor!r}; expected tensors of te.placeholder and "
                "te.compute.",
                code="te-func-tensor",
                hints=("te.func(A, B, C, name='f') takes the tensors themselves.",),
            )
        if tensor.state:
            raise _open_state(tensor, name)


def _open_state(state: Tensor, name: str) -> IRError:
    return IRError(
        f"te.func: '{name}' needs state '{state.name}' itself; expected the tensor that te.scan "
        "makes of it.",
        code="te-func-state",
        hints=(f"{state.name} = te.scan(init, update, {state.name})",),
    )


def _definition_order(outputs: Iterable[Tensor]) -> list[Computation]:
    """Every computation behind `outputs`, producers before their readers. Iterative: chains may be
    long.
    """
    order: dict[Computation, None] = {}
    stack = [(made, False) for made in _made(outputs)]
    while stack:
        made, expanded = stack.pop()
        if expanded:
            order.setdefault(made)
        elif made not in order:
            stack.append((made, True))
            stack += [(other, False) for other in _made(made.inputs)]
    return list(order)


def _made(tensors: Iterable[Tensor]) -> list[Computation]:
    """The computations of tensors, last first."""
    return [t.computation for t in tensors if t.computation is not None][::-1]


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


if not TYPE_CHECKING:  # a checker knows the names above, and that there are no others

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        raise unknown_name(name, __all__)
