"""The tensor-expression language: what is computed, nothing about how.

    A = te.placeholder((M, K), "float32", name="A")
    B = te.placeholder((K, N), "float32", name="B", constant=True)
    k = te.reduce_axis(K, name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    matmul = te.func(A, B, C, name="matmul")

Expressions are pure and each element is assigned once, so a schedule may reorder everything but the
accumulation of strict builds. `te.func` turns the computation behind its outputs into a PrimFunc:
the plain loop nest, one block per tensor.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from . import intrinsics
from .buffer import Buffer, Load
from .checked import checks_of, has_checks, without_checks
from .dtype import INT64, UINT64, DType
from .dtype import dtype as as_dtype
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
    floor,
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
from .errors import IRError, IRTypeError
from .expr import TRUE, Call, Expr, Max, Min, Number, Var, add, mul
from .expr import const as exact_const
from .func import PrimFunc
from .index_check import IndexCheck
from .node import Node
from .number import integer_range
from .reduce import Reduce, Reducer
from .stmt import Alloc, Block, For, ForKind, IterKind, IterVar, Parameter, Stmt, Store, seq
from .te_checks import (
    check_axes,
    check_element,
    check_extent,
    check_number_type,
    checked_shape,
    operands,
)
from .visit import free_vars, substitute, transform, walk
from .vocabulary import unknown_name

__all__ = [
    "Tensor",
    "abs",
    "all_of",
    "any_of",
    "cast",
    "checked",
    "clamp_index",
    "compute",
    "const",
    "eq",
    "erf",
    "exp",
    "floor",
    "func",
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
    "select",
    "sqrt",
    "sum",
    "tanh",
]


@dataclass(frozen=True, slots=True, eq=False)
class ReduceAxis(Var):
    """A reduction axis: a variable with the values 0 .. extent-1, all of which are combined."""

    extent: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    """A placeholder, or the result of a compute. `T[i, j]` is its element.

    axes: the variables of `value`, one per dimension; value: the element; None for a placeholder.
    """

    constant: bool = False
    axes: tuple[Var, ...] = ()
    value: Expr | None = None

    def __repr__(self) -> str:
        return f"Tensor {self.name}: {self.type}{list(self.shape)}"

    def _no_number(self, _: object) -> Expr:
        letters = ", ".join("ijklmnpq"[n] if n < 8 else f"i{n}" for n in range(len(self.shape)))
        raise IRTypeError(
            f"te: tensor '{self.name}' stands where a number is expected; expected an element.",
            code="te-tensor-operand",
            hints=(f"te.compute(shape, lambda {letters}: {self.name}[{letters}] ..., name=...).",),
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_number
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __matmul__ = _no_number
    __lt__ = __le__ = __gt__ = __ge__ = _no_number

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the value reads, in order of first use."""
        if self.value is None:
            return ()
        read = (n.buffer for n in walk(self.value) if isinstance(n, Load))
        return tuple(dict.fromkeys(t for t in read if isinstance(t, Tensor)))


def placeholder(
    shape: Sequence[int] | int, dtype: str | DType, *, name: str, constant: bool = False
) -> Tensor:
    """An input of `shape` and element type `dtype`.

    constant: it is bound when a kernel is built, so what is computed from it alone costs nothing
    per call.
    Raises: IRError for an extent that is no integer of 0 or more, or an unknown type.
    """
    return Tensor(name, as_dtype(dtype), checked_shape(shape, name), constant=constant)


def reduce_axis(extent: int, *, name: str = "k") -> ReduceAxis:
    """An axis of `extent` points to reduce over; over none, a reduction gives its identity.

    Raises: IRError for an extent that is no integer of 0 or more.
    """
    check_extent(extent, name)
    return ReduceAxis(name, INT64, checked_shape((extent,), name)[0])


