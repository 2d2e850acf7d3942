"""What a step of an LSTM does element by element: LstmCell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
from .base import Operator, OperatorRole, check_arity, check_float, listed, refuse, shape_of
from .elementwise import Elementwise, broadcast, broadcast_read

_Value = TypeVar("_Value", Floats, Expr)


@dataclass(frozen=True, slots=True)
class LstmCell(Operator):
    """The state h behind a step, and c, in one pass, of sums of products of the input and of the
    state before it with weights:

    c' = f(F + Pf * c) * c + f(I + Pi * c) * g(G),   h' = f(O + Po * c') * h(c')

    Inputs: c; the sums I, O, G and, unless `is_coupled`, F; where `has_peepholes`, Pi, Po and,
    unless `is_coupled`, Pf. All broadcast to c, whose type is that of both outputs. is_coupled: the
    factor of c is 1 - f(I + Pi * c). limit: the largest magnitude of what f and g are applied to.
    """

    f: Elementwise
    g: Elementwise
    h: Elementwise
    limit: float | None = None
    is_coupled: bool = False
    has_peepholes: bool = False

    role = OperatorRole.GENERAL
    output_count = 2
    operand_names = ("c", "i", "o", "g", "f")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        gates = 2 if self.is_coupled else 3
        count = 2 + gates + (gates if self.has_peepholes else 0)
        check_arity(self, types, count, count)
        check_float(self, types)
        if broadcast(self, types).shape != types[0].shape:
            problem = f"expected what broadcasts to the first input, got {listed(types)}"
            refuse(self, problem, code="lstm-cell-shape")
        return types[0], types[0]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        def apply(op: Elementwise, x: Floats) -> Floats:
            return cast(Floats, op.reference(x)[0])

        def gate(op: Elementwise, x: Floats) -> Floats:
            if self.limit is not None:
                x = cast(Floats, np.clip(x, x.dtype.type(-self.limit), x.dtype.type(self.limit)))
            return apply(op, x)

        return self._step([cast(Floats, array) for array in arrays], gate, apply)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        def apply(op: Elementwise, x: Expr) -> Expr:
            return op.element(x)

        def gate(op: Elementwise, x: Expr) -> Expr:
            if self.limit is not None:
                x = te.maximum(x, te.const(-self.limit, x.dtype))
                x = te.minimum(x, te.const(self.limit, x.dtype))
            return apply(op, x)

        def element(*i: Expr) -> tuple[Expr, Expr]:
            return self._step([broadcast_read(tensor, i) for tensor in tensors], gate, apply)

        return te.compute(shape_of(tensors[0]), element, name=(f"{name}_h", f"{name}_c"))

    def _step(
        self,
        values: Sequence[_Value],
        gate: Callable[[Elementwise, _Value], _Value],
        apply: Callable[[Elementwise, _Value], _Value],
    ) -> tuple[_Value, _Value]:
        """h' and c'. gate: a function of what is cut at the limit; apply: of what is not."""
        c, i, o, g = values[0], values[1], values[2], values[3]
        peepholes = values[4 if self.is_coupled else 5 :]
        taken = gate(self.f, i + peepholes[0] * c if peepholes else i)
        if self.is_coupled:
            kept = 1.0 - taken
        else:
            kept = gate(self.f, values[4] + peepholes[2] * c if peepholes else values[4])
        later = kept * c + taken * gate(self.g, g)
        shown = gate(self.f, o + peepholes[1] * later if peepholes else o)
        return shown * apply(self.h, later), later
