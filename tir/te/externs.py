"""C functions in the tensor-expression language: te.extern.

    Y = te.extern((M, N), "float32", A, source=C_TEXT, symbol="sort_rows",
                  reference=lambda a: np.sort(a, axis=1), name="Y")

Y is what `void sort_rows(const float *a, float *y)` of the C text writes: one block that reads all
of A and writes all of Y, which no schedule looks into. Tensors before and after it are like any
others. Several results are asked for by tuples of shapes, types and names:

    values, places = te.extern(((M,), (M,)), ("float32", "int32"), A, ..., name=("V", "P"))

What the C function must be, and what its reference is for, stands at the top of tir/extern.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

from ..dim import Dim
from ..dtype import DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, IRTypeError
from ..expr import Expr
from ..extern import ExternFunction, Reference
from ..text.printer import print_expr
from .checks import checked_shape
from .tensor import Computation, ExternComputation, Tensor

Shape = Sequence[int] | int
Item = TypeVar("Item", DType | str, Tensor)
_SYMBOL = re.compile(r"(?!tw_)[A-Za-z_]\w*")


@overload
def extern(
    shape: Shape,
    dtype: str | DType,
    inputs: Tensor | tuple[Tensor, ...],
    *,
    source: str,
    symbol: str,
    reference: Reference,
    name: str,
) -> Tensor: ...


@overload
def extern(
    shape: tuple[Shape, ...],
    dtype: tuple[str | DType, ...],
    inputs: Tensor | tuple[Tensor, ...],
    *,
    source: str,
    symbol: str,
    reference: Reference,
    name: tuple[str, ...],
) -> tuple[Tensor, ...]: ...


def extern(
    shape: Shape | tuple[Shape, ...],
    dtype: str | DType | tuple[str | DType, ...],
    inputs: Tensor | tuple[Tensor, ...],
    *,
    source: str,
    symbol: str,
    reference: Reference,
    name: str | tuple[str, ...],
) -> Tensor | tuple[Tensor, ...]:
    """The tensor of `shape` and element type `dtype` that a C function makes of `inputs`; a tensor
    for each of several, where `name` is a tuple, and then `shape` and `dtype` too.

    source: a C text that defines `void symbol(...)`, of a pointer to each input, then to each
    result. reference: a function of NumPy arrays that gives the same, as new arrays.
    Raises: IRError for a size that a call decides, a text that does not define the symbol, or
    numbers of names, types and shapes that differ; IRTypeError for what is no tensor, text or
    function.
    """
    names = (name,) if isinstance(name, str) else name
    title = ", ".join(names)
    shapes = (shape,) if isinstance(name, str) else shape
    kinds = _listed(dtype)
    if not names or not isinstance(shapes, tuple) or not len(names) == len(shapes) == len(kinds):
        raise IRError(
            f"te.extern: '{title}' has shape {shape!r} and type {dtype!r}; expected one for each "
            "name.",
            code="te-extern-results",
            hints=("several results: te.extern((s, t), (type, type), ..., name=('Y', 'Z')).",),
        )
    results = tuple(
        (as_dtype(kind), _sizes(own, one))
        for own, kind, one in zip(names, kinds, shapes, strict=True)
    )
    arguments = _listed(inputs)
    for tensor in arguments:
        _check_input(title, tensor)
    _check_function(title, source, symbol, reference)
    made = ExternComputation(
        names, (), (), (), ExternFunction(symbol, source, reference), arguments, results
    )
    tensors = tuple(
        Tensor(own, kind, sizes, computation=made, output=n)
        for n, (own, (kind, sizes)) in enumerate(zip(names, results, strict=True))
    )
    return tensors[0] if isinstance(name, str) else tensors


def _listed(value: Item | tuple[Item, ...]) -> tuple[Item, ...]:
    return value if isinstance(value, tuple) else (value,)


def _sizes(name: str, shape: object) -> tuple[int, ...]:
    extents = checked_shape(shape, name)
    if any(isinstance(extent, Dim) for extent in extents):
        raise _open(f"'{name}'")
    return tuple(extent for extent in extents if not isinstance(extent, Dim))


def _open(what: str) -> IRError:
    return IRError(
        f"te.extern: {what} has a size that a call decides; expected numbers, since a C text knows "
        "no other.",
        code="te-extern-dim",
    )


def _check_input(name: str, tensor: object) -> None:
    if not isinstance(tensor, Tensor) or tensor.state:
        shown = print_expr(tensor) if isinstance(tensor, Expr) else repr(tensor)
        shown = f"state '{tensor.name}'" if isinstance(tensor, Tensor) else shown
        raise IRTypeError(
            f"te.extern: '{name}' reads {shown}; expected a tensor, or a tuple of tensors.",
            code="te-extern-input",
            hints=("a C function is handed whole tensors: A, not A[i, j].",),
        )
    if any(dim is not None for dim in tensor.dims):
        raise _open(f"'{name}' reads '{tensor.name}', which")


def _check_function(name: str, source: str, symbol: str, reference: Reference) -> None:
    fits = isinstance(source, str), isinstance(symbol, str), callable(reference)
    for given, right in zip((source, symbol, reference), fits, strict=True):
        if not right:
            raise IRTypeError(
                f"te.extern: '{name}' is given {given!r}; expected a C text as source, a name as "
                "symbol and a function of NumPy arrays as reference.",
                code="te-extern-function",
            )
    if not _SYMBOL.fullmatch(symbol) or not re.search(rf"\bvoid\s+{symbol}\s*\(", source):
        raise IRError(
            f"te.extern: the source of '{name}' does not define 'void {symbol}(...)'.",
            code="te-extern-symbol",
            hints=("symbol is a C identifier that does not begin with tw_.",),
        )


def check_symbols(name: str, order: Iterable[Computation]) -> None:
    """Refuse two C functions of one name in a function called `name`. Raises: IRError."""
    known: dict[str, tuple[str, str]] = {}
    for made in order:
        if not isinstance(made, ExternComputation):
            continue
        if not isinstance(made.function, ExternFunction):
            continue
        function, title = made.function, ", ".join(made.names)
        first, source = known.setdefault(function.symbol, (title, function.source))
        if source != function.source:
            raise IRError(
                f"te.func: '{name}' calls two C functions '{function.symbol}', for '{first}' and "
                f"for '{title}'; expected one text for one symbol.",
                code="te-extern-twice",
            )