def compute(
    shape: Sequence[int] | int, element: Callable[..., Expr | Number], *, name: str
) -> Tensor:
    """The tensor whose element at (i, j, ...) is `element(i, j, ...)`.

    The axes take the parameter names of `element`; what follows with a default value is left alone.
    Raises: IRError for a reduction below the top of the expression, and for a variable that is
    neither an axis nor reduced over.
    """
    extents = checked_shape(shape, name)
    axes = tuple(Var(hint) for hint in _axis_names(element, len(extents), name))
    value = element(*axes)
    if not isinstance(value, Expr):
        raise IRError(
            f"te.compute: the element of '{name}' is {value!r}; expected an expression.",
            code="te-element",
            hints=("te.const(value, dtype) makes a constant tensor.",),
        )
    check_element(name, value, dict(zip(axes, extents, strict=True)))
    return Tensor(name, value.dtype, extents, axes=axes, value=value)


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


Axes = ReduceAxis | Sequence[ReduceAxis]


def _reduce(reducer: Reducer, value: Expr, axis: Axes) -> Expr:
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    for item in axes:
        if not isinstance(item, ReduceAxis):
            raise IRError(
                f"te.{reducer.name}: axis is {item!r}; expected a reduction axis.",
                code="te-axis",
                hints=("k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2).",),
            )
    check_axes(reducer.name, axes)
    (value,) = operands(reducer.name, value)
    check_number_type(reducer.name, value)
    return Reduce(reducer, value, axes, tuple(item.extent for item in axes))


def _lowest(dtype: DType) -> Expr:
    return exact_const(-_INFINITY if dtype.is_float else integer_range(dtype)[0], dtype)


def _highest(dtype: DType) -> Expr:
    return exact_const(_INFINITY if dtype.is_float else integer_range(dtype)[1], dtype)


_INFINITY = float("inf")
SUM = Reducer("sum", lambda a, b: add(a, b), lambda t: exact_const(0, t))
PROD = Reducer("prod", lambda a, b: mul(a, b), lambda t: exact_const(1, t))
MIN = Reducer("min", lambda a, b: Min(a, b), _highest)
MAX = Reducer("max", lambda a, b: Max(a, b), _lowest)
MAX_ANY = Reducer("max_any", lambda a, b: Call(intrinsics.MAX_ANY, (a, b)), _lowest)


def sum(value: Expr, axis: Axes) -> Expr:
    """The sum of `value` over `axis`."""
    return _reduce(SUM, value, axis)


def prod(value: Expr, axis: Axes) -> Expr:
    """The product of `value` over `axis`."""
    return _reduce(PROD, value, axis)


def min(value: Expr, axis: Axes) -> Expr:
    """The smallest `value` over `axis`; NaN when one is NaN."""
    return _reduce(MIN, value, axis)


def max(value: Expr, axis: Axes) -> Expr:
    """The largest `value` over `axis`; NaN when one is NaN."""
    return _reduce(MAX, value, axis)


def max_any(value: Expr, axis: Axes) -> Expr:
    """The largest `value` over `axis`; what a NaN gives is not promised, so it is one
    instruction.
    """
    return _reduce(MAX_ANY, value, axis)


def func(*tensors: Tensor, name: str) -> PrimFunc:
    """The PrimFunc that computes the last tensors from the first.

    tensors: the placeholders in the order of the call, then the outputs (those made by te.compute).
    Tensors in between that are not listed become intermediates. Names are made unique by appending
    _1, _2.
    Raises: IRError when an output reads a placeholder that is not listed, an input stands after an
    output, or a tensor is listed twice; IRTypeError for what is no tensor.
    """
    _check_tensors(tensors, name)
    inputs = tuple(t for t in tensors if t.value is None)
    outputs = tensors[len(inputs) :]
    if not outputs or any(t.value is None for t in outputs):
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
    for tensor in order:
        if tensor.value is None and tensor not in inputs:
            raise IRError(
                f"te.func: '{name}' reads placeholder '{tensor.name}', which is not among its "
                "parameters.",
                code="te-func-missing",
                hints=(
                    f"te.func({', '.join(t.name for t in (*inputs, tensor, *outputs))}, "
                    f"name='{name}')",
                ),
            )
    return _built(name, inputs, order, outputs)


