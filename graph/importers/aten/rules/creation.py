"""Rules of tensors that are made of sizes and numbers, and of conversions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....tir.sizes import AnySize
from ..promotion import DEFAULT_FLOAT, Number, number_type
from ..rule import Rule
from ..writer import AtenValue, AtenWriter, Operand


def _full(
    w: AtenWriter,
    size: Sequence[AnySize],
    fill_value: Operand,
    dtype: str | None = None,
) -> AtenValue:
    return w.filled(size, fill_value, dtype or number_type(fill_value))


def _filled_with(value: int) -> Rule:
    def rule(
        w: AtenWriter,
        size: Sequence[AnySize],
        dtype: str | None = None,
    ) -> AtenValue:
        return w.filled(size, value, dtype or DEFAULT_FLOAT)

    return rule


def _new_filled_with(value: int) -> Rule:
    def rule(
        w: AtenWriter,
        self: AtenValue,
        size: Sequence[AnySize],
        dtype: str | None = None,
    ) -> AtenValue:
        return w.filled(size, value, dtype or self.dtype)

    return rule


def _new_full(
    w: AtenWriter,
    self: AtenValue,
    size: Sequence[AnySize],
    fill_value: Operand,
    dtype: str | None = None,
) -> AtenValue:
    return w.filled(size, fill_value, dtype or self.dtype)


def _like(value: int) -> Rule:
    def rule(
        w: AtenWriter,
        self: AtenValue,
        dtype: str | None = None,
    ) -> AtenValue:
        return w.filled(self.shape, value, dtype or self.dtype)

    return rule


def _full_like(
    w: AtenWriter,
    self: AtenValue,
    fill_value: Operand,
    dtype: str | None = None,
) -> AtenValue:
    return w.filled(self.shape, fill_value, dtype or self.dtype)


def _scalar_tensor(
    w: AtenWriter,
    s: Operand,
    dtype: str | None = None,
) -> AtenValue:
    return w.operand(s, dtype or DEFAULT_FLOAT)


def _arange(
    w: AtenWriter,
    end: AnySize | float,
    dtype: str | None = None,
) -> AtenValue:
    return _numbers(w, 0, end, 1, dtype)


def _arange_start(
    w: AtenWriter,
    start: AnySize | float,
    end: AnySize | float,
    dtype: str | None = None,
) -> AtenValue:
    return _numbers(w, start, end, 1, dtype)


def _arange_step(
    w: AtenWriter,
    start: AnySize | float,
    end: AnySize | float,
    step: AnySize | float = 1,
    dtype: str | None = None,
) -> AtenValue:
    return _numbers(w, start, end, step, dtype)


def _numbers(
    w: AtenWriter,
    start: AnySize | float,
    end: AnySize | float,
    step: AnySize | float,
    dtype: str | None,
) -> AtenValue:
    """start, start + step, ... below end."""
    bounds = (start, end, step)
    is_real = any(isinstance(one, float) for one in bounds)
    own = "float64" if is_real else "int64"  # counted exactly, then converted
    made = w.spell("Range", *(w.operand(one, own) for one in bounds))
    return w.cast(made, dtype or (DEFAULT_FLOAT if is_real else own))


def _eye(
    w: AtenWriter,
    n: int,
    dtype: str | None = None,
) -> AtenValue:
    ones = w.filled((n, n), 1, dtype or DEFAULT_FLOAT)
    return w.spell("EyeLike", ones)


def _linspace(
    w: AtenWriter,
    start: Number,
    end: Number,
    steps: int,
    dtype: str | None = None,
) -> AtenValue:
    return w.cast(w.constant(np.linspace(start, end, steps, dtype=np.float32)), dtype or "float32")


def _converted(w: AtenWriter, self: AtenValue, dtype: str | None = None) -> AtenValue:
    return w.cast(self, dtype or self.dtype)


def _converted_prim(w: AtenWriter, a: AtenValue, dtype: str) -> AtenValue:
    return w.cast(a, dtype)


def _converted_like(w: AtenWriter, self: AtenValue, other: AtenValue) -> AtenValue:
    return w.cast(self, other.dtype)


RULES: dict[str, Rule] = {
    "_to_copy": _converted,
    "arange": _arange,
    "arange.start": _arange_start,
    "arange.start_step": _arange_step,
    "empty.memory_format": _filled_with(0),
    "empty_like": _like(0),
    "eye": _eye,
    "full": _full,
    "full_like": _full_like,
    "linspace": _linspace,
    "new_empty": _new_filled_with(0),
    "new_full": _new_full,
    "new_ones": _new_filled_with(1),
    "new_zeros": _new_filled_with(0),
    "ones": _filled_with(1),
    "ones_like": _like(1),
    "prims.convert_element_type": _converted_prim,
    "scalar_tensor": _scalar_tensor,
    "to.device": _converted,
    "to.dtype": _converted,
    "to.dtype_layout": _converted,
    "to.other": _converted_like,
    "type_as": _converted_like,
    "zeros": _filled_with(0),
    "zeros_like": _like(0),
}
