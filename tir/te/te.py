"""The tensor-expression language: what is computed, nothing about how.

    A = te.placeholder((M, K), "float32", name="A")
    B = te.placeholder((K, N), "float32", name="B", constant=True)
    k = te.reduce_axis(K, name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    matmul = te.func(A, B, C, name="matmul")

Expressions are pure and each element is assigned once, so a schedule may reorder everything but the
accumulation of strict builds. `te.func` turns the computation behind its outputs into a PrimFunc:
the plain loop nest, one block per te.compute. Floats of 16 bits are computed with in float32, which
holds them all: H[i] * 2.0 is float32, and te.cast(H[i] * 2.0, "float16") rounds it, half to even,
where it is stored. Narrower floats and integers of less than 8 bits are stored, moved and converted
alone. Reductions stand in `reductions`, recurrences in
`scans`, C functions in `externs`, stores at places that data decide in `scatters`, boxes that
overlap in `suppressions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn, overload

from ..dim import Dim, Extent, dims_of, most
from ..dtype import DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, IRTypeError
from ..expr import Expr, Number, Var
from ..func import PrimFunc
from ..reduce import Reduce
from ..sizes import Length
from ..visit import walk
from .checks import check_element, check_elements, checked_shape, output_names
from .dims import check_constant, check_dims, dim
from .elements import (
    all_of,
    any_of,
    cast,
    checked,
    clamp_index,
    const,
    eq,
    logical_not,
    maximum,
    minimum,
    ne,
    reinterpret,
    select,
)
from .externs import check_symbols, extern
from .functions import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    fmod,
    gelu,
    log,
    log1p,
    log2,
    log10,
    min_any,
    pow,
    reciprocal,
    relu,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    threefry,
    trunc,
)
from .nests import assemble
from .parts import in_parts
from .reductions import (
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
from .scatters import scatter
from .suppressions import suppress
from .tensor import Computation, Tensor
from .vocabulary import unknown_name

__all__ = [
    "Axes",
    "ReduceAxis",
    "Tensor",
    "abs",
    "acos",
    "acosh",
    "all",
    "all_of",
    "any",
    "any_of",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "checked",
    "clamp_index",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "cosh",
    "dim",
    "eq",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "extern",
    "floor",
    "fmod",
    "func",
    "gelu",
    "log",
    "log1p",
    "log2",
    "log10",
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
    "reciprocal",
    "reduce_axis",
    "reinterpret",
    "relu",
    "round",
    "rsqrt",
    "scan",
    "scatter",
    "select",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "state",
    "sum",
    "suppress",
    "tan",
    "tanh",
    "threefry",
    "trunc",
]


def placeholder(
    shape: Sequence[Length] | Length, dtype: str | DType, *, name: str, constant: bool = False
) -> Tensor:
    """An input of `shape` and element type `dtype`.

    constant: it is bound when a kernel is built, so what is computed from it alone costs nothing
    per call.
    Raises: IRError for an extent that is no integer of 0 or more and no dim, for a dim in a
    constant, and for an unknown type.
    """
    extents = checked_shape(shape, name)
    if constant:
        check_constant(name, extents)
    return Tensor(
        name, as_dtype(dtype), tuple(map(most, extents)), dims=dims_of(extents), constant=constant
    )


@overload
def compute(
    shape: Sequence[Length] | Length, element: Callable[..., Expr | Number], *, name: str
) -> Tensor: ...


@overload
def compute(
    shape: Sequence[Length] | Length,
    element: Callable[..., Expr | Number | tuple[Expr, ...]],
    *,
    name: tuple[str, ...],
) -> tuple[Tensor, ...]: ...


def compute(
    shape: Sequence[Length] | Length,
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
            f"te.compute: the element function of '{name}' takes {len(hints)} "
            f"{'index' if len(hints) == 1 else 'indices'}; expected {rank}.",
            code="te-rank",
            hints=(f"lambda {', '.join(f'i{n}' for n in range(rank))}: ...",) if rank else (),
        )
    return hints


def func(*tensors: Tensor, name: str, sizes: Iterable[Dim] = ()) -> PrimFunc:
    """The PrimFunc that computes the last tensors from the first.

    tensors: the placeholders in the order of the call, then the outputs (those made by te.compute).
    sizes: dims that no input tells: a call has to say them. Only a program of several functions
    makes such calls.
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
    said = tuple(sizes)
    check_dims(name, inputs, (e for made in order for e in _sizes(made) if e not in said))
    return assemble(name, inputs, outputs, order, said)


def dims_of_tensors(*tensors: Tensor) -> tuple[Dim, ...]:
    """The dims that the computations behind tensors mention, each once."""
    found = (e for made in _definition_order(tensors) for e in _sizes(made))
    return tuple(dict.fromkeys(e for e in found if isinstance(e, Dim)))


def _sizes(made: Computation) -> Iterator[Extent]:
    """The extents of a computation, and the dims that its values mention."""
    yield from made.shape
    yield from (node for v in made.values for node in walk(v) if isinstance(node, Dim))


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


if not TYPE_CHECKING:  # a checker knows the names above, and that there are no others

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        raise unknown_name(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