def _built(
    name: str, inputs: Sequence[Tensor], order: Sequence[Tensor], outputs: Sequence[Tensor]
) -> PrimFunc:
    """The function of tensors in the order of their definition, with the checks of their indices
    as its last outputs.
    """
    checks = {tensor: check for made in order for check, tensor in _checks(made)}
    order = (*order, *checks)
    taken: set[str] = set()
    buffers: dict[Buffer, Buffer] = {
        t: Buffer(_unique(t.name, taken), t.type, t.shape) for t in dict.fromkeys((*inputs, *order))
    }
    nests = [_nest(t, buffers) for t in order if t.value is not None]
    body = seq(*nests)
    for tensor in reversed(order):
        if tensor.value is not None and tensor not in outputs and tensor not in checks:
            body = Alloc(buffers[tensor], body)
    parameters = [Parameter(buffers[t], "constant" if t.constant else "input") for t in inputs]
    parameters += [Parameter(buffers[t], "output") for t in outputs]
    parameters += [Parameter(buffers[t], "output", check) for t, check in checks.items()]
    return PrimFunc(name, tuple(parameters), body)


def _checks(tensor: Tensor) -> Iterator[tuple[IndexCheck, Tensor]]:
    """The checks of a tensor's indices, each with the tensor of one element that it compares."""
    if tensor.value is None or not has_checks(tensor.value):
        return
    axes = dict(zip(tensor.axes, tensor.shape, strict=True))
    value = tensor.value
    if isinstance(value, Reduce):
        axes |= dict(zip(value.axes, value.extents, strict=True))
        value = value.value
    if 0 in axes.values():
        return
    for check, used in checks_of(value):
        free = free_vars(used)
        over = tuple(axis for axis in axes if axis in free)
        whole = Reduce(MAX, used, over, tuple(axes[axis] for axis in over)) if over else used
        yield check, Tensor(f"{tensor.name}_check", UINT64, (), value=whole)


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


def _definition_order(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Every tensor behind `outputs`, producers before their readers. Iterative: chains may be
    long.
    """
    order: dict[Tensor, None] = {}
    stack = [(tensor, False) for tensor in reversed(outputs)]
    while stack:
        tensor, expanded = stack.pop()
        if expanded:
            order.setdefault(tensor)
        elif tensor not in order:
            stack.append((tensor, True))
            stack += [(t, False) for t in reversed(tensor.inputs)]
    return list(order)


def _nest(tensor: Tensor, buffers: dict[Buffer, Buffer]) -> Stmt:
    """The plain loop nest that computes one tensor: a loop per axis, then one per reduction
    axis.
    """
    assert tensor.value is not None
    tensor_value = without_checks(tensor.value)
    reduction = tensor_value if isinstance(tensor_value, Reduce) else None
    axes = [(v, n, IterKind.SPATIAL) for v, n in zip(tensor.axes, tensor.shape, strict=True)]
    if reduction is not None:
        axes += [
            (v, n, IterKind.REDUCE) for v, n in zip(reduction.axes, reduction.extents, strict=True)
        ]
    iters = tuple(IterVar(Var(f"v{v.name}"), n, kind) for v, n, kind in axes)
    points: dict[Var, Expr] = {v: it.var for (v, _, _), it in zip(axes, iters, strict=True)}
    target = buffers[tensor]
    indices = tuple(it.var for it in iters if it.kind is IterKind.SPATIAL)
    init: Stmt | None = None
    if reduction is None:
        value = _localise(tensor_value, points, buffers)
    else:
        update = _localise(reduction.value, points, buffers)
        value = reduction.reducer.combine(Load(target, indices), update)
        init = Store(target, indices, reduction.reducer.identity(target.type))
    loops = tuple(Var(v.name) for v, _, _ in axes)
    nest: Stmt = Block(
        target.name, iters, loops, Store(target, indices, value), init, TRUE, family=target.name
    )
    for (_, extent, _), loop in zip(reversed(axes), reversed(loops), strict=True):
        nest = For(loop, extent, ForKind.SERIAL, nest)
    return nest


def _localise(value: Expr, points: dict[Var, Expr], buffers: dict[Buffer, Buffer]) -> Expr:
    def rule(node: Node) -> Node:
        if isinstance(node, Load):
            return Load(buffers[node.buffer], node.indices)
        return node

    return transform(substitute(value, points), rule)


if not TYPE_CHECKING:  # a checker knows the names above, and that there are no others

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        raise unknown_name(name, __all__)
