"""Vectors in CUDA C: loaded and stored in one piece, computed component by component."""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.buffer import Buffer, Load
from ...tir.expr import Expr, Var
from ...tir.lowered import Exchange, Lanes, Vector
from ...tir.stmt import Store
from ..lanes import access
from ..text.lines import wrapped
from ..text.scalars import ATOM, EQUAL, LONGEST_OPERANDS, SUM
from .scalars import CudaScalars
from .vector_types import component, vector_maker, vector_type


class CudaVectors(CudaScalars):
    """Writes expressions and stores; an address of a vector is a multiple of its size."""

    def store(self, store: Store) -> str:
        if store.value.dtype.lanes == 1:
            return super().store(store)
        place = self._vector_at(store.buffer, store.indices)
        return f"*({vector_type(store.value.dtype)} *){place} = {self.value(store.value)}"

    def value(self, expr: Expr) -> str:
        """The text of any expression."""
        match expr:
            case Load() if expr.dtype.lanes > 1:
                place = self._vector_at(expr.buffer, expr.indices)
                return f"*(const {vector_type(expr.dtype)} *){place}"
            case Vector():
                return self._vector(expr)
            case Var():
                return self.lines.names[expr]
        return self.scalar(expr)

    def bind(self, var: Var, value: Expr) -> None:
        if var.type.lanes == 1:
            super().bind(var, value)
        else:
            self.lines.declare(vector_type(var.type), var, self.value(value))

    def _scalar(self, expr: Expr) -> tuple[str, int]:
        if isinstance(expr, Exchange):
            text = (
                f"__shfl_xor_sync(0xffffffffu, {self.scalar(expr.value)}, {self.scalar(expr.step)})"
            )
            return (f"{text} != 0", EQUAL) if expr.dtype.is_bool else (text, ATOM)
        if not isinstance(expr, Lanes):
            return super()._scalar(expr)
        text = f"{self.value(expr.value)}{component(expr.value.dtype.lanes, expr.first)}"
        return (f"{text} != 0", EQUAL) if expr.dtype.is_bool else (text, ATOM)

    def _vector(self, vector: Vector) -> str:
        """A vector of components, over several lines where one would be long."""
        parts = [self.scalar(value) for value in vector.values]
        if sum(map(len, parts)) > LONGEST_OPERANDS:
            indent = "    " * (self.lines.depth + 1)
            parts = [f"\n{indent}{wrapped(parts, indent)}"]
        return f"{vector_maker(vector.dtype)}({', '.join(parts)})"

    def _vector_at(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        """The address of the first of some neighbours."""
        at = access(buffer, indices, self.lines.ranges).base
        base = self.swizzled(buffer, self.scalar(at, SUM))
        name = self.lines.names[buffer]
        return name if base == "0" else f"({name} + {base})"
