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

        def clip(x: Floats, limit: float) -> Floats:
            return cast(Floats, np.clip(x, x.dtype.type(-limit), x.dtype.type(limit)))

        values = [cast(Floats, array) for array in arrays]
        return self._step(values, apply, clip)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        def apply(op: Elementwise, x: Expr) -> Expr:
            return op.element(x)

        def clip(x: Expr, limit: float) -> Expr:
            return te.minimum(te.maximum(x, te.const(-limit, x.dtype)), te.const(limit, x.dtype))

        def element(*i: Expr) -> tuple[Expr, Expr]:
            return self._step([broadcast_read(tensor, i) for tensor in tensors], apply, clip)

        return te.compute(shape_of(tensors[0]), element, name=(f"{name}_h", f"{name}_c"))

    def _step(
        self,
        values: Sequence[_Value],
        apply: Callable[[Elementwise, _Value], _Value],
        clip: Callable[[_Value, float], _Value],
    ) -> tuple[_Value, _Value]:
        """h' and c'."""
        c, i, o, g, *rest = values
        forget = None if self.is_coupled else rest.pop(0)

        def gate(
            op: Elementwise, x: _Value, peephole: int | None = None, seen: _Value = c
        ) -> _Value:
            if peephole is not None and self.has_peepholes:
                x = x + rest[peephole] * seen
            return apply(op, x if self.limit is None else clip(x, self.limit))

        taken = gate(self.f, i, 0)
        kept = 1.0 - taken if forget is None else gate(self.f, forget, 2)
        later = kept * c + taken * gate(self.g, g)
        return gate(self.f, o, 1, later) * apply(self.h, later), later
