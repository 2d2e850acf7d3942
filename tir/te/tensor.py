"""Tensors, and what computes their elements: the values that the tensor-expression language builds.

A tensor is a placeholder, a state of a scan (te_scan), or one of the results of a Computation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from ..buffer import Buffer, Load
from ..dim import Dim, Extent
from ..dtype import DType
from ..expr import Expr, Var
from ..extern import ExternFunction
from ..reduce import Reduce
from ..steps import StepFunction
from ..text.html import highlight
from ..visit import walk
from .whole_tensors import function_error, operator_error


@dataclass(frozen=True, slots=True, eq=False)
class Recurrence:
    """The points of `axis` run in order, from the last one where it is `reverse`; the values read,
    as elements of `states`, what earlier ones have set of each tensor.
    """

    states: tuple[Tensor, ...]
    axis: Var
    reverse: bool = False

    def __repr__(self) -> str:
        order = "from the last point" if self.reverse else "from the first point"
        return f"recurrence of {', '.join(s.name for s in self.states)} over {self.axis}, {order}"


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """What one te.compute says: `values` at each point of `axes`.

    names, shape, types: of the tensors that it gives. values: one reduction that gives them all, or
    an expression for each of them.
    recurrence: of a scan, what its values read of the tensors that it gives.
    """

    names: tuple[str, ...]
    shape: tuple[Extent, ...]
    axes: tuple[Var, ...]
    values: tuple[Expr, ...]
    recurrence: Recurrence | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        at = ", ".join(axis.name for axis in self.axes)
        elements = ", ".join(f"{name}[{at}]" for name in self.names)
        extents = ", ".join(
            f"{axis.name} < {n}" for axis, n in zip(self.axes, self.shape, strict=True)
        )
        return f"{elements} = {', '.join(map(str, self.values))} for {extents or 'one point'}"

    @property
    def reduction(self) -> Reduce | None:
        """The reduction, where it is one."""
        return self.values[0] if isinstance(self.values[0], Reduce) else None

    @property
    def types(self) -> tuple[DType, ...]:
        """The element type of each tensor."""
        listed = self.values if self.reduction is None else self.reduction.values
        return tuple(value.dtype for value in listed)

    @property
    def shapes(self) -> tuple[tuple[Extent, ...], ...]:
        """The shape of each tensor."""
        return (self.shape,) * len(self.names)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the values read, in order of first use; not its own."""
        own = () if self.recurrence is None else self.recurrence.states
        read = (n.buffer for v in self.values for n in walk(v) if isinstance(n, Load))
        return tuple(dict.fromkeys(t for t in read if isinstance(t, Tensor) and t not in own))


@dataclass(frozen=True, slots=True, eq=False)
class ExternComputation(Computation):
    """What one te.extern, te.scatter or te.suppress says: `function` of the tensors `arguments`. It
    has no axes, no values.

    results: the type and shape of each tensor that it gives.
    """

    function: ExternFunction | StepFunction
    arguments: tuple[Tensor, ...]
    results: tuple[tuple[DType, tuple[int, ...]], ...]

    def __repr__(self) -> str:
        arguments = ", ".join(tensor.name for tensor in self.arguments)
        return f"{', '.join(self.names)} = {self.function.symbol}({arguments})"

    @property
    def reduction(self) -> Reduce | None:
        return None

    @property
    def types(self) -> tuple[DType, ...]:
        return tuple(kind for kind, _ in self.results)

    @property
    def shapes(self) -> tuple[tuple[Extent, ...], ...]:
        return tuple(shape for _, shape in self.results)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.arguments))


_Refusal = Callable[["Tensor", object], NoReturn]


def _refused(symbol: str) -> tuple[_Refusal, _Refusal]:
    """An operator on whole tensors and its reflection, which are refused."""

    def forward(self: Tensor, other: object) -> NoReturn:
        raise operator_error(symbol, self, other)

    def reflected(self: Tensor, other: object) -> NoReturn:
        raise operator_error(symbol, other, self)

    return forward, reflected


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    """A placeholder, a state, or the result of a compute or a scan. `T[i, j]` is its element.

    computation: what gives its elements, with `output` among the tensors of it; None for a
    placeholder and a state. state: it stands for a tensor that a te.scan gives.
    """

    constant: bool = False
    state: bool = False
    computation: Computation | None = None
    output: int = 0

    def __repr__(self) -> str:
        shown = ", ".join(e.name if isinstance(e, Dim) else str(e) for e in self.extents)
        return f"Tensor {self.name}: {self.type}[{shown}]"

    def __array_ufunc__(self, ufunc: object, method: str, *args: object, **_: object) -> NoReturn:
        raise function_error(getattr(ufunc, "__name__", str(ufunc)), args)

    def _repr_html_(self) -> str:
        computed = "" if self.computation is None else f"\n{self.computation}"
        return highlight(f"{self}{computed}")

    __matmul__, __rmatmul__ = _refused("@")
    __add__, __radd__ = _refused("+")
    __sub__, __rsub__ = _refused("-")
    __mul__, __rmul__ = _refused("*")
    __truediv__, __rtruediv__ = _refused("/")
    __floordiv__, __rfloordiv__ = _refused("//")
    __mod__, __rmod__ = _refused("%")
    __lt__, __gt__ = _refused("<")
    __le__, __ge__ = _refused("<=")
